"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import elementwise, linear_algebra, movement, reductions  # noqa: F401  (they register names)
from gradcli.vocabulary.register import CONSTANTS, FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = ["CONSTANTS", "FUNCTIONS", "KEYWORDS", "METHODS", "Builder"]
