"""What a script has recorded, read back and told: the page of each backward, and the reasons of each error.

`teller` listens to a script and decides what is told of it, in `pages`; after an error, `errors` says why.  `recorded`
makes a graph of what was recorded, `naming` and `written` call it as the script does, `scene` is a line of it in words.
`check` and `replay` call the script's own Functions again; `document` collects pages and output in one text.
"""
