"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import (  # noqa: F401  (they register names)
    creation,
    elementwise,
    layers,
    linear_algebra,
    losses,
    movement,
    reductions,
    windows,
)
from gradcli.vocabulary.register import CONSTANTS, FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = ["CONSTANTS", "FUNCTIONS", "KEYWORDS", "METHODS", "Builder"]
