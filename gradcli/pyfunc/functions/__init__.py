"""NumPy's functions by their own names and signatures: the rule of each, which builds its nodes, by family."""

from gradcli.pyfunc.functions import (  # noqa: F401  (they register rules)
    composed,
    linear_algebra,
    movement,
    products,
    reductions,
    ufuncs,
)
