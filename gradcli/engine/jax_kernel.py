"""The JAX engine: a schedule as one function of arrays, which XLA compiles, for a GPU where JAX has one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradcli.engine.blocks import Arrays, Work, new_arrays, on_views
from gradcli.engine.jax_target import function_of
from gradcli.engine.schedule import Schedule
from gradcli.graph.rewrite import interpret

Array = Any  # JAX's or NumPy's

_LONGEST, _MEMORY = 2**17, 2**26  # points in a block, and numbers that it holds


class JaxKernel:
    """A schedule as a function that XLA compiles once for each number of points; these are powers of two."""

    def __init__(self, schedule: Schedule) -> None:
        jax.config.update("jax_enable_x64", True)
        self._schedule, self.new = schedule, partial(new_arrays, schedule.shapes)
        self._run = jax.jit(self._function)
        live = max(1, sum(n.size for n in schedule.steps))
        longest = max(1, min(_LONGEST, _MEMORY // live))
        self.block = self.fewest = 1 << (longest.bit_length() - 1)  # XLA has threads of its own

    def _function(self, inputs: Mapping[str, Array]) -> list[Array]:
        result = {n: jnp.asarray(value) for n, value in self._schedule.same.items()}
        result |= {node: inputs[name] for name, node in self._schedule.inputs.items()}
        interpret(self._schedule.steps, lambda node, args: function_of(node)(*args), result)
        return [result[n] for n in self._schedule.outputs.values()]

    def buffers(self, count: int) -> list[np.ndarray[Any, Any]]:
        """Return nothing: XLA has memory of its own."""
        return []

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points; None unless they are contiguous float64."""
        return on_views(self.run, points, results)

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at a block of points, which is filled up with its last one."""
        count = max((a.shape[-1] for a in points.values()), default=1)
        filled = 1 << (count - 1).bit_length()
        inputs = {
            name: a if a.shape[-1] == filled else np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, filled - count)], "edge")
            for name, a in points.items()
            if name in self._schedule.inputs
        }
        for (name, node), value in zip(self._schedule.outputs.items(), self._run(inputs), strict=True):
            results[name][...] = np.broadcast_to(np.asarray(value), (*node.shape, filled))[..., :count]
