"""Graph → numbers: in NumPy, and compiled for many points, in NumPy, by LLVM or by JAX."""
