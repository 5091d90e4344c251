"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import (  # noqa: F401  (they register names)
    creation,
    elementwise,
    linear_algebra,
    losses,
    movement,
    normalisation,
    padding,
    reductions,
    sorting,
    windows,
)
from gradcli.vocabulary.register import CONSTANTS, FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = ["CONSTANTS", "FUNCTIONS", "KEYWORDS", "METHODS", "Builder"]
