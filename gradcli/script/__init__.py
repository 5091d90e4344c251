"""What a script has recorded, read back and told: the page of each backward, and the reasons of each error.

A backward: `trace` makes a graph of what was recorded, `naming` and `written` call it as the script does, `pages` and
`functions` show it; `gradients`, `steps`, `sums`, `rows` say what became of `.grad`, and who changed what.  An error:
`errors` and `messages` know what each means; `scene`, `source`, `flow` and `threads` read the script; `mends`,
`updates`, `operands` and `none` change it.  `check` and `replay` call the script's own Functions again.
"""
