"""After an error of autograd: why it is one, in the script's names and lines, and the change that fixes it.

`answers.txt` is the table of answers, by the key of the error in `messages.txt`; `why` reads it.  Its functions are in
`kinds` (backward, and changes in place), `operands` (what an operation takes), `modules` (parameters, constructors and
states), `custom` (a script's own Functions), `none` (a `.grad` that is None), `freed` (a second backward) and `history`
(tensors that were cut off from the graph).  `failure` is where the error was raised, with what is known then: the
record.  `under_pytorch` finds the same facts of PyTorch's own errors.  `source` and `syntax` read the script; `fixes`,
`leaves`, `updates` and `edits` change it.  `warnings`, `surprises` and `finite` are what a page says without an error.
"""
