"""The table of operators, by family."""

from gradcli.onnx.operators import (  # noqa: F401  (they register operators)
    classical,
    elementwise,
    indices,
    movement,
    recurrent,
    reductions,
    resize,
    shapes,
    windows,
)
