"""The powers of ten that a system's inputs have where its terms are of one size, as its constants tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import interpret
from gradcli.pages.results import Array, Named

_USUAL = 2  # the power of ten up to which numbers are near 1, as the points are that are drawn first
_MOST = 200  # the power of ten of inputs that are drawn: their squares are still float64
_WORK = 2_000_000  # coefficients that are computed: more would keep the reader waiting
# The weight of an input's own value among the equations: a value that is declared counts as ten that follow.
_KNOWN = 10.0
_ROUNDS = 8  # of least squares with new weights, after which they change no more

Form = Array  # log10 of a node's size: a coefficient for the log10 of each input's, and a constant


def magnitudes(inputs: Mapping[str, Node], wanted: Sequence[Node], usual: Mapping[str, float]) -> dict[str, int]:
    """Return the power of ten of each input that is not near 1; `usual` holds those that are known.

    The size of each node is a product of powers of the inputs' sizes.  Terms that are added or compared are of one
    size, and the arguments of functions such as exp are near 1: these equations are solved for the inputs' sizes, with
    few that do not hold, and the smallest solution where there are several.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> k, t = leaf(), leaf()
    >>> magnitudes({"k": k, "t": t}, [elementwise("exp", -k * 1e-9 / t) + 300 / t], {})
    {'k': 11, 't': 2}
    """
    nodes = scheduled(wanted)
    if not _is_far(nodes, usual) or len(nodes) * (len(inputs) + 1) > _WORK:
        return {}
    equations = _Equations(len(inputs))
    units = np.eye(len(inputs) + 1)
    interpret(nodes, equations.form, {x: units[k] for k, x in enumerate(inputs.values())})
    names = list(inputs)
    known = [_KNOWN * np.append(np.eye(len(names))[names.index(n)], -power) for n, power in usual.items() if n in names]
    result = _solved([*equations.rows, *known], len(names))
    powers = np.clip(result, -_MOST, _MOST).round().astype(int).tolist()
    return {n: power for n, power in zip(names, powers, strict=True) if abs(power) >= _USUAL}


def usual_powers(values: Named) -> dict[str, float]:
    """Return the power of ten of each variable's value that is not 0.

    >>> usual_powers({"x": np.array([1e-9, 0.0]), "z": np.array(0.0)})
    {'x': -9.0}
    """
    sizes = {name: np.abs(value[np.isfinite(value) & (value != 0)]) for name, value in values.items()}
    return {name: float(np.median(np.log10(size))) for name, size in sizes.items() if size.size}


def _is_far(nodes: Sequence[Node], usual: Mapping[str, float]) -> bool:
    """Return whether a constant, or the value of an input, is far from 1."""
    powers = [f[-1] for n in nodes if n.is_constant and (f := _constant(n, 0)) is not None]
    return any(abs(p) > _USUAL for p in (*powers, *usual.values()))


def _solved(rows: Sequence[Form], count: int) -> Array:
    """Return the smallest solution of equations `row · (x, 1) = 0` with a least sum of absolute errors.

    Source: iteratively reweighted least squares.
    """
    if not rows:
        return np.zeros(count)
    matrix = np.array(rows)
    weights = np.ones(len(rows))
    result: Array = np.zeros(count)
    for _ in range(_ROUNDS):
        scaled = matrix * weights[:, None]
        result = np.linalg.lstsq(scaled[:, :-1], -scaled[:, -1], rcond=1e-9)[0]
        weights = 1 / np.sqrt(np.maximum(1, np.abs(matrix @ np.append(result, 1))))
    return np.asarray(result)


class _Equations:
    """Powers of ten of nodes, as linear forms in those of the inputs with a constant last, and equations between them.

    `rows` are the forms that must be near 0.
    """

    def __init__(self, width: int) -> None:
        self.rows: list[Form] = []
        self.width = width

    def form(self, node: Node, forms: Sequence[Form | None]) -> Form | None:
        """Add the equations that a node makes, and return its size, from those of its arguments; zeros have none."""
        if node.is_constant:
            return _constant(node, self.width)
        if not node.args:
            return None
        row = OPERATIONS[node.op]
        powers = _POWERS[node.op](node) if node.op in _POWERS else _OF_KIND.get(row.kind)
        if powers is not None:
            known = [(k, f) for k, f in zip(powers, forms, strict=False) if f is not None]
            return sum((k * f for k, f in known), np.zeros(self.width + 1)) if len(known) == len(powers) else None
        if row.selects or node.op in _SIMILAR:
            return self.equal(forms[1:] if row.selects else forms)
        if row.kind == "move":  # arrays side by side need not be of one size
            some = [f for f in forms if f is not None]
            return sum(some[1:], some[0]) / len(some) if some else None
        if row.kind == "condition" or node.op in _OF_SIGNS:
            self.equal(forms)
            return None if row.kind == "condition" else np.zeros(self.width + 1)
        one = np.zeros(self.width + 1)
        self.equal([one, *forms])
        return one

    def equal(self, forms: Sequence[Form | None]) -> Form | None:
        """Add that sizes are equal, and return it."""
        some = [f for f in forms if f is not None]
        self.rows += [f - some[0] for f in some[1:] if (f - some[0])[:-1].any()]
        return sum(some[1:], some[0]) / len(some) if some else None


def _constant(node: Node, width: int) -> Form | None:
    sizes = [abs(number(v)) for v in node.values]
    largest = max((s for s in sizes if 0 < s < np.inf), default=0)
    return np.append(np.zeros(width), np.log10(largest)) if largest else None


# The powers of the sizes of an operation's arguments that its size is the product of.
_POWERS: Mapping[str, Callable[[Node], Sequence[float] | None]] = {
    "mul": lambda n: (1, 1),
    "div": lambda n: (1, -1),
    "solve": lambda n: (-1, 1),
    "pow": lambda n: None if n.args[1].value is None else (number(n.args[1].value),),
    "prod": lambda n: (n.args[0].size / max(1, n.size),),
    "det": lambda n: (n.args[0].shape[-1],),
    **dict.fromkeys(("logsumexp", "cumprod"), lambda n: None),
    **dict.fromkeys(("detach", "softmax"), lambda n: (1,)),
    **{op: lambda n: (1,) for op, row in OPERATIONS.items() if row.broadcasts and row.arity == 1 and row.linear},
    **{op: lambda n: (float(OPERATIONS[n.op].degree or 0),) for op, row in OPERATIONS.items() if row.degree},
}
_OF_KIND = dict.fromkeys(("view", "scatter", "reduction", "scan", "along"), (1,)) | {"contraction": (1, 1)}
# Operations whose arguments are of one size; an angle or a sign is near 1.
_SIMILAR = ("add", "sub", "maximum", "minimum", "clamp", "hardtanh", "hypot", "mod", "fmod")
_OF_SIGNS = ("sign", "atan2")
