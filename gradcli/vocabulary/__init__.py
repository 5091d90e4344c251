"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import (  # noqa: F401  (they register names)
    attention,
    creation,
    dense,
    elementwise,
    interpolation,
    linear_algebra,
    losses,
    movement,
    normalisation,
    padding,
    recurrent,
    reductions,
    sorting,
    windows,
)
from gradcli.vocabulary.register import CONSTANTS, FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = ["CONSTANTS", "FUNCTIONS", "KEYWORDS", "METHODS", "Builder"]
