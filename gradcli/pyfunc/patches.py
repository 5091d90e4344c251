"""Patches of NumPy's and SciPy's modules while a function is traced: for what NumPy's protocols do not reach.

NumPy asks an array for its function, and not the elements of a list: `np.sqrt([x, y])` has to see the tracers in it.
`np.zeros` and the like return tracers, to which elements can be assigned; `math.exp` of a tracer is `np.exp`; random
numbers are errors.  Afterwards the modules are as before, and other threads see no difference.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from functools import cache, wraps
from importlib import import_module
from inspect import unwrap
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.operations import OPERATIONS
from gradcli.pyfunc import scipy_functions
from gradcli.pyfunc.borrowed import Borrowed, names_in
from gradcli.pyfunc.tape import NUMPY, aside, is_users, running
from gradcli.pyfunc.tracer import (
    REPLACEMENT_OF,
    UFUNCS,
    Rule,
    Tracer,
    apply,
    contains,
    in_numpy,
    known_values,
    lift,
    mutable,
    namespace,
    traced,
    ufunc_method,
    verified,
)

_CREATE = (
    "zeros", "ones", "empty", "full", "eye", "identity", "arange", "tri", "fromiter", "indices", "zeros_like",
    "ones_like", "empty_like", "full_like",
)  # fmt: skip
_ARRAYS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require")
_AS_THEY_ARE = {"errstate", "printoptions", "seterr", "geterr", "broadcast_shapes"}
_RANDOM = (
    "rand", "randn", "random", "random_sample", "randint", "normal", "uniform", "choice", "permutation", "shuffle",
    "standard_normal", "exponential", "poisson", "binomial", "multivariate_normal", "gamma", "beta",
)  # fmt: skip
# Functions of `math`, which has C's names, as NumPy's.
_MATH = {
    name: getattr(np, row.spelling_in("numpy"))
    for row in OPERATIONS.values()
    if row.broadcasts and hasattr(math, name := row.spelling_in("c")) and row.spelling_in("numpy")
}
_MATH |= {n: getattr(np, n) for n in ("exp2", "degrees", "radians", "copysign", "trunc", "isnan", "isinf", "isfinite")
          if hasattr(math, n)}  # fmt: skip
_OF_SEQUENCES: dict[str, Callable[..., Any]] = {
    "fsum": lambda terms: np.sum(np.array([*terms])),
    "dist": lambda p, q: np.linalg.norm(np.asarray(p) - np.asarray(q)),
}
_SPECIAL = {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "gammaln"}  # of `math`, and SciPy's names
_LOCK = RLock()
_ENTERED = 0  # how often `patched` is, one within another


def _created(original: Callable[..., Any]) -> Rule:
    """Return a NumPy function that creates arrays (`zeros`, `full`, `empty_like`), for traced code.

    Its array may be assigned tracers element by element; in other code it is the original's.
    """

    @wraps(original)
    def create(*args: Any, **settings: Any) -> Any:
        if running() is None or not (_is_traced_code() or contains(args)):
            return original(*args, **settings)
        if original.__name__ == "fromiter":
            listed = [*args[0]]
            return np.array(listed) if contains(listed) else mutable(original(listed, *args[1:], **settings))
        if original.__name__ == "full_like" or original.__name__ == "full":
            value: Any = args[1] if len(args) > 1 else settings.get("fill_value")
            if contains(value):
                shape = np.shape(args[0]) if original.__name__ == "full_like" else args[0]
                return np.broadcast_to(value, shape) + 0.0
        if args and type(args[0]) is Tracer and original.__name__.endswith("_like"):
            args = (np.empty(args[0].shape, args[0].dtype), *args[1:])
        with aside():
            return mutable(original(*args, **settings))

    return create


def _converted(original: Callable[..., Any]) -> Rule:
    """Return a NumPy function that converts to arrays (`array`, `asarray`) and takes tracers, and lists of them."""

    @wraps(original)
    def convert(obj: Any, *args: Any, **settings: Any) -> Any:
        if running() is None:
            return original(obj, *args, **settings)
        dtype = settings.get("dtype", args[0] if args else None)
        if contains(obj):
            result = _of_tracers(obj, dtype, copy=original is np.array and settings.get("copy") is not False)
            least = settings.get("ndmin", 0)
            return result if result.ndim >= least else result.reshape((1,) * (least - result.ndim) + result.shape)
        result = original(obj, *args, **settings)
        return mutable(result) if _is_traced_code() and result is not obj else result

    return convert


def _of_tracers(obj: Any, dtype: Any, copy: bool) -> Any:
    kind = None if dtype is None else np.dtype(dtype).kind
    if kind in ("i", "u", "b") and not (type(obj) is Tracer and obj.dtype.kind in "biu" and kind in "iu"):
        raise InputError(f"an array of {np.dtype(dtype)} has no derivative", hint="leave out `dtype`")
    if type(obj) is Tracer:
        return apply(np.copy, obj) if copy else obj
    known = known_values(obj)
    return traced(lift(obj), None if known is None else np.array(known, float))


def _dispatched(original: Callable[..., Any]) -> Rule:
    """Return a function of NumPy's that sees the tracers in lists; traced code may assign tracers to its arrays."""

    @wraps(original)
    def call(*args: Any, **settings: Any) -> Any:
        if running() is None:
            return original(*args, **settings)
        if contains(args) or (settings and contains([*settings.values()])):
            return apply(original, *args, **settings)
        if not _is_traced_code():
            return original(*args, **settings)
        with aside() if in_numpy() else nullcontext():  # what NumPy's functions call themselves
            result = original(*args, **settings)
        return mutable(result)

    return call


class _Ufunc:
    """A ufunc that sees the tracers in lists."""

    __slots__ = ("_original",)

    def __init__(self, original: np.ufunc) -> None:
        self._original = original

    def __call__(self, *args: Any, **settings: Any) -> Any:
        if running() is None or not contains(args):
            return self._original(*args, **settings)
        return ufunc_method(self._original, "__call__", args, settings)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._original, name)
        if name not in ("reduce", "accumulate", "outer", "at", "reduceat"):
            return attribute

        def method(*args: Any, **settings: Any) -> Any:
            if running() is None or not contains(args):
                return attribute(*args, **settings)
            return ufunc_method(self._original, name, args, settings)

        return method

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ufunc

    def __eq__(self, other: object) -> bool:
        return self._original == (other._original if type(other) is _Ufunc else other)

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


class _Joined:
    """`np.r_` or `np.c_`, which NumPy has written in Python."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __getitem__(self, key: Any) -> Any:
        if running() is None:
            return self._original[key]
        if not contains(key if type(key) is tuple else (key,)):
            return mutable(self._original[key])
        with namespace(vars(sys.modules[type(self._original).__module__])):
            return self._original[key]


def _vectorized(original: Callable[..., Any]) -> Rule:
    """Return the call of an `np.vectorize`, which computes its function at each element."""

    @wraps(original)
    def call(self: Any, *args: Any, **settings: Any) -> Any:
        if running() is None or not contains(args) or settings or self.signature is not None or self.excluded:
            return original(self, *args, **settings)
        arrays = np.broadcast_arrays(*map(np.asarray, args))
        shape = np.shape(arrays[0])
        function = REPLACEMENT_OF.get(self.pyfunc, self.pyfunc)  # `np.vectorize(math.erf)`
        results = [function(*(a[k] for a in arrays)) for k in np.ndindex(shape)]
        if type(results[0]) is tuple:
            return tuple(np.reshape(np.array([r[i] for r in results]), shape) for i in range(len(results[0])))
        return np.reshape(np.array(results), shape)

    return call


def _mathematical(original: Callable[..., Any], function: Callable[..., Any]) -> Rule:
    def call(*args: Any) -> Any:
        if running() is not None and contains(args):
            if original is math.log and len(args) > 1:
                return np.log(args[0]) / np.log(args[1])
            return function(*args)
        return original(*args)

    return call


def _random(name: str, original: Callable[..., Any]) -> Rule:
    def call(*args: Any, **settings: Any) -> Any:
        if running() is None or not _is_traced_code():
            return original(*args, **settings)
        raise InputError(
            f"`{name}` gives the function another value at each call, and no derivative",
            hint="make the numbers before, and pass them as a parameter; or `np.random.default_rng(0)` with a seed",
        )

    return call


def _is_traced_code() -> bool:
    """Return whether the caller of a patched function is the user's code, or NumPy's own Python code."""
    file = sys._getframe(2).f_code.co_filename
    return is_users(file) or (in_numpy() and file.startswith(NUMPY))


def _seeded(original: Callable[..., Any]) -> Rule:
    def call(*args: Any, **settings: Any) -> Any:
        if running() is not None and _is_traced_code() and not args and settings.get("seed") is None:
            raise InputError("`default_rng()` without a seed differs from call to call", hint="`default_rng(0)`")
        return original(*args, **settings)

    return call


@cache
def _replacements() -> dict[Any, dict[str, Any]]:
    """Return the patched functions of each module."""
    numpy = {n: f for n, f in _seeing(np).items() if n not in _AS_THEY_ARE}
    numpy |= {n: _created(getattr(np, n)) for n in _CREATE} | {n: _converted(getattr(np, n)) for n in _ARRAYS}
    numpy |= {"r_": _Joined(np.r_), "c_": _Joined(np.c_)}
    mathematical = {n: _mathematical(getattr(math, n), f) for n, f in _MATH.items()}
    mathematical |= {n: _mathematical(getattr(math, n), _special(s)) for n, s in _SPECIAL.items()}
    mathematical |= {n: _mathematical(getattr(math, n), f) for n, f in _OF_SEQUENCES.items()}
    numbers = {n: _random(f"np.random.{n}", getattr(np.random, n)) for n in _RANDOM if hasattr(np.random, n)}
    numbers["default_rng"] = _seeded(np.random.default_rng)
    functions = {
        n: _random(f"random.{n}", getattr(random, n)) for n in ("random", "uniform", "gauss", "choice", "randint")
    }
    return {np: numpy, np.linalg: _seeing(np.linalg), math: mathematical, np.random: numbers, random: functions}


def _seeing(module: Any) -> dict[str, Any]:
    """Return the functions of a module that see the tracers in lists."""
    functions = {n: f for n, f in vars(module).items() if not n.startswith("_")}
    return {
        n: _Ufunc(f) if type(f) is np.ufunc else _dispatched(f)
        for n, f in functions.items() if type(f) in (np.ufunc, FunctionType, type(np.sum), type(np.frombuffer))
    }  # fmt: skip


def _special(name: str) -> Rule:
    def call(x: Tracer) -> Tracer:
        value = None if x._value is None else getattr(math, {"gammaln": "lgamma"}.get(name, name))(x._value)
        return traced(UFUNCS[name](x), None if value is None else np.float64(value))

    return call


class patched:
    """Within a block, replace functions of NumPy's and SciPy's modules, and make the user's arrays tracers.

    `roots` are the functions and objects from which the user's modules, closures and objects are found; functions
    that these have imported by name are replaced, too.
    """

    __slots__ = ("_borrowed", "_roots")

    def __init__(self, *roots: Any) -> None:
        self._roots = roots

    def __enter__(self) -> Borrowed:
        """Replace the functions of the modules once for all nested blocks."""
        global _ENTERED
        _LOCK.acquire()
        try:
            if not _ENTERED:
                _add_scipy(self._roots)
                for module, kind in _modules():
                    module.__class__ = kind
                for owner, name, function, _ in _METHODS:
                    setattr(owner, name, function)
            _ENTERED += 1
            self._borrowed = Borrowed(self._roots)
        except BaseException:
            _LOCK.release()
            raise
        return self._borrowed

    def __exit__(self, *_: object) -> None:
        global _ENTERED
        self._borrowed.give_back()
        _ENTERED -= 1
        if not _ENTERED:
            for module, kind in _modules():
                module.__class__ = kind.__base__
            for owner, name, _function, original in _METHODS:
                setattr(owner, name, original)
        _LOCK.release()


@cache
def _modules() -> list[tuple[Any, Any]]:
    """Return each module, and the class that it has while its functions are replaced: of all of them at once."""
    return [_patch(module, new) for module, new in _replacements().items()]


def _patch(module: Any, new: dict[str, Any]) -> tuple[Any, Any]:
    REPLACEMENT_OF.update({getattr(module, n): f for n, f in new.items()})
    # A property goes before what the module has under its name.
    seen = {n: property(lambda _, f=f: f) for n, f in new.items()}  # type: ignore[misc]
    return module, type("module", (type(module),), seen)


# Methods of classes: their owner, name, replacement and original.
_METHODS: list[tuple[Any, str, Any, Any]] = [
    (np.vectorize, "__call__", _vectorized(np.vectorize.__call__), np.vectorize.__call__)
]
_SCIPY = ("scipy.special", "scipy.linalg", "scipy.spatial.distance", "scipy.stats")
_ADDED: set[str] = set()


def _add_scipy(roots: Iterable[Any]) -> None:
    """Add the replacements of those modules of SciPy's that are loaded, or that the functions will import."""
    for root in roots:
        names = names_in(code) if (code := getattr(unwrap(root), "__code__", None)) else set()
        for name in _SCIPY:
            package, _, inner = name.rpartition(".")
            if name not in _ADDED and (name in names or {package, inner} <= names):
                with suppress(ImportError):  # the function may have a way without it
                    import_module(name)
    for name in [n for n in _SCIPY if n in sys.modules and n not in _ADDED]:
        _ADDED.add(name)
        module = sys.modules[name]
        new: dict[str, Any] = {n: _Ufunc(f) for n, f in vars(module).items() if type(f) is np.ufunc}
        own = scipy_functions.FUNCTIONS[name]
        new |= {n: _or_original(getattr(module, n), f) for n, f in own.items() if hasattr(module, n)}
        _modules().append(_patch(module, new))
        if name == "scipy.stats":
            rules = scipy_functions.methods(module)
            _METHODS.extend((c, n, _or_original(f := getattr(c, n), rule), f) for c, n, rule in rules)


def _or_original(original: Callable[..., Any], rule: Rule) -> Rule:
    """Return a function of SciPy's that is another one for tracers."""

    @wraps(original)
    def call(*args: Any, **settings: Any) -> Any:
        if running() is None:
            return original(*args, **settings)
        if contains(args) or contains([*settings.values()]):
            return verified(rule(*args, **settings), original, args, settings)
        return mutable(original(*args, **settings))

    return call
