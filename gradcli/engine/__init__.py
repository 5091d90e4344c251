"""Graph → numbers: in NumPy, and compiled for many points, in NumPy, Numba or JAX."""
