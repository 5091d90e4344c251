"""Runs an LLVM kernel with vectors and tiles of a few points, so that a few points are several tiles."""

import re

import numpy as np
import pytest

from gradcli.engine.llvm.code import check, write
from gradcli.engine.schedule import Schedule

LANES = 2


def in_tiles(graph, same, points, count, tile):
    """Return the outputs of a graph at so many points, in tiles; `same` has the inputs that are the same at all."""
    pytest.importorskip("llvmlite")
    from gradcli.engine.llvm.kernel import compiled

    schedule = Schedule.of(graph, same)
    constants = {name: value * np.ones(count) for name, value in schedule.constants.items()}
    if not schedule.steps:
        return constants
    check(schedule)
    code = write(schedule, LANES)
    source = re.sub(r"(?m)^  %T = .*", f"  %T = add i64 {tile}, 0", code.source)
    found = {name: np.full((*y.shape, count), np.nan) for name, y in schedule.outputs.items()}
    arrays = [*(np.ascontiguousarray(points[name], dtype=float) for name in schedule.inputs), *found.values()]
    addresses = np.array([a.ctypes.data for a in arrays])
    scratch = np.full(code.rows * tile, np.nan)
    engine, kernel = compiled(source)
    kernel(count, 0, count, *(a.ctypes.data for a in (addresses, code.same, scratch)))
    del engine
    return found | constants
