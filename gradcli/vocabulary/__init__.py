"""Function names and signatures → constructors, shared by formulas and scripts."""

from gradcli.vocabulary import (
    creation,
    elementwise,
    linear_algebra,
    losses,
    movement,
    normalisation,
    reductions,
)
from gradcli.vocabulary.register import FUNCTIONS, KEYWORDS, METHODS, Builder

__all__ = [
    "FUNCTIONS",
    "KEYWORDS",
    "METHODS",
    "Builder",
    "creation",
    "elementwise",
    "linear_algebra",
    "losses",
    "movement",
    "normalisation",
    "reductions",
]
