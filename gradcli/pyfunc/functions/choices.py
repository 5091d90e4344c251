"""NumPy's choices, bounds and rounding, and evenly spaced numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import call, reshape
from gradcli.graph.node import Node, compare, const
from gradcli.graph.shapes import broadcast_shapes
from gradcli.pyfunc.functions.arguments import UNSET, boolean, number, rule
from gradcli.pyfunc.tracer import RULES, lift
from gradcli.vocabulary import FUNCTIONS


@rule(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Node:
    if x is None or y is None:
        raise InputError("`np.where(condition)` is indices, which depend on values", hint="`np.where(condition, a, b)`")
    return call("where", boolean(condition), number(x), number(y))


@rule(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Node:
    low, high = more.get("min", a_min), more.get("max", a_max)
    low, high = (None if b is None or b is UNSET else number(b) for b in (low, high))
    return FUNCTIONS["clip"](number(a), low, high)


@rule(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Node:
    return FUNCTIONS["round"](number(a), int(decimals))


@rule(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Node:
    limits = np.finfo(float)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    n = number(x)
    n = construct.where(compare("eq", n, const(math.inf)), lift(float(high)), n)
    n = construct.where(compare("eq", n, const(-math.inf)), lift(float(low)), n)
    return construct.where(compare("ne", n, n), lift(float(nan)), n)


@rule(np.sinc)
def _sinc(x: Any) -> Node:
    n = number(x) * const("pi")
    # At 0 the function is 1 with slope 0: a series takes the quotient's place there.
    near = call("abs", n) < Decimal("1e-4")
    safe = construct.where(near, 1, n)
    return construct.where(near, 1 - n**2 / 6 + n**4 / 120, call("sin", safe) / safe)


RULES |= dict.fromkeys((np.real, np.copy), lambda a, **_: call("identity", number(a)))
RULES[np.real_if_close] = lambda a, tol=100: call("identity", number(a))
RULES[np.imag] = lambda a: const(0, lift(a).shape)


@rule(np.linspace)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, *_: Any, **__: Any) -> Node:
    first, last = number(start), number(stop)
    shape = broadcast_shapes([first.shape, last.shape])
    steps = np.arange(num) / max(1, num - 1 if endpoint else num)
    weights = reshape(lift(steps), (num, *(1,) * len(shape)))
    return first + (last - first) * weights
