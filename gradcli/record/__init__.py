"""What happened in a run, as plain data: quantities, operations, backwards and events.

`record` has the record and the `Recorder` that all writers use; nothing in it holds a tensor, a step, a frame, a module
or a callable, so that a record pickles, and two runs compare equal.  `naming` is for the writers: it finds what a
script calls its tensors and modules, of whichever PyTorch.
"""
