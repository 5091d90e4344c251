"""Page formats, a file each: its name is that of the format, its function `render` returns a page as text.

With a function `document`, `--standalone` makes a document of pages; `PRINTED` says that notes stay on standard error.
"""
