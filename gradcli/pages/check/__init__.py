"""Whether claims about derivatives are right: points, proofs, and the diagnosis of what is wrong."""
