"""The explanation of a script: the page of each backward, and the causes and fixes of each error.

`explainer` hears of the calls of a script, and `under_pytorch` of one under PyTorch itself; `line_explainer` has what
both show, and decides what is told of lines, `progress` tells of those that are reached again.  `pages` has the pages,
`errors` why a script failed, and `shown` where all this goes.  `recorded` makes a `system` of a record, operation by
operation: `instances` makes its nodes, `operands` what goes into them and what the script calls them.  `scene` tells of
lines in words.  `check` compares the script's own Functions with their derivatives.

Tensors stay in the rooms of the two PyTorchs: their drivers hand on records, and what else they say as plain data.
"""
