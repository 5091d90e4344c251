"""Runs the source of a Numba kernel as plain Python: slowly, and without the seconds that it takes to compile."""

import re
import sys
from unittest.mock import MagicMock, patch

import numpy as np

from gradcli.engine.numba_code import write
from gradcli.engine.schedule import Schedule


def in_python(graph, same, points, count, tile):
    """Return the outputs of a graph at so many points, in tiles; `same` has the inputs that are the same at all."""
    schedule = Schedule.of(graph, same)
    constants = {name: value * np.ones(count) for name, value in schedule.constants.items()}
    if not schedule.steps:
        return constants
    code = write(schedule)
    scope = {}
    with patch.dict(sys.modules, numba=MagicMock(njit=lambda *_, **__: lambda function: function)):
        exec(re.sub("(?m)^T = .*", f"T = {tile}", code.source), scope)
    found = {name: np.full((*y.shape, count), np.nan) for name, y in schedule.outputs.items()}
    scratch = np.full(code.scratch, np.nan)
    inputs, outputs = ([_flat(v) for v in vs] for vs in ([points[name] for name in schedule.inputs], found.values()))
    scope["kernel"](count, *inputs, code.same, scratch, *outputs)
    return found | constants


def _flat(array):
    return array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array
