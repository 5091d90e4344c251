"""The problems: their formulas, which every competitor computes from the same text, and their points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from gradcli import parse, vjp
from gradcli.graph.graph import Graph

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """Formulas and the points at which they are differentiated.

    `points` holds what varies, cotangents `y.v` too, of shape `(*shape, N)`; `same` what is equal at all points, of
    shape `shape`.  Formulas are Python too.  For peers the points are the first axis where matrices are multiplied, and
    the last otherwise, as suits them.  `derivative` is gradcli's: `vjp` or `jacobian`.
    """

    title: str
    text: str
    wrt: tuple[str, ...]
    points: Mapping[str, Array]
    same: Mapping[str, Array] = field(default_factory=dict)
    first: bool = False
    derivative: Callable[..., Graph] = vjp
    agreement: float = 1e-9  # of the results of all competitors

    @property
    def count(self) -> int:
        return next(iter(self.points.values())).shape[-1]

    @property
    def outputs(self) -> list[str]:
        return [name.removesuffix(".v") for name in self.points if name.endswith(".v")]

    def graph(self) -> Graph:
        """Return gradcli's graph of the derivative."""
        shapes = {n: a.shape[:-1] for n, a in self.points.items() if "." not in n}
        return self.derivative(parse(self.text, **shapes, **{n: a.shape for n, a in self.same.items()}), self.wrt)

    def arrays(self) -> dict[str, Array]:
        """Return the points, and what is the same at all of them, as peers take them."""
        if not self.first:
            return {**self.points, **self.same}
        return {**{n: np.ascontiguousarray(np.moveaxis(a, -1, 0)) for n, a in self.points.items()}, **self.same}

    def evaluate(self, values: Mapping[str, Any], functions: Mapping[str, Any]) -> list[Any]:
        """Return the outputs, computed with the values and functions of a peer."""
        names = {**functions, **values}
        exec(self._code(), names)
        return [names[y] for y in self.outputs]

    def _code(self) -> CodeType:
        return compile(self.text, self.title, "exec")

    def named(self, gradients: Iterable[Array]) -> dict[str, Array]:
        """Return a peer's gradients by gradcli's names, with the points last."""
        return {
            f"{x}.grad": np.moveaxis(g, 0, -1) if self.first else g for x, g in zip(self.wrt, gradients, strict=True)
        }


# ADBench: Rodrigues' rotation of a point as a camera sees it, radial distortion, and the weight of the measurement m.
BUNDLE_ADJUSTMENT = """
s = r0**2 + r1**2 + r2**2
theta = sqrt(s)
c = cos(theta)
sn = sin(theta)
k0 = r0/theta
k1 = r1/theta
k2 = r2/theta
d0 = X0 - C0
d1 = X1 - C1
d2 = X2 - C2
m = (k0*d0 + k1*d1 + k2*d2)*(1 - c)
p0 = d0*c + (k1*d2 - k2*d1)*sn + k0*m
p1 = d1*c + (k2*d0 - k0*d2)*sn + k1*m
p2 = d2*c + (k0*d1 - k1*d0)*sn + k2*m
u0 = p0/p2
u1 = p1/p2
q = u0**2 + u1**2
L = 1 + a0*q + a1*q**2
e0 = w*(u0*L*f + x0 - m0)
e1 = w*(u1*L*f + x1 - m1)
e2 = 1 - w**2
"""

_RANGES = {
    **dict.fromkeys(["r0", "r1", "r2"], (0.1, 0.5)),
    **dict.fromkeys(["C0", "C1", "C2", "X0", "X1"], (-1.0, 1.0)),
    "f": (300.0, 600.0),
    **dict.fromkeys(["x0", "x1"], (-5.0, 5.0)),
    **dict.fromkeys(["a0", "a1"], (-0.1, 0.1)),
    "X2": (4.0, 8.0),
    "w": (0.5, 1.5),
    **dict.fromkeys(["m0", "m1"], (-100.0, 100.0)),
    **dict.fromkeys(["e0.v", "e1.v", "e2.v"], (-1.0, 1.0)),
}


def bundle_adjustment(count: int) -> Problem:
    """Return ADBench's reprojection residual: 15 inputs, 3 outputs."""
    random = np.random.default_rng(0)
    points = {name: random.uniform(low, high, count) for name, (low, high) in _RANGES.items()}
    wrt = tuple(name for name in _RANGES if name not in ("m0", "m1") and "." not in name)
    return Problem("bundle adjustment", BUNDLE_ADJUSTMENT, wrt, points)


def rosenbrock(count: int) -> Problem:
    """Return Rosenbrock's function in 100 variables."""
    random = np.random.default_rng(1)
    text = "y = sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
    return Problem("Rosenbrock", text, ("x",), {"x": random.uniform(-2, 2, (100, count)), "y.v": np.ones(count)})


def network(count: int) -> Problem:
    """Return a two-layer network, 8-16-4, with the weights of all points in common."""
    random = np.random.default_rng(2)
    points = {"x": random.normal(size=(8, count)), "y.v": random.normal(size=(4, count))}
    weights = {"W1": (8, 16), "b1": (16,), "W2": (16, 4), "b2": (4,)}
    same = {name: random.normal(size=shape) / 4 for name, shape in weights.items()}
    return Problem("tanh network", "y = tanh(x @ W1 + b1) @ W2 + b2", ("x",), points, same, first=True)


def chain(length: int, count: int) -> Problem:
    """Return a chain of that many statements, of five operations each, whose values stay near 1."""
    random = np.random.default_rng(3)
    lines = [f"t{i + 1} = t{i}*x + 1/(1 + t{i}**2)" for i in range(length)]
    points = {
        "t0": random.uniform(0, 1, count),
        "x": random.uniform(0.1, 0.5, count),
        f"t{length}.v": random.uniform(-1, 1, count),
    }
    return Problem(f"chain of {length:,}", "\n".join(lines), ("t0", "x"), points)
