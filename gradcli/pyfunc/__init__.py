"""Python functions on NumPy arrays → Graph: a tracer that NumPy's functions and operators are called with."""
