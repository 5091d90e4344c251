"""Page formats, a file each: its name is that of the format, its function `render` returns a page as text.

With a function `document`, `--standalone` makes a document of pages, with a title and a picture where the format has a
function `headed` and names in `PICTURE` the language of its pictures; `PRINTED` says that notes stay on standard error.
"""
