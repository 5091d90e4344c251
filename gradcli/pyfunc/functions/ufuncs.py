"""NumPy's and SciPy's ufuncs, and NumPy's choices, bounds and spaced numbers: the rule of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import call, reshape
from gradcli.graph.node import Node, cast, compare, const
from gradcli.graph.shapes import broadcast_shapes
from gradcli.pyfunc.functions.arguments import UNSET, boolean, number, rule
from gradcli.pyfunc.tracer import OPS, RULES, UFUNCS, lift
from gradcli.vocabulary import FUNCTIONS

_DEGREE, _LOG2 = const("pi") / 180, call("log", 2)


def _compared(op: str) -> Callable[..., Node]:
    return lambda *args: compare(op, *map(number, args))


def _joined(op: str) -> Callable[..., Node]:
    return lambda *args: compare(op, *map(boolean, args))


def _defined(build: Callable[..., Node]) -> Callable[..., Node]:
    """Return the rule of a ufunc that is built of nodes, as the vocabulary does."""
    return lambda *args: build(*map(number, args))


def _xlogy(a: Node, b: Node) -> Node:
    return construct.where(construct.equal(a, 0), const(0), a * call("log", b))


for _name in (u for u in dir(np) if isinstance(getattr(np, u), np.ufunc) and u in FUNCTIONS):
    _build = FUNCTIONS[_name]
    UFUNCS[getattr(np, _name).__name__] = _defined(_build)
    if isinstance(_build, partial) and len(_build.args) == 1 and _name not in ("maximum", "minimum"):
        OPS[getattr(np, _name).__name__] = _build.args[0]
OPS |= {"maximum": "maximum", "minimum": "minimum"}
UFUNCS |= {
    name: _defined(FUNCTIONS[name]) for name in ("erf", "erfc", "gammaln", "loggamma", "gamma", "psi", "expit", "ndtr")
}
UFUNCS |= {
    "matmul": lambda a, b: construct.matmul(number(a), number(b)),
    "vecdot": lambda a, b: construct.reduce("sum", p := number(a) * number(b), (len(p.shape) - 1,)),
    **{
        f: _compared(op) for f, op in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}.items()
    },
    "equal": _compared("eq"),
    "not_equal": _compared("ne"),
    **{f"{kind}_{op}": _joined(op) for kind in ("logical", "bitwise") for op in ("and", "or")},
    "logical_not": _joined("not"),
    "invert": _joined("not"),
    "logical_xor": lambda a, b: compare("ne", *(cast(boolean(x), "float64") for x in (a, b))),
    "bitwise_xor": lambda a, b: compare("ne", *(cast(boolean(x), "float64") for x in (a, b))),
    **dict.fromkeys(("positive", "conjugate", "real", "real_if_close", "copy"), lambda x: call("identity", number(x))),
    "float_power": _defined(FUNCTIONS["power"]),
    "rint": _defined(FUNCTIONS["round"]),
    "fmax": _defined(lambda a, b: call("maximum", a, b)),
    "fmin": _defined(lambda a, b: call("minimum", a, b)),
    "exp2": _defined(lambda x: call("pow", 2, x)),
    "reciprocal": _defined(lambda x: call("div", 1, x)),
    "logaddexp2": _defined(lambda a, b: call("logaddexp", a * _LOG2, b * _LOG2) / _LOG2),
    "copysign": _defined(lambda a, b: construct.where(b < 0, -call("abs", a), call("abs", a))),
    **dict.fromkeys(("radians", "deg2rad"), _defined(lambda x: x * _DEGREE)),
    **dict.fromkeys(("degrees", "rad2deg"), _defined(lambda x: x / _DEGREE)),
    "isnan": _defined(lambda x: compare("ne", x, x)),
    "isinf": _defined(lambda x: compare("eq", call("abs", x), const(math.inf))),
    "isfinite": _defined(lambda x: compare("lt", call("abs", x), const(math.inf))),
    "signbit": _defined(lambda x: x < 0),
    "sign": _defined(FUNCTIONS["sign"]),
    # scipy.special
    "logit": _defined(lambda x: call("log", x / (1 - x))),
    "log_expit": _defined(lambda x: call("logsigmoid", x)),
    "xlogy": _defined(_xlogy),
    "xlog1py": _defined(lambda a, b: _xlogy(a, 1 + b)),
    "entr": _defined(lambda x: -_xlogy(x, x)),
    "rel_entr": _defined(lambda a, b: _xlogy(a, a / b)),
    "betaln": _defined(lambda a, b: call("lgamma", a) + call("lgamma", b) - call("lgamma", a + b)),
    "beta": _defined(lambda a, b: call("gamma", a) * call("gamma", b) / call("gamma", a + b)),
    "log_ndtr": _defined(lambda x: call("log", call("ndtr", x))),
    "exprel": _defined(lambda x: construct.corner(construct.equal(x, 0), 1, call("expm1", x) / x)),
}


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
