"""A tracer: an array with the node that computes it, beside its value.

NumPy calls `__array_ufunc__` and `__array_function__` in place of its own functions, and Python the operators.  A
tracer without a node is an array that does not depend on an input yet: `y = np.zeros(3)` before `y[0] = x`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from numpy._core import numeric

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array, exact
from gradcli.graph.construct import array_const
from gradcli.graph.names import identifier
from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.shapes import Shape
from gradcli.pyfunc.elements import element, is_basic, replaced, stacked
from gradcli.pyfunc.tape import aside, called, running

FUNCTIONS = (FunctionType, type(len), np.ufunc, type(np.sum))  # of NumPy and Python
REPLACEMENT_OF: dict[Any, Any] = {}  # of functions of NumPy's, SciPy's and Python's, as `patches` has them
_DEPTH = 0


def in_numpy() -> bool:
    """Return whether NumPy's own Python code is traced."""
    return _DEPTH > 0


@contextmanager
def namespace(names: MutableMapping[str, Any]) -> Iterator[None]:
    """Put the replacements where NumPy's own Python code looks up functions, within a block."""
    global _DEPTH
    with _within(names), _within(vars(numeric)):
        _DEPTH += 1
        try:
            yield
        finally:
            _DEPTH -= 1


@contextmanager
def _within(names: MutableMapping[str, Any]) -> Iterator[None]:
    functions = {n: f for n, f in names.items() if type(f) in FUNCTIONS and f in REPLACEMENT_OF}
    names.update({n: REPLACEMENT_OF[f] for n, f in functions.items()})
    try:
        yield
    finally:
        names.update(functions)


Rule = Callable[..., Any]
UFUNCS: dict[str, Rule] = {}  # the rule of a ufunc, by its name, which returns its node
OPS: dict[str, str] = {}  # the operation of a ufunc that is one
RULES: dict[Any, Rule] = {}  # the rule of another function
VIEWS: set[Any] = set()  # functions whose result may be a view of the first argument
COMPOSED: dict[Any, Rule] = {}  # functions that are composed of others

_NO_VALUE = "no value"  # the key of an error
_SAME = 1e-6  # to which a composed function and the original agree
_SHORT = 2**12  # elements of an array that are assigned one by one
_MEMORY = ("flags", "strides", "nbytes", "itemsize", "device")  # what an array of the same shape has, too


class Tracer:
    """An array while a function is traced: its node, and its value where that is known."""

    __slots__ = ("_base", "_cells", "_node", "_redo", "_seen", "_undo", "_value", "_version")

    def __init__(self, value: Any, node: Node | None = None) -> None:
        self._value = value
        self._node = node
        self._cells: dict[tuple[int, ...], Node] | None = None  # elements that were assigned since the node was made
        self._version = 0  # how often elements were assigned
        self._base: Tracer | None = None  # of which it is a view
        self._seen = 0

    # What it is

    @property
    def node(self) -> Node:
        """The node that computes it."""
        if self._base is not None:
            self._refresh()
        if self._cells:
            assert self._node is not None
            self._node, self._cells = stacked(self._node, self._cells, self._node.shape), None
        return self._node if self._node is not None else lift(self._value)

    @property
    def is_known(self) -> bool:
        """Whether it depends on no input."""
        if self._base is not None:
            self._refresh()
        return self._node is None

    @property
    def value(self) -> Any:
        """The value.

        Errors: `InputError` where the inputs have no values.
        """
        if self._value is None:
            raise InputError(
                "what is traced depends on a value here, and the inputs have none",
                hint="give a point with --at; with --points, write `np.where(condition, a, b)`, which chooses at each",
                key=_NO_VALUE,
            )
        return self._value

    @property
    def shape(self) -> Shape:
        """The shape."""
        if self._value is not None:
            return np.shape(self._value)
        return self.node.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        if self._value is not None:
            return np.asarray(self._value).dtype
        return np.dtype("bool" if self.node.dtype == "bool" else "float64")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # `isinstance(x, np.ndarray)` is what functions ask before they compute.
        return np.ndarray if self.shape or self._value is None or isinstance(self._value, np.ndarray) else np.float64

    def _refresh(self) -> None:
        """Recompute the node of a view after an assignment to the array."""
        base = self._base
        assert base is not None
        if base._base is not None:
            base._refresh()
        if base._version != self._seen:
            self._node, self._seen, self._cells = self._redo(base.node), base._version, None
            self._value = None if base._value is None else self._value
            self._version += 1

    def view_of(self, base: Tracer, redo: Rule, undo: Rule) -> Tracer:
        """Return the tracer as a view: `redo` returns its node from the array's, `undo` the array's from its node."""
        self._base, self._redo, self._undo, self._seen = base, redo, undo, base._version
        return self

    # Elements

    def __getitem__(self, key: Any) -> Any:
        key = _known_key(key)
        if self._base is not None:
            self._refresh()
        value = None if self._value is None else self._value[key]
        if self._cells and len(key) == self.ndim and all(type(k) is int for k in key):
            index = tuple(k + n if k < 0 else k for k, n in zip(key, self.shape, strict=True))
            if index in self._cells:
                return traced(self._cells[index], value)
        if self.is_known and not isinstance(value, np.ndarray):
            return value
        result = Tracer(value) if self.is_known else traced(element(self.node, key), value)
        is_view = isinstance(value, np.ndarray) and value.base is not None if value is not None else is_basic(key)
        if not is_view or not result.shape:
            return result  # a number, or a copy
        return result.view_of(self, lambda n: element(n, key), lambda n, new: replaced(n, key, new))

    def __setitem__(self, key: Any, new: Any) -> None:
        key = _known_key(key)
        fresh = isinstance(new, Tracer) and not new.is_known
        known = new._value if isinstance(new, Tracer) else new
        _check_assigned(self, new)
        if self.is_known and not fresh:
            self._value[key] = known
            return
        if self._node is None:
            self._node = _without(self._value, key)
        self._assign(key, lift(new))
        if known is None:
            self._value = None
        elif self._value is not None:
            self._value[key] = known
        self._version += 1
        view, base = self, self._base
        while base is not None:  # a view of a view changes both
            base._node, base._cells = view._undo(base.node, view.node), None
            base._value = None if known is None else base._value
            base._version += 1
            view._seen = base._version
            view, base = base, base._base

    def _assign(self, key: Any, new: Node) -> None:
        """Put a node at an index; single elements of a short array are put together later."""
        assert self._node is not None
        shape = self._node.shape
        if not new.shape and len(key) == len(shape) and all(type(k) is int for k in key) and self._node.size <= _SHORT:
            self._cells = self._cells or {}
            self._cells[tuple(k + n if k < 0 else k for k, n in zip(key, shape, strict=True))] = new
        else:
            self._node = replaced(self.node, key, new)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(self.shape[0]))

    # Values that decide what is traced

    def decided(self) -> Any:
        """Return the value, and note that what is traced depends on it."""
        if self.is_known:
            return self._value
        value = self.value
        tape = running()
        if tape is not None:
            tape.decided(self.node, np.array(value))
        return value

    def __bool__(self) -> bool:
        return bool(self.decided())

    def __index__(self) -> int:
        value = np.asarray(self.decided())
        if value.size != 1 or int(value.item()) != value.item():
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(value.item())

    def __int__(self) -> int:
        if self.is_known or np.asarray(self.value).dtype.kind in "biu":
            return self.__index__()
        raise _number_error("int", "`np.trunc(x)` keeps the function traced; its derivative is 0")

    def __float__(self) -> float:
        if self.is_known:
            return float(self._value)
        raise _number_error("float", "leave `float` out: the elements are floats already; NumPy's functions take them")

    def __complex__(self) -> complex:
        raise _number_error("complex", "complex numbers cannot be traced")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        if self.is_known:
            return np.array(self._value, dtype=dtype, copy=copy)
        raise untraceable(called())

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
        if self.is_known:
            attribute = getattr(self._value, name)
            if callable(attribute):
                return lambda *args, **settings: _linked(attribute(*args, **settings), (self,))
            return _linked(attribute, (self,))
        if name in _MEMORY:
            return getattr(np.empty(self.shape) if self._value is None else np.asarray(self._value), name)
        raise NotTracedError(f"`{called() or name}` cannot be traced", hint=_LISTED)

    def __repr__(self) -> str:
        return repr(self._value) if self._value is not None else f"<traced array of shape {self.shape}>"

    def __str__(self) -> str:
        return str(self._value) if self._value is not None else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self._value if self._value is not None else repr(self), spec)

    # NumPy's functions

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        return (
            apply(ufunc, *inputs)
            if method == "__call__" and not settings
            else ufunc_method(ufunc, method, inputs, settings)
        )

    def __array_function__(self, function: Any, types: Any, args: Any, settings: Any) -> Any:
        return apply(function, *args, **settings)


_OF_NUMPY = (np.ndarray, np.generic)


def traced(node: Node, value: Any) -> Tracer:
    """Return a tracer of a node.

    Errors: `InputError` where the node computes something of another shape than NumPy does.
    """
    if value is not None:
        if (value.shape if isinstance(value, _OF_NUMPY) else np.shape(value)) != node.shape:
            raise InputError(f"NumPy's result has the shape {np.shape(value)}, and that of `{node.op}` is {node.shape}")
        if _is_complex(value):
            raise InputError("complex numbers cannot be traced")
    tape = running()
    if tape is not None:
        tape.made(node)
    return Tracer(value, node)


def computed(node: Node, function: Rule, *args: Any) -> Tracer:
    """Return a tracer of a node, whose value is that of a function of arguments, where these are known."""
    known = known_values([*args])
    with aside():
        value = None if known is None else function(*known)
    return traced(node, value)


def ufunc_method(ufunc: np.ufunc, method: str, inputs: Any, settings: dict[str, Any]) -> Any:
    """Return the result of a ufunc, or of a method of it such as `reduce`, with what NumPy's have beside arrays.

    Errors: `InputError` where it has no derivative here.
    """
    out = settings.pop("out", None)
    out = out[0] if type(out) is tuple else out
    mask = settings.pop("where", True)
    settings = {k: v for k, v in settings.items() if not (k in ("dtype", "casting", "subok", "order") or v is True)}
    if method == "__call__" and not settings:
        if mask is True:
            return written_into(out, apply(ufunc, *inputs))
        # What is not computed has no derivative, and may have no value: 1 is in every domain.
        result = apply(ufunc, *(np.where(mask, x, 1) for x in inputs))
        return written_into(out, np.where(mask, result, np.nan if out is None else out))
    rule = COMPOSED.get((ufunc.__name__, method)) or (partial(_outer, ufunc) if method == "outer" else None)
    if getattr(ufunc, method) in RULES:  # np.maximum.accumulate
        rule = partial(apply, getattr(ufunc, method))
    if rule is None or mask is not True:
        raise _missing(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""))
    return written_into(out, rule(*inputs, **settings))


def _outer(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    return apply(ufunc, np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b))), b)


def verified(result: Any, original: Any, args: Any, settings: Any) -> Any:
    """Return the result of a function that is composed of others, if it is what the original computes.

    Errors: `InputError` where it is not, as with a setting that has another meaning in the original.
    """
    known = known_values([args, settings])
    parts = result if isinstance(result, tuple) else (result,)
    if known is None or not all(type(x) is Tracer and x._value is not None for x in parts):
        return result
    if any(isinstance(x, FunctionType | MethodType) for x in args):  # which would be called again
        return result
    with aside(), np.errstate(all="ignore"):
        values = original(*known[0], **known[1])
    for x, value in zip(parts, values if isinstance(result, tuple) else (values,), strict=False):
        size = np.max(np.abs(value), initial=0.0, where=np.isfinite(value))
        if np.shape(value) != x.shape or not np.allclose(x._value, value, _SAME, _SAME * size, equal_nan=True):
            raise _missing(original.__name__, " with these arguments")
    return result


def written_into(out: Any, result: Any) -> Any:
    """Return the result of a function, which is written into the array `out` where there is one.

    Errors: `InputError` where it depends on the inputs, and the array is no tracer.
    """
    if out is None:
        return result
    if type(result) is Tracer and not result.is_known:
        as_written(out)[...] = result
    else:
        out[...] = result._value if type(result) is Tracer else result
    return out


def as_written(array: Any) -> Tracer:
    """Return an array to which what is traced can be assigned.

    Errors: `InputError` where it is none.
    """
    if type(array) is not Tracer:
        raise _untraced_array()
    return array


def apply(function: Any, *args: Any, **settings: Any) -> Any:
    """Return the result of a NumPy function of tracers.

    Errors: `InputError` where it has no derivative here.
    """
    if type(function) is np.ufunc and not settings and function not in COMPOSED:
        return _elementwise(function, args)
    if settings.get("out") is not None:
        return written_into(settings.pop("out"), apply(function, *args, **settings))
    if function in COMPOSED:
        return verified(COMPOSED[function](*args, **settings), function, args, settings)
    known, depends = _values([args, settings])
    if not depends:
        with aside():
            result = function(*known[0], **known[1])
        return result if running() is None else _linked(result, args)  # another thread has numbers
    rule = UFUNCS.get(function.__name__) if isinstance(function, np.ufunc) else RULES.get(function)
    if rule is None:
        return _by_numpy(function, args, settings)
    _check_settings(function, settings)
    nodes = rule(*args, **settings)
    with aside():
        values = None if known is None else function(*known[0], **known[1])
    if isinstance(nodes, Node):
        result = traced(nodes, values)
        if values is not None:
            _link(result, args)
        elif function in VIEWS:
            _alias(result, function, args, settings)
        return result
    results = [traced(n, None if values is None else values[k]) for k, n in enumerate(nodes)]
    return type(nodes)(*results) if hasattr(nodes, "_fields") else type(nodes)(results)


def _check_settings(function: Any, settings: Any) -> None:
    """Check that settings change nothing that the rules do not know.

    Errors: `InputError` for integers as a result, and for a part of the elements.
    """
    if settings.get("dtype") is not None and np.dtype(settings["dtype"]).kind != "f":
        raise _missing(function.__name__, f" with `dtype={np.dtype(settings['dtype'])}`")
    where = settings.get("where", True)
    if where is not True and where is not getattr(np, "_NoValue", None):
        raise _missing(
            function.__name__, " with `where`", "choose the elements before: `x[mask]`, `np.where(mask, x, 0)`"
        )


def _elementwise(ufunc: np.ufunc, args: Any) -> Any:
    """Return the result of a ufunc of tracers and numbers, by the shortest way."""
    depends = False
    unknown = False
    values = []
    for x in args:
        if type(x) is Tracer:
            depends = depends or not x.is_known
            unknown = unknown or x._value is None
            values.append(x._value)
        else:
            if type(x) in (list, tuple) and contains(x):
                return apply(ufunc, *(np.array(a) if contains(a) else a for a in args))
            values.append(x)
    value = None if unknown else ufunc(*values)
    if not depends:
        return value if running() is None else mutable(value)
    name = ufunc.__name__
    op = OPS.get(name)
    if op is not None:
        nodes = [x.node if type(x) is Tracer else lift(x) for x in args]
        if all(n.dtype == "float64" for n in nodes):
            return traced(elementwise(op, *nodes), value)
    if name not in UFUNCS:
        raise _missing(f"{'np' if hasattr(np, name) else 'scipy.special'}.{name}")
    return traced(UFUNCS[name](*args), value)


def _linked(result: Any, args: Any) -> Any:
    """Return a result with arrays as tracers; one that shares an argument's memory is a view of that argument."""
    result = mutable(result)
    for part in result if isinstance(result, tuple | list) else (result,):
        if type(part) is Tracer:
            _link(part, args)
    return result


def _link(result: Tracer, args: Any) -> None:
    """Make a result a view of an argument, if it is in its memory: a transposed or a reshaped array."""
    memory = result._value
    if type(memory) is not np.ndarray or memory.base is None:
        return
    for x in args:
        if type(x) is not Tracer or x is result or type(x._value) is not np.ndarray or x.size < result.size:
            continue
        if np.may_share_memory(memory, x._value):
            _view(result, x, partial(_positions, memory, x._value))
            return


def _positions(view: Array, base: Array) -> Array:
    """Return which elements of an array those of a view are, by their addresses."""
    own, others = (
        np.tensordot(x.strides, np.indices(x.shape), 1) + x.__array_interface__["data"][0] for x in (view, base)
    )
    order = np.argsort(others, axis=None)
    return np.asarray(order[np.searchsorted(others.reshape(-1)[order], own)])


def _alias(result: Tracer, function: Any, args: Any, settings: Any) -> None:
    """Make a result without a value a view of the argument that it is made of."""
    for i, x in enumerate(args):
        if type(x) is Tracer and x.shape:
            _view(result, x, partial(_called, function, args, i, settings))
            return


def _called(function: Any, args: Any, i: int, settings: Any) -> Any:
    x = args[i]
    return np.asarray(function(*args[:i], np.arange(x.size).reshape(x.shape), *args[i + 1 :], **settings))


def _view(result: Tracer, x: Tracer, positions: Callable[[], Array]) -> None:
    """Make a result a view of an array, whose elements at some positions it has."""
    where = cache(lambda: (positions(),))

    def redo(n: Node) -> Node:
        return element(construct.reshape(n, (n.size,)), where())

    def undo(n: Node, new: Node) -> Node:
        return construct.reshape(replaced(construct.reshape(n, (n.size,)), where(), new), n.shape)

    result.view_of(x, redo, undo)


def _values(values: Any) -> tuple[Any, bool]:
    """Return arguments with values for tracers (None if one is unknown), and whether any depends on inputs."""
    depends = unknown = False

    def plain(x: Any) -> Any:
        nonlocal depends, unknown
        if type(x) is Tracer:
            depends = depends or not x.is_known
            unknown = unknown or x._value is None
            return x._value
        if type(x) in (list, tuple):
            return type(x)(map(plain, x))
        if type(x) is dict:
            return {name: plain(value) for name, value in x.items()}
        return x

    result = plain(values)
    return (None if unknown else result), depends


def known_values(values: Any) -> Any:
    """Return lists with values in the place of tracers; None where one is unknown."""
    return _values(values)[0]


def _by_numpy(function: Any, args: Any, settings: Any) -> Any:
    """Return the result of a function that NumPy has written in Python, by tracing its calls.

    Errors: `InputError` where it goes on in C; what NumPy raises for these values.
    """
    implementation: Any = getattr(function, "_implementation", function)
    name = f"{getattr(function, '__module__', None) or 'np'}.{function.__name__}".replace("numpy", "np")
    known = known_values([args, settings])
    if known is not None:
        with aside():
            value = function(*known[0], **known[1])
        if any(_is_complex(part) for part in (value if type(value) is tuple else (value,))):
            raise InputError(f"`{name}` returns complex numbers, which cannot be traced")
    if getattr(implementation, "__code__", None) is None or name in _IN_C:
        raise _missing(name)
    try:
        with namespace(implementation.__globals__):
            return implementation(*args, **settings)
    except (AttributeError, TypeError, InputError) as error:  # not for the values: NumPy has computed with them
        if isinstance(error, InputError) and error.key == _NO_VALUE:
            raise
        raise _missing(name) from None


def _is_complex(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind == "c"


_IN_C = frozenset(f"np.linalg.{name}" for name in ("eig", "eigvals", "qr", "pinv", "matrix_rank"))


def mutable(result: Any) -> Any:
    """Return an array as a tracer, to which elements that are traced can be assigned; other results as they are."""
    kind = type(result)
    if kind is np.ndarray:
        return Tracer(result) if result.dtype.kind in "fiub" else result
    if kind in (tuple, list):
        return kind(map(mutable, result))
    return kind(*map(mutable, result)) if isinstance(result, tuple) and hasattr(result, "_fields") else result


def lift(x: Any) -> Node:
    """Return a tracer, an array, a number or a list of them as a node.

    Errors: `InputError` for anything else.
    """
    if type(x) is Tracer:
        return x.node
    if type(x) is int or (type(x) is float and x):
        node = _NUMBERS.get((x, type(x)))
        if node is None:
            node = _NUMBERS[x, type(x)] = const(exact(x))
            if len(_NUMBERS) > _SHORT:
                _NUMBERS.clear()
        return node
    if isinstance(x, Node):
        return x
    if type(x) in (list, tuple) and contains(x):
        return construct.stack([lift(element) for element in x])
    return _array(np.asarray(x))


_NUMBERS: dict[Any, Node] = {}  # constants, which traces share


def _array(array: Array) -> Node:
    """Return an array as a constant, the same node each time while the array does not change."""
    tape = running()
    if array.size <= construct.LISTED or tape is None or not tape.lines:
        return array_const(np.array(array) if array.size > construct.LISTED else array)
    _, node = tape.constants.get(id(array), (None, None))
    if node is None or not np.array_equal(node.settings[0].array, array):
        node = array_const(np.array(array))
        tape.constants[id(array)] = (array, node)
    assert node is not None
    return node


def contains(x: Any) -> bool:
    """Return whether there is a tracer in nested lists."""
    if type(x) not in (list, tuple):
        return type(x) is Tracer
    kinds = set(map(type, x))
    return Tracer in kinds or (not kinds.isdisjoint((list, tuple)) and any(map(contains, x)))


def _known_key(key: Any) -> Any:
    """Return an index in which nothing is traced; a single one is a tuple."""
    keys = key if type(key) is tuple else (key,)
    return tuple(_known_index(k) for k in keys)


def _known_index(k: Any) -> Any:
    if type(k) is Tracer:
        value = np.asarray(k.decided())
        if value.dtype.kind == "f":
            raise IndexError("only integers, slices, ellipsis, numpy.newaxis and integer or boolean arrays are indices")
        return value if value.shape else value.item()
    if type(k) is slice:
        return slice(*(p if p is None else p.__index__() for p in (k.start, k.stop, k.step)))
    return int(k) if isinstance(k, np.integer) else k


def _check_assigned(target: Tracer, new: Any) -> None:
    if isinstance(new, Tracer) and target.dtype.kind in "biu" and new.dtype.kind == "f":
        raise InputError(
            f"an array of {target.dtype} cuts off the fraction of what is assigned to it",
            hint="make it an array of floats: `np.zeros(n)`, or `np.array([...], dtype=float)`",
        )


def _without(value: Array, key: Any) -> Node:
    """Return a known array as a constant, 0 where it is assigned to."""
    rest = np.array(value, float)
    rest[key] = 0
    return array_const(rest) if rest.any() else const(0, rest.shape)


def _number_error(kind: str, way_out: str) -> InputError:
    """Return the error of a number that is made a Python number, by `float` itself or by what calls it."""
    if (written := called() or kind) != kind:
        return untraceable(written)
    return InputError(f"{kind}(x) is a number that does not depend on the inputs any more", hint=way_out)


class NotTracedError(InputError, AttributeError):
    """An attribute of arrays that tracers do not have; `hasattr` is False."""


_LISTED = "`gradcli explain functions` lists what can be traced"


def untraceable(written: str) -> InputError:
    """Return the error of what computes with numbers alone: a function, or the assignment to an element."""
    if written.endswith("]"):
        return _untraced_array(written.partition("[")[0])
    if written.endswith(".dot"):
        return InputError(f"`{written}` computes with numbers alone", hint=f"`{written[:-4]} @ …` is traced")
    return InputError(f"`{written}` cannot be traced" if written else "this computes with numbers alone", hint=_LISTED)


def _missing(name: str, when: str = "", way_out: str = _LISTED) -> InputError:
    """Return the error of a function that cannot be traced, by the name that the user has written."""
    written = called()
    if when:
        return InputError(f"`{written or name}` cannot be traced{when}", hint=way_out)
    if not written or written.rpartition(".")[2] == name.rpartition(".")[2]:
        return untraceable(written or name)
    return InputError(f"`{written}` cannot be traced: it calls `{name}`", hint=_LISTED)


def _untraced_array(name: str = "") -> InputError:
    named = name if name.isidentifier() else "a"
    return InputError(
        "an array of numbers cannot hold what depends on the inputs",
        hint=f"make a copy in the function first: `{named} = np.array({named})`",
    )


# Operators


def _operator(ufunc: np.ufunc) -> Rule:
    return lambda self, other: apply(ufunc, self, other)


def _reflected(ufunc: np.ufunc) -> Rule:
    return lambda self, other: apply(ufunc, other, self)


def _in_place(ufunc: np.ufunc) -> Rule:
    def assign(self: Tracer, other: Any) -> Tracer:
        result = apply(ufunc, self, other)
        if not self.shape:
            return result  # type: ignore[no-any-return]  # Python's numbers are not changed in place
        if np.shape(result) != self.shape:
            raise ValueError(f"non-broadcastable output operand with shape {self.shape}")
        self[...] = result
        return self

    return assign


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}.items():  # fmt: skip
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))
    setattr(Tracer, f"__r{_name}__", _reflected(_ufunc))
    setattr(Tracer, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
    setattr(Tracer, f"__{_name}__", lambda self, _ufunc=_ufunc: apply(_ufunc, self))


# Arguments and results that are made of arrays: lists, tuples, dictionaries and dataclasses of them


Leaf = Callable[[str, Any], Any]


def mapped(tree: Any, name: str, leaf: Leaf) -> Any:
    """Return a tree of the same form, with `leaf(name, number)` in the place of each number or array.

    The name is made of the parameter's and of the keys: `params["W"][0]` is `params_W_0`.  Text, booleans, None and
    other objects stay as they are.

    >>> mapped({"W": [1.0, 2.0], "kind": "tanh"}, "p", lambda name, x: name)
    {'W': ['p_W_0', 'p_W_1'], 'kind': 'tanh'}
    """
    if is_number(tree):
        return leaf(name, tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(x, _inner(name, n), leaf) for n, x in zip(tree._fields, tree, strict=True)))
    if type(tree) in (list, tuple):
        return type(tree)(mapped(x, _inner(name, k), leaf) for k, x in enumerate(tree))
    if isinstance(tree, dict):
        return {key: mapped(x, _inner(name, key), leaf) for key, x in tree.items()}
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{f.name: mapped(getattr(tree, f.name), _inner(name, f.name), leaf)
                                for f in fields(tree) if f.init})  # fmt: skip
    return tree


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Return the numbers and arrays in a tree, with their names.

    >>> list(leaves((1.0, [2.0]), "y"))
    [('y_0', 1.0), ('y_1_0', 2.0)]
    """
    result: list[tuple[str, Any]] = []
    mapped(tree, name, lambda key, x: result.append((key, x)))
    return iter(result)


def is_number(x: Any) -> bool:
    """Return whether something is a real number or an array of them, which a derivative may be taken by."""
    if type(x) is Tracer:
        return True
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fiu"
    return isinstance(x, float | int | np.floating | np.integer) and not isinstance(x, bool)


def _inner(name: str, key: Any) -> str:
    return identifier(f"{name}_{key}") if name else str(key)
