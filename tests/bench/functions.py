"""Gradients of small NumPy functions, and SciPy's optimizers with them: beside HIPS autograd's, for the same code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from timeit import repeat
from types import ModuleType
from typing import Any

import autograd
import autograd.numpy
import numpy

import gradcli
from tests.bench.session import Session
from tests.bench.tables import seconds, title

Function = Callable[[Any], Any]
EAGER, COMPILED = 1.0, 0.1  # at most which share of autograd's time is to be reached
_TURNS = 15


def _functions(np: ModuleType) -> dict[str, tuple[Function, Any]]:
    """Return small functions, in NumPy or in autograd's, with a point."""
    weights = numpy.ones((4, 5))

    def loop(x: Any) -> Any:
        for _ in range(10):
            x = np.sin(x) * x
        return x

    return {
        "sum(tanh(x)**2), 3 elements": (lambda x: np.sum(np.tanh(x) ** 2), numpy.array([1.0, 2.0, 3.0])),
        "exp(-x)*sin(x) + x**2": (lambda x: np.exp(-x) * np.sin(x) + x**2, 0.5),
        "sum(tanh(x @ W))": (lambda x: np.sum(np.tanh(np.dot(x, weights))), numpy.ones(4) / 10),
        "a loop of 10 rounds": (loop, 0.7),
    }


def calls(session: Session) -> None:
    """Compare calls of gradients: traced each time, and compiled once."""
    title("One call of the gradient of a NumPy function: time ÷ time of HIPS autograd")
    number = 20 if session.quick else 100
    peers = _functions(autograd.numpy)
    for name, (f, x) in _functions(numpy).items():
        peer, eager = autograd.grad(peers[name][0]), gradcli.grad(f)
        runs = {"autograd": peer, "grad": eager, "compiled": gradcli.compile(gradcli.grad(f))}
        expected = peer(x)
        session.failed |= not all(numpy.allclose(run(x), expected) for run in runs.values())
        times: dict[str, list[float]] = {own: [] for own in runs}
        for _ in range(_TURNS):  # in turns: what else the machine does falls on all of them
            for own, run in runs.items():
                times[own] += [t / number for t in repeat(partial(run, x), number=number, repeat=1)]
        ratios = {own: median(t / p for t, p in zip(times[own], times["autograd"], strict=True)) for own in runs}
        limits = {"grad": EAGER, "compiled": COMPILED}
        shown = "   ".join(f"{own} {ratios[own]:.3g} (at most {limit:g})" for own, limit in limits.items())
        print(f"  {name:28} autograd {seconds(min(times['autograd'])):>8}   {shown}")
        session.failed |= any(ratios[own] > limit for own, limit in limits.items())
