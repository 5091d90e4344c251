"""The explanation of a script: the page of each backward, and the causes and fixes of each error.

`explainer` listens to a script, `line_explainer` decides what is told of its lines, `progress` tells of those that are
reached again; `under_pytorch` is for scripts that run under PyTorch itself.  `pages` has the pages, `errors` why a
script failed, and `shown` where all this goes.  `recorded` makes a `system` of what was recorded, step by step:
`instances` and `assembled` make its nodes, `operands` what goes into them, `written` calls them as the
script does.
`scene` tells of lines in words.  `check` and `replay` call the script's own Functions again.
"""
