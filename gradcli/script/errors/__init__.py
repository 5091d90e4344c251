"""After an error of autograd: why it is one, in the script's names and lines, and the change that fixes it.

`why` finds who answers: `kinds` has the errors that know what they are about, `answers.txt` and `operands` those that
are known by their text, `none` a `.grad` that is None, `threads` a history that was lost.  `failure` is where it
happened, `source`, `syntax` and `flow` read the script; `fixes`, `leaves`, `updates` and `edits` change it.
"""
