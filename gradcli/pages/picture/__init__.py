"""A system as a picture: boxes, arrows, and what is folded."""
