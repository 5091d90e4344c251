"""Graph → numbers, in NumPy."""
