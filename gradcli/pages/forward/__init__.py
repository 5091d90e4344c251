"""Forward mode: J·u, and Taylor polynomials."""
