"""Gradients of arrays as formulas of matrices and of elements."""
