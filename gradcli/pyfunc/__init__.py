"""Python functions on NumPy arrays → Graph: they are called with tracers, which record NumPy's operations."""
