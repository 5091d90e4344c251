"""Graph → SymPy: formulas, and the symbolic Jacobian."""
