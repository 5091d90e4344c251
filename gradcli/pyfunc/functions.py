"""NumPy's functions by their own names and signatures: what makes the nodes of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct, matrices
from gradcli.graph.construct import axes_of, broadcast, call, one_axis, reshape
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.graph.shapes import broadcast_shapes
from gradcli.pyfunc.tracer import OPS, RULES, UFUNCS, VIEWS, lift
from gradcli.vocabulary import FUNCTIONS
from gradcli.vocabulary.register import kept

Axis = int | Sequence[int] | None
_UNSET = getattr(np, "_NoValue", None)
_DEGREE = const("pi") / 180
_CHOLESKY = 64  # rows: each is a few operations of the graph


# Ufuncs


def _elementwise(name: str) -> Callable[..., Node]:
    """Return the rule of a ufunc that the vocabulary has under NumPy's name."""
    build = FUNCTIONS[name]
    return lambda *args: build(*map(_number, args))


def _number(x: Any) -> Node:
    """Return an argument as numbers: a condition is 0 or 1."""
    node = lift(x)
    return cast(node, "float64") if node.dtype == "bool" else node


def _condition(x: Any) -> Node:
    """Return an argument as a condition: a number is true where it is not 0."""
    node = lift(x)
    return node if node.dtype == "bool" else compare("ne", node, const(0))


def _compared(op: str) -> Callable[..., Node]:
    return lambda *args: compare(op, *map(_number, args))


def _joined(op: str) -> Callable[..., Node]:
    return lambda *args: compare(op, *map(_condition, args))


def _defined(build: Callable[..., Node]) -> Callable[..., Node]:
    return lambda *args: build(*map(_number, args))


def _copysign(a: Node, b: Node) -> Node:
    return construct.where(b < 0, -call("abs", a), call("abs", a))


def _xlogy(a: Node, b: Node) -> Node:
    return construct.where(construct.equal(a, 0), const(0), a * call("log", b))


for _name in (u for u in dir(np) if isinstance(getattr(np, u), np.ufunc) and u in FUNCTIONS):
    UFUNCS[getattr(np, _name).__name__] = _elementwise(_name)
    _build = FUNCTIONS[_name]
    if isinstance(_build, partial) and len(_build.args) == 1 and _name not in ("maximum", "minimum"):
        OPS[getattr(np, _name).__name__] = _build.args[0]
OPS |= {"maximum": "maximum", "minimum": "minimum", "negative": "neg"}
UFUNCS |= {name: _elementwise(name) for name in ("erf", "erfc", "gammaln", "loggamma", "gamma", "psi", "expit", "ndtr")}
UFUNCS |= {
    "matmul": lambda a, b: construct.matmul(_number(a), _number(b)),
    "vecdot": lambda a, b: construct.reduce("sum", p := _number(a) * _number(b), (len(p.shape) - 1,)),
    **{
        f: _compared(op) for f, op in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}.items()
    },
    "equal": _compared("eq"),
    "not_equal": _compared("ne"),
    **{f"{kind}_{op}": _joined(op) for kind in ("logical", "bitwise") for op in ("and", "or")},
    "logical_not": _joined("not"),
    "invert": _joined("not"),
    "logical_xor": lambda a, b: compare("ne", *(cast(_condition(x), "float64") for x in (a, b))),
    "bitwise_xor": lambda a, b: compare("ne", *(cast(_condition(x), "float64") for x in (a, b))),
    **dict.fromkeys(("positive", "conjugate", "real", "real_if_close", "copy"), lambda x: call("identity", _number(x))),
    "negative": _defined(lambda x: elementwise("neg", x)),
    "fabs": _elementwise("abs"),
    "float_power": _elementwise("power"),
    "rint": _elementwise("round"),
    "fmax": _defined(lambda a, b: call("maximum", a, b)),
    "fmin": _defined(lambda a, b: call("minimum", a, b)),
    "exp2": _defined(lambda x: call("pow", 2, x)),
    "reciprocal": _defined(lambda x: call("div", 1, x)),
    "logaddexp2": _defined(lambda a, b: call("logaddexp", a * _log2(), b * _log2()) / _log2()),
    "copysign": _defined(_copysign),
    **dict.fromkeys(("radians", "deg2rad"), _defined(lambda x: x * _DEGREE)),
    **dict.fromkeys(("degrees", "rad2deg"), _defined(lambda x: x / _DEGREE)),
    "isnan": _defined(lambda x: compare("ne", x, x)),
    "isinf": _defined(lambda x: compare("eq", call("abs", x), const(math.inf))),
    "isfinite": _defined(lambda x: compare("lt", call("abs", x), const(math.inf))),
    "signbit": _defined(lambda x: x < 0),
    "sign": _elementwise("sign"),
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


def _log2() -> Node:
    return call("log", 2)


# Functions


Build = TypeVar("Build", bound=Callable[..., Any])


def rule(*functions: Any, view: bool = False) -> Callable[[Build], Build]:
    """Register what makes the nodes of functions; `view` says that NumPy's result may be a view of its argument."""

    def register(build: Build) -> Build:
        RULES.update(dict.fromkeys(functions, build))
        VIEWS.update(functions if view else ())
        return build

    return register


def _settings(axis: Axis, rank: int) -> tuple[int, ...]:
    return axes_of(tuple(axis) if isinstance(axis, list) else _plain_axis(axis), rank)


def _plain_axis(axis: Any) -> Any:
    return tuple(int(a) for a in axis) if isinstance(axis, tuple) else None if axis is None else int(axis)


def reduced(op: str, *more: int | str) -> Callable[..., Node]:
    """Return the rule of a reduction, with the parameters that NumPy's have."""

    def build(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _UNSET,
        where: Any = _UNSET,
    ) -> Node:
        if initial is not _UNSET or (where is not _UNSET and where is not True):
            raise InputError(f"`np.{op}` is traced without `initial` and `where`", hint="`np.where(mask, x, 0)`")
        x = _number(a)
        axes = _settings(axis, len(x.shape))
        if not axes and not x.shape:
            return call("identity", x)
        return kept(construct.reduce(op, x, axes, *more), x, axes, keepdims is True)

    return build


RULES[np.sum] = reduced("sum")
RULES[np.prod] = reduced("prod")
RULES[np.mean] = reduced("mean")


def _extremum(op: str) -> Callable[..., Node]:
    # autograd, JAX and PyTorch's amax share the gradient of a tie.
    build = reduced(op, "even")
    return lambda a, axis=None, out=None, keepdims=False, **rest: build(a, axis, None, out, keepdims, **rest)


RULES |= dict.fromkeys((np.max, np.amax), _extremum("max"))
RULES |= dict.fromkeys((np.min, np.amin), _extremum("min"))


def _spread(op: str) -> Callable[..., Node]:
    def build(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False, **rest: Any
    ) -> Node:
        ddof = rest.get("correction", ddof)
        x = _number(a)
        axes = _settings(axis, len(x.shape))
        return kept(construct.reduce(op, x, axes, int(ddof)), x, axes, keepdims is True)

    return build


RULES[np.var], RULES[np.std] = _spread("var"), _spread("std")


def _cumulative(op: str) -> Callable[..., Node]:
    def build(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Node:
        x = _number(a)
        x = reshape(x, (x.size,)) if axis is None else x
        return construct.cumulative(op, x, one_axis(0 if axis is None else int(axis), len(x.shape)))

    return build


RULES[np.cumsum], RULES[np.cumprod] = _cumulative("cumsum"), _cumulative("cumprod")


def _counted(a: Any, axis: Axis, keepdims: Any) -> Node:
    return reduced("sum")(cast(_condition(a), "float64"), axis, keepdims=keepdims)


RULES[np.any] = lambda a, axis=None, out=None, keepdims=False, **_: compare("gt", _counted(a, axis, keepdims), const(0))
RULES[np.all] = lambda a, axis=None, out=None, keepdims=False, **_: compare(
    "eq", _counted(compare("not", _condition(a)), axis, keepdims), const(0)
)
RULES[np.count_nonzero] = lambda a, axis=None, *, keepdims=False: _counted(a, axis, keepdims)


@rule(np.sort)
def _sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, **_: Any) -> Node:
    x = _number(a)
    x = reshape(x, (x.size,)) if axis is None else x
    return construct.ordered("sort", x, one_axis(-1 if axis is None else axis, len(x.shape)), False)


@rule(np.median)
def _median(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Node:
    x = _number(a)
    axes = _settings(axis, len(x.shape))
    rest = [i for i in range(len(x.shape)) if i not in axes]
    moved = construct.transpose(x, (*rest, *axes))
    flat = reshape(moved, (*(x.shape[i] for i in rest), -1))
    n = flat.shape[-1]
    ordered = construct.ordered("sort", flat, len(rest), False)
    low, high = (construct.sliced(ordered, len(rest), k) for k in ((n - 1) // 2, n // 2))
    return kept(low if n % 2 else (low + high) / 2, x, axes, keepdims is True)


def _argument(op: str) -> Callable[..., Node]:
    def build(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Node:
        x = _number(a)
        flat = reshape(x, (x.size,)) if axis is None else x
        i = one_axis(0 if axis is None else int(axis), len(flat.shape))
        return kept(
            construct.argument(op, flat, i), x, axes_of(None if axis is None else i, len(x.shape)), keepdims is True
        )

    return build


RULES[np.argmax], RULES[np.argmin] = _argument("argmax"), _argument("argmin")


@rule(np.argsort)
def _argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, **_: Any) -> Node:
    x = _number(a)
    x = reshape(x, (x.size,)) if axis is None else x
    return construct.ordered("argsort", x, one_axis(-1 if axis is None else axis, len(x.shape)), False)


# Products


@rule(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Node:
    x, y = _number(a), _number(b)
    if not x.shape or not y.shape:
        return call("mul", x, y)
    if len(x.shape) <= 2 and len(y.shape) <= 2:
        return construct.matmul(x, y)
    return _tensordot(x, y, ([len(x.shape) - 1], [max(len(y.shape) - 2, 0)]))


@rule(np.inner)
def _inner(a: Any, b: Any) -> Node:
    x, y = _number(a), _number(b)
    if not x.shape or not y.shape:
        return call("mul", x, y)
    return _tensordot(x, y, ([len(x.shape) - 1], [len(y.shape) - 1]))


@rule(np.vdot)
def _vdot(a: Any, b: Any) -> Node:
    x, y = _number(a), _number(b)
    return construct.matmul(reshape(x, (x.size,)), reshape(y, (y.size,)))


@rule(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Node:
    x, y = _number(a), _number(b)
    return construct.outer(reshape(x, (x.size,)), reshape(y, (y.size,)))


@rule(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    x, y = _number(a), _number(b)
    if isinstance(axes, int | np.integer):
        first, second = list(range(len(x.shape) - int(axes), len(x.shape))), list(range(int(axes)))
    else:
        first, second = ([int(side)] if isinstance(side, int | np.integer) else [int(i) for i in side] for side in axes)
    first, second = [i % len(x.shape) for i in first], [i % len(y.shape) for i in second]
    left, right = ([i for i in range(len(n.shape)) if i not in side] for n, side in ((x, first), (y, second)))
    rows, columns = [x.shape[i] for i in left], [y.shape[i] for i in right]
    inner = math.prod(x.shape[i] for i in first)
    one = reshape(construct.transpose(x, (*left, *first)), (math.prod(rows), inner))
    other = reshape(construct.transpose(y, (*second, *right)), (inner, math.prod(columns)))
    return reshape(construct.matmul(one, other), (*rows, *columns))


@rule(np.einsum)
def _einsum(subscripts: Any, *operands: Any, **_: Any) -> Node:
    if not isinstance(subscripts, str):
        subscripts, operands = _listed([subscripts, *operands])
    nodes = [_number(x) for x in operands]
    return FUNCTIONS["einsum"](_spelled(subscripts.replace(" ", ""), nodes), *nodes)


def _listed(operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts as text, and the operands, of `np.einsum(a, [0, 1], b, [1, 2], [0, 2])`."""

    def text(labels: Sequence[Any]) -> str:
        return "".join("..." if k is Ellipsis else chr(ord("a") + int(k)) for k in labels)

    terms = ",".join(map(text, operands[1 : len(operands) // 2 * 2 : 2]))
    result = f"->{text(operands[-1])}" if len(operands) % 2 else ""
    return terms + result, tuple(operands[: len(operands) // 2 * 2 : 2])


def _spelled(text: str, operands: Sequence[Node]) -> str:
    """Return subscripts with letters in the place of `...`."""
    if "..." not in text:
        return text
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    free = [c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in text]
    counts = [
        len(x.shape) - len(t.replace("...", "")) if "..." in t else 0 for t, x in zip(terms, operands, strict=True)
    ]
    letters = "".join(free[: max(counts)])
    full = [t.replace("...", letters[len(letters) - n :]) for t, n in zip(terms, counts, strict=True)]
    if not arrow:
        once = sorted(c for c in set(left.replace(",", "").replace(".", "")) if left.count(c) == 1)
        result = "..." + "".join(once)
    return f"{','.join(full)}->{result.replace('...', letters)}"


@rule(np.kron)
def _kron(a: Any, b: Any) -> Node:
    return FUNCTIONS["kron"](_number(a), _number(b))


@rule(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Node:
    x = _diagonal(a, offset, axis1, axis2)
    return construct.reduce("sum", x, (len(x.shape) - 1,))


# Shapes


@rule(np.reshape, view=True)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Node:
    shape = newshape if shape is None else shape
    sizes = tuple(int(n) for n in shape) if isinstance(shape, list | tuple | np.ndarray) else (int(shape),)
    x = lift(a)
    if order == "F":
        sizes = tuple(x.size // max(1, -math.prod(sizes)) if n == -1 else n for n in sizes)
        return _reversed(reshape(_reversed(x), sizes[::-1]))
    return reshape(x, sizes)


def _reversed(x: Node) -> Node:
    return construct.transpose(x, tuple(reversed(range(len(x.shape)))))


@rule(np.ravel, view=True)
def _ravel(a: Any, order: str = "C") -> Node:
    x = _reversed(lift(a)) if order == "F" else lift(a)
    return reshape(x, (x.size,))


@rule(np.transpose, np.permute_dims if hasattr(np, "permute_dims") else np.transpose, view=True)
def _transpose(a: Any, axes: Any = None) -> Node:
    x = lift(a)
    return _reversed(x) if axes is None else construct.transpose(x, tuple(one_axis(int(i), len(x.shape)) for i in axes))


@rule(np.swapaxes, view=True)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Node:
    x = lift(a)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return construct.transpose(x, tuple(order))


@rule(np.squeeze, view=True)
def _squeeze(a: Any, axis: Axis = None) -> Node:
    x = lift(a)
    axes = _settings(axis, len(x.shape))
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in axes or n != 1])


@rule(np.diagonal, view=True)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    x = lift(a)
    rank = len(x.shape)
    first, second = one_axis(axis1, rank), one_axis(axis2, rank)
    rest = [i for i in range(rank) if i not in (first, second)]
    x = construct.transpose(x, (first, second, *rest))
    low, up = max(0, -offset), max(0, offset)
    parts = (range(low, x.shape[0]), range(up, x.shape[1]), *map(range, x.shape[2:]))
    x = construct.diagonal(construct.index(x, parts))
    return construct.transpose(x, (*range(1, len(x.shape)), 0))


@rule(np.diag)
def _diag(v: Any, k: int = 0) -> Node:
    x = lift(v)
    if len(x.shape) == 2:
        return _diagonal(x, k)
    n = x.shape[0] + abs(k)
    if k == 0:
        return construct.from_diagonal(x, (n, n))
    inner = construct.from_diagonal(x, x.shape * 2)
    key = (range(max(0, -k), n - max(0, k)), range(max(0, k), n - max(0, -k)))
    return construct.scatter((n, n), [(key, inner)])


@rule(np.broadcast_to, view=True)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Node:
    return broadcast(lift(array), tuple(shape) if isinstance(shape, list | tuple) else (int(shape),))


@rule(np.concatenate)
def _concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, **_: Any) -> Node:
    parts = [_number(x) for x in arrays]
    if axis is None:
        parts, axis = [reshape(p, (p.size,)) for p in parts], 0
    return construct.concatenate(parts, one_axis(int(axis), len(parts[0].shape)))


@rule(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, **_: Any) -> Node:
    parts = [_number(x) for x in arrays]
    return construct.stack(parts, one_axis(int(axis), len(parts[0].shape) + 1))


@rule(np.repeat)
def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Node:
    x = lift(a)
    x = reshape(x, (x.size,)) if axis is None else x
    i = one_axis(0 if axis is None else int(axis), len(x.shape))
    return _taken(x, np.repeat(np.arange(x.shape[i]), repeats), i)


def _taken(x: Node, where: Any, axis: int) -> Node:
    from gradcli.graph.index_arrays import IndexArray, take

    return take(x, axis, IndexArray.of(where))


@rule(np.tile)
def _tile(A: Any, reps: Any) -> Node:
    x = lift(A)
    counts = tuple(int(n) for n in reps) if isinstance(reps, list | tuple | np.ndarray) else (int(reps),)
    return FUNCTIONS["tile"](x, *counts)


@rule(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Node:
    x = lift(a)
    flat = np.roll(np.arange(x.size).reshape(x.shape), shift, axis)
    if axis is not None and not isinstance(axis, tuple) and not isinstance(shift, tuple):
        return FUNCTIONS["roll"](x, int(shift), one_axis(int(axis), len(x.shape)))
    return _taken(reshape(x, (x.size,)), flat, 0)


@rule(np.flip, view=True)
def _flip(m: Any, axis: Axis = None) -> Node:
    x = lift(m)
    return construct.flip(x, _settings(axis, len(x.shape)))


def _triangle(op: str) -> Callable[..., Node]:
    return lambda m, k=0: FUNCTIONS[op](lift(m), int(k))


RULES[np.triu], RULES[np.tril] = _triangle("triu"), _triangle("tril")


@rule(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", **settings: Any) -> Node:
    x = lift(array)
    if mode == "constant" and np.any(settings.get("constant_values", 0)):
        raise InputError(
            "`np.pad` with `constant_values` other than 0 is not supported", hint="add them with `np.where`"
        )
    numbers = np.pad(np.arange(1, x.size + 1).reshape(x.shape), pad_width, mode, **settings)  # type: ignore[call-overload]
    if mode != "constant":
        if mode not in ("edge", "reflect", "symmetric", "wrap") or settings.get("reflect_type", "even") != "even":
            raise InputError(f'`np.pad` with `mode="{mode}"` is not supported')
        return _taken(reshape(x, (x.size,)), numbers - 1, 0)
    inside = np.argwhere(numbers)
    corner = inside.min(axis=0) if len(inside) else np.zeros(numbers.ndim, int)
    key = tuple(range(int(i), int(i) + n) for i, n in zip(corner, x.shape, strict=True))
    return construct.scatter(numbers.shape, [(key, x)])


# Choices


@rule(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Node:
    if x is None or y is None:
        raise InputError("`np.where(condition)` is indices, which depend on values", hint="`np.where(condition, a, b)`")
    return call("where", _condition(condition), _number(x), _number(y))


@rule(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Node:
    low, high = more.get("min", a_min), more.get("max", a_max)
    low, high = (None if b is None or b is _UNSET else _number(b) for b in (low, high))
    return FUNCTIONS["clip"](_number(a), low, high)


@rule(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Node:
    return FUNCTIONS["round"](_number(a), int(decimals))


@rule(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Node:
    limits = np.finfo(float)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    n = _number(x)
    n = construct.where(compare("eq", n, const(math.inf)), lift(float(high)), n)
    n = construct.where(compare("eq", n, const(-math.inf)), lift(float(low)), n)
    return construct.where(compare("ne", n, n), lift(float(nan)), n)


@rule(np.sinc)
def _sinc(x: Any) -> Node:
    n = _number(x) * const("pi")
    # At 0 the function is 1 with slope 0: a series takes the quotient's place there.
    near = call("abs", n) < Decimal("1e-4")
    safe = construct.where(near, 1, n)
    return construct.where(near, 1 - n**2 / 6 + n**4 / 120, call("sin", safe) / safe)


RULES |= dict.fromkeys((np.real, np.copy), lambda a, **_: call("identity", _number(a)))
RULES[np.real_if_close] = lambda a, tol=100: call("identity", _number(a))
RULES[np.imag] = lambda a: const(0, lift(a).shape)
RULES[np.fix] = lambda x, out=None: call("trunc", _number(x))


@rule(np.linspace)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, *_: Any, **__: Any) -> Node:
    first, last = _number(start), _number(stop)
    shape = broadcast_shapes([first.shape, last.shape])
    steps = np.arange(num) / max(1, num - 1 if endpoint else num)
    weights = reshape(lift(steps), (num, *(1,) * len(shape)))
    return first + (last - first) * weights


RULES[np.logspace] = lambda start, stop, num=50, endpoint=True, base=10.0, **_: call(
    "pow", lift(base), _linspace(start, stop, num, endpoint)
)


# Linear algebra


RULES[np.linalg.det] = lambda a: FUNCTIONS["det"](_number(a))
RULES[np.linalg.inv] = lambda a: FUNCTIONS["inv"](_number(a))


@rule(np.linalg.solve)
def _solve(a: Any, b: Any) -> Node:
    x, y = _number(a), _number(b)
    if len(y.shape) == 1 or y.shape != x.shape[:-1]:
        return FUNCTIONS["solve"](x, y)
    from gradcli.graph.matrices import solution

    return solution(x, y)  # NumPy 2: `b` is a stack of matrices unless it is one vector


@rule(np.linalg.slogdet)
def _slogdet(a: Any) -> tuple[Node, Node]:
    x = FUNCTIONS["det"](_number(a))
    return call("sign", x), call("log", call("abs", x))


class _Svd(NamedTuple):
    U: Any
    S: Any
    Vh: Any


class _Eigh(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


@rule(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Node | _Svd:
    x = _number(a)
    if not compute_uv:
        return matrices.svdvals(x)
    u, vh = (matrices.singular_vectors(op, x, full_matrices) for op in ("svd_u", "svd_vh"))
    return _Svd(u, matrices.svdvals(x), vh)


if hasattr(np.linalg, "svdvals"):
    RULES[np.linalg.svdvals] = lambda x, /: matrices.svdvals(_number(x))
RULES[np.linalg.eigvalsh] = lambda a, UPLO="L": matrices.eigvalsh(_mirrored(a, UPLO))


@rule(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> _Eigh:
    x = _mirrored(a, UPLO)
    return _Eigh(matrices.eigvalsh(x), matrices.eigvecsh(x))


def _mirrored(a: Any, triangle: str) -> Node:
    """Return the symmetric matrices of one triangle, the only one that LAPACK reads."""
    x = _number(a)
    matrices.check_square("eigh", x)
    lower = x if triangle.upper() == "L" else _swapaxes(x, -2, -1)
    return matrices.triangle("tril", lower) + _swapaxes(matrices.triangle("tril", lower, -1), -2, -1)


@rule(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Node:
    """Return L, or its transpose."""
    x = _number(a)
    matrices.check_square("cholesky", x)
    if x.shape[-1] > _CHOLESKY:
        raise InputError(f"`np.linalg.cholesky` is traced for matrices of at most {_CHOLESKY} rows")
    factor = matrices.cholesky(x)
    return _swapaxes(factor, -2, -1) if upper else factor


@rule(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    n = _number(x)
    if axis is None and ord is None:
        n = reshape(n, (n.size,))
    axes = _settings(axis, len(n.shape))
    if len(axes) == 2 and ord not in (None, "fro"):
        n, axes, ord = _matrix_norm(n, axes, ord)
    if ord in (None, 2, "fro"):
        result = construct.reduce("norm", n, axes)
    elif ord in (math.inf, -math.inf):
        result = construct.reduce("max" if ord > 0 else "min", call("abs", n), axes, "even")
    elif ord == 0:
        result = construct.reduce("sum", cast(compare("ne", n, const(0)), "float64"), axes)
    elif ord == 1:
        result = construct.reduce("sum", call("abs", n), axes)
    else:
        result = construct.reduce("sum", call("abs", n) ** lift(ord), axes) ** (1 / lift(ord))
    whole = lift(x)
    return kept(result, whole, axes_of(None, len(whole.shape)) if axis is None else axes, keepdims)


def _matrix_norm(n: Node, axes: tuple[int, ...], ord: Any) -> tuple[Node, tuple[int, ...], Any]:
    raise InputError(
        f"`np.linalg.norm` of a matrix with `ord={ord!r}` is not supported", hint="without `ord`, it is Frobenius's"
    )
