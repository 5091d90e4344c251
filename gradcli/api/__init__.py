"""The Python API: systems, derivatives of functions on NumPy arrays, and what a notebook shows."""
