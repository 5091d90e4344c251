"""A tracer: an array with the node that computes it, beside its value.

NumPy calls `__array_ufunc__` and `__array_function__` in place of its own functions, and Python the operators.  A
tracer without a node is an array that does not depend on an input yet: `y = np.zeros(3)` before `y[0] = x`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.construct import array_const
from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.shapes import Shape
from gradcli.graph.weights import exact
from gradcli.pyfunc.elements import element, is_basic, replaced, stacked
from gradcli.pyfunc.tape import aside, running

Rule = Callable[..., Any]
UFUNCS: dict[str, Rule] = {}  # the rule of a ufunc, by its name, which returns its node
OPS: dict[str, str] = {}  # the operation of a ufunc that is one
RULES: dict[Any, Rule] = {}  # the rule of another function
VIEWS: set[Any] = set()  # functions whose result may be a view of the first argument
COMPOSED: dict[Any, Rule] = {}  # functions that are composed of others

_SHORT = 2**12  # elements of an array that are assigned one by one
_IN_PLACE = "assign the result to a name instead"


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
        if self._base is not None:
            base = self._base
            base._node, base._cells = self._undo(base.node, self.node), None
            base._value = None if known is None else base._value
            base._version += 1
            self._seen = base._version

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
        raise _lost("int(x)", "`np.trunc(x)` keeps the function traced; its derivative is 0")

    def __float__(self) -> float:
        if self.is_known:
            return float(self._value)
        raise _lost("float(x)", "leave `float` out: the elements are floats already; NumPy's functions take them")

    def __complex__(self) -> complex:
        raise _lost("complex(x)", "complex numbers are not supported")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        if self.is_known:
            return np.array(self._value, dtype=dtype)
        raise _lost(
            "an array that is no longer traced",
            "compiled code, such as SciPy's, computes numbers alone: write it with NumPy's functions",
        )

    def __repr__(self) -> str:
        return repr(self._value) if self._value is not None else f"<traced array of shape {self.shape}>"

    def __str__(self) -> str:
        return str(self._value) if self._value is not None else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self._value if self._value is not None else repr(self), spec)

    # NumPy's functions

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        if method == "__call__" and not settings:
            return apply(ufunc, *inputs)
        if any(settings.pop(name, None) is not None for name in ("out",)):
            raise InputError(f"`np.{ufunc.__name__}` is traced without `out`", hint=_IN_PLACE)
        settings = {k: v for k, v in settings.items() if not (k in ("dtype", "casting", "subok") or v is True)}
        from_ufunc = COMPOSED.get((ufunc.__name__, method))
        if method != "__call__" and from_ufunc is not None:
            return from_ufunc(*inputs, **settings)
        if method != "__call__" or settings:
            what = f".{method}" if method != "__call__" else f" with `{next(iter(settings))}`"
            raise _missing(f"np.{ufunc.__name__}{what}")
        return apply(ufunc, *inputs)

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
        if isinstance(value, _OF_NUMPY) and value.dtype.kind == "c":
            raise InputError("complex numbers are not supported")
    tape = running()
    if tape is not None:
        tape.made(node)
    return Tracer(value, node)


def apply(function: Any, *args: Any, **settings: Any) -> Any:
    """Return the result of a NumPy function of tracers.

    Errors: `InputError` where it has no derivative here.
    """
    if type(function) is np.ufunc and not settings and function not in COMPOSED:
        return _elementwise(function, args)
    if function in COMPOSED and settings.get("out") is None:
        return COMPOSED[function](*args, **settings)
    known, depends = _values([args, settings])
    if not depends:
        with aside():
            return mutable(function(*known[0], **known[1]))
    rule = UFUNCS.get(function.__name__) if isinstance(function, np.ufunc) else RULES.get(function)
    if rule is None:
        return _by_numpy(function, args, settings)
    if settings.get("out") is not None:
        raise InputError(f"`np.{function.__name__}` is traced without `out`", hint=_IN_PLACE)
    nodes = rule(*args, **settings)
    with aside():
        values = None if known is None else function(*known[0], **known[1])
    if isinstance(nodes, Node):
        result = traced(nodes, values)
        if function in VIEWS and (values is None or getattr(values, "base", None) is not None):
            _alias(result, function, args, settings)
        return result
    results = [traced(n, None if values is None else values[k]) for k, n in enumerate(nodes)]
    return type(nodes)(*results) if hasattr(nodes, "_fields") else type(nodes)(results)


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
        return mutable(value)
    name = ufunc.__name__
    op = OPS.get(name)
    if op is not None:
        nodes = [x.node if type(x) is Tracer else lift(x) for x in args]
        if all(n.dtype == "float64" for n in nodes):
            return traced(elementwise(op, *nodes), value)
    if name not in UFUNCS:
        raise _missing(f"{'np' if hasattr(np, name) else 'scipy.special'}.{name}")
    return traced(UFUNCS[name](*args), value)


def _alias(result: Tracer, function: Any, args: Any, settings: Any) -> None:
    """Make a result a view of the argument whose memory it has: a transposed or a reshaped array."""
    for i, x in enumerate(args):
        if type(x) is Tracer and x.shape and (x._value is None or np.may_share_memory(result._value, x._value)):
            _view(result, x, partial(_called, function, args, i, settings))
            return


def _called(function: Any, args: Any, i: int, settings: Any, x: Array) -> Any:
    return function(*args[:i], x, *args[i + 1 :], **settings)


def _view(result: Tracer, x: Tracer, function: Callable[[Array], Any]) -> None:
    """Make a result, whose elements a function selects from an array, a view of the array."""
    where = cache(lambda: (np.asarray(function(np.arange(x.size).reshape(x.shape))),))

    def redo(n: Node) -> Node:
        return element(construct.reshape(n, (n.size,)), where())

    def undo(n: Node, new: Node) -> Node:
        return construct.reshape(replaced(construct.reshape(n, (n.size,)), where(), new), n.shape)

    result.view_of(x, redo, undo)


def _values(values: Any) -> tuple[Any, bool]:
    """Return arguments with values in the place of tracers, None where one is unknown, and whether inputs matter."""
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
    implementation: Any = getattr(function, "_implementation", None)
    name = f"{getattr(function, '__module__', 'np')}.{function.__name__}".replace("numpy", "np")
    if getattr(implementation, "__code__", None) is None or name in _IN_C:
        raise _missing(name)
    known = known_values([args, settings])
    if known is not None:
        with aside():
            function(*known[0], **known[1])
    from gradcli.pyfunc.patches import namespace

    try:
        with namespace(implementation.__globals__):
            return implementation(*args, **settings)
    except (AttributeError, TypeError):  # not for the values: NumPy has computed with them
        raise _missing(name) from None


_IN_C = frozenset(
    f"np.linalg.{name}"
    for name in (
        "eig",
        "eigvals",
        "qr",
        "lstsq",
        "pinv",
        "matrix_rank",
    )
)


def mutable(result: Any) -> Any:
    """Return an array as a tracer, to which elements that are traced can be assigned; other results as they are."""
    return Tracer(result) if type(result) is np.ndarray and result.dtype.kind in "fiub" else result


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
    return type(x) is Tracer or (type(x) in (list, tuple) and any(map(contains, x)))


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


def _lost(what: str, way_out: str) -> InputError:
    return InputError(f"{what} is a number that does not depend on the inputs any more", hint=way_out)


def _missing(name: str) -> InputError:
    return InputError(f"`{name}` is not supported", hint="`gradcli explain functions` lists what is")


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
