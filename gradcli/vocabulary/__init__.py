"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import elementwise, linear_algebra, movement, reductions, sorting, windows
from gradcli.vocabulary.register import FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = [
    "FUNCTIONS",
    "KEYWORDS",
    "METHODS",
    "Builder",
    "elementwise",
    "linear_algebra",
    "movement",
    "reductions",
    "sorting",
    "windows",
]
