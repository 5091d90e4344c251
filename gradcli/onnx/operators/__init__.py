"""The table of operators, by family."""

from gradcli.onnx.operators import (  # noqa: F401  (they register operators)
    elementwise,
    indices,
    movement,
    normalisation,
    products,
    reductions,
    shapes,
    windows,
)
