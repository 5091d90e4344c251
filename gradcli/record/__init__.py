"""What happened in a run, as plain data: quantities, operations, backwards and events.

`record` has the record and the `Recorder` that all writers use; nothing here holds a tensor, a step, a frame, a module
or a callable, so that a record pickles, and two runs compare equal.
"""
