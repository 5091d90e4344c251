"""Text → Graph: statements, points and cotangents."""
