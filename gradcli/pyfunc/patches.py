"""Patches of NumPy's modules while a function is traced: for functions that NumPy's protocols do not reach.

`np.zeros` and `np.array` return tracers then, to which elements can be assigned; `math.exp` of a tracer is `np.exp`;
random numbers are errors.  Afterwards the modules are as before, and other threads see no difference.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np
from numpy._core import numeric

from gradcli.errors import InputError
from gradcli.pyfunc.scipy_special import replacements
from gradcli.pyfunc.tape import is_users, running
from gradcli.pyfunc.tracer import Rule, Tracer, apply, contains, known_values, lift, mutable, traced

_CREATE: tuple[str, ...] = ("zeros", "ones", "empty", "full", "eye", "identity", "arange", "tri", "fromiter", "indices")
_CREATE += ("zeros_like", "ones_like", "empty_like", "full_like")
_ARRAYS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asarray_chkfinite", "require")
_OF_LISTS = ("sum", "prod", "mean", "max", "min", "amax", "amin", "var", "std", "median", "dot", "cumsum", "outer")
_RANDOM: tuple[str, ...] = (
    "rand",
    "randn",
    "random",
    "random_sample",
    "randint",
    "normal",
    "uniform",
    "choice",
    "permutation",
)
_RANDOM += ("shuffle", "standard_normal", "exponential", "poisson", "binomial", "multivariate_normal", "gamma", "beta")
_MATH = {
    "fabs": np.abs, "pow": np.power, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
_MATH |= {n: getattr(np, n) for n in ("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "hypot")
          if hasattr(math, n)}  # fmt: skip
_MATH |= {n: getattr(np, n) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "degrees", "radians", "copysign")}
_MATH |= {n: getattr(np, n) for n in ("floor", "ceil", "trunc", "isnan", "isinf", "isfinite")}
_SPECIAL = {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "gammaln"}  # of `math`, and SciPy's names
_NUMPY = str(Path(np.__file__).parent)
_LOCK = RLock()
_DEPTH = 0
_ENTERED = 0  # how often `patched` is, one within another


def _created(original: Callable[..., Any]) -> Rule:
    """Return a NumPy function that creates arrays (`zeros`, `full`, `empty_like`), for traced code.

    Its array may be assigned tracers element by element; in other code it is the original's.
    """

    @wraps(original)
    def create(*args: Any, **settings: Any) -> Any:
        if running() is None or not (_is_traced_code() or contains(args)):
            return original(*args, **settings)
        if original.__name__ == "full_like" or original.__name__ == "full":
            value: Any = args[1] if len(args) > 1 else settings.get("fill_value")
            if contains(value):
                shape = np.shape(args[0]) if original.__name__ == "full_like" else args[0]
                return np.broadcast_to(value, shape) + 0.0
        if args and type(args[0]) is Tracer and original.__name__.endswith("_like"):
            like = np.empty(args[0].shape, args[0].dtype)
            return mutable(original(like, *args[1:], **settings))
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
    if kind in ("i", "u", "b") and not _is_kind(obj, kind):
        raise InputError(f"an array of {np.dtype(dtype)} has no derivative", hint="leave out `dtype`")
    if type(obj) is Tracer:
        return apply(np.copy, obj) if copy else obj
    known = known_values(obj)
    return traced(lift(obj), None if known is None else np.array(known, float))


def _is_kind(obj: Any, kind: str) -> bool:
    return type(obj) is Tracer and obj.dtype.kind in "biu" and kind in "iu"


def _of_list(original: Callable[..., Any]) -> Rule:
    """Return a function that takes lists of tracers, too."""

    @wraps(original)
    def call(*args: Any, **settings: Any) -> Any:
        if running() is None or not any(type(a) in (list, tuple) and contains(a) for a in args[:2]):
            return original(*args, **settings)
        return apply(original, *(_of_tracers(a, None, False) if contains(a) else a for a in args), **settings)

    return call


def _mathematical(original: Callable[..., Any], function: Callable[..., Any]) -> Rule:
    def call(*args: Any) -> Any:
        if running() is not None and any(type(a) is Tracer for a in args):
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
    return is_users(file) or (_DEPTH > 0 and file.startswith(_NUMPY))


def _seeded(original: Callable[..., Any]) -> Rule:
    def call(*args: Any, **settings: Any) -> Any:
        if running() is not None and _is_traced_code() and not args and settings.get("seed") is None:
            raise InputError("`default_rng()` without a seed differs from call to call", hint="`default_rng(0)`")
        return original(*args, **settings)

    return call


@cache
def _replacements() -> dict[Any, dict[str, Any]]:
    """Return the patched functions of each module."""
    numpy = {n: _created(getattr(np, n)) for n in _CREATE} | {n: _converted(getattr(np, n)) for n in _ARRAYS}
    numpy |= {n: _of_list(getattr(np, n)) for n in _OF_LISTS}
    mathematical = {n: _mathematical(getattr(math, n), f) for n, f in _MATH.items()}
    mathematical |= {n: _mathematical(getattr(math, n), _special(s)) for n, s in _SPECIAL.items()}
    numbers = {n: _random(f"np.random.{n}", getattr(np.random, n)) for n in _RANDOM if hasattr(np.random, n)}
    numbers["default_rng"] = _seeded(np.random.default_rng)
    functions = {
        n: _random(f"random.{n}", getattr(random, n)) for n in ("random", "uniform", "gauss", "choice", "randint")
    }
    return {np: numpy, math: mathematical, np.random: numbers, random: functions}


def _special(name: str) -> Rule:
    from gradcli.pyfunc.tracer import UFUNCS

    def call(x: Tracer) -> Tracer:
        value = None if x._value is None else getattr(math, {"gammaln": "lgamma"}.get(name, name))(x._value)
        return traced(UFUNCS[name](x), None if value is None else np.float64(value))

    return call


@cache
def _replacement_of() -> dict[Any, Any]:
    """Return the replacement of each function."""
    return {before[name]: new[name] for _, new, before in _modules() for name in new}


class patched:
    """Within a block, replace functions of NumPy's modules, and what the user's module (`names`) imported of them."""

    __slots__ = ("_imports", "_names")

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def __enter__(self) -> None:
        """Replace the functions of the modules once for all nested blocks, then those that the file has imported."""
        global _ENTERED
        _LOCK.acquire()
        if not _ENTERED:
            if "scipy.special" in sys.modules:
                _add_scipy()
            for module, new, _ in _modules():
                module.update(new)
        _ENTERED += 1
        self._imports = [(n, f) for n, f in _imported(self._names) if self._names.get(n) is f]
        replacement_of = _replacement_of()
        for n, f in self._imports:
            self._names[n] = replacement_of[f]

    def __exit__(self, *_: object) -> None:
        global _ENTERED
        for n, f in self._imports:
            self._names[n] = f
        _ENTERED -= 1
        if not _ENTERED:
            for module, _new, before in _modules():
                module.update(before)
        _LOCK.release()


@cache
def _modules() -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return for each module its names, the replacements, and the functions that they replace."""
    return [(vars(module), new, {n: getattr(module, n) for n in new}) for module, new in _replacements().items()]


@cache
def _add_scipy() -> None:
    """Add the replacements for SciPy, which may be loaded later than NumPy."""
    names = vars(sys.modules["scipy.special"])
    new = replacements()
    _modules().append((names, new, {n: names[n] for n in new}))
    _replacement_of.cache_clear()
    _IMPORTED.clear()


_IMPORTED: dict[int, tuple[int, list[tuple[str, Any]]]] = {}


def _imported(names: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the replaced functions that a module has imported by name, as in `from numpy import zeros`."""
    size, functions = _IMPORTED.get(id(names), (0, []))
    if size != len(names):
        replaced = _replacement_of()
        functions = [(n, f) for n, f in names.items() if type(f) in _KINDS and f in replaced]
        _IMPORTED[id(names)] = (len(names), functions)
    return functions


_KINDS = (FunctionType, type(len), type(np.sum), type(np.zeros_like), type(random.random))


@contextmanager
def namespace(names: MutableMapping[str, Any]) -> Iterator[None]:
    """Put the replacements where NumPy's own Python code looks up functions, within a block."""
    global _DEPTH
    with ExitStack() as stack:
        for module in (names, vars(numeric)):
            stack.enter_context(_within(module))
        _DEPTH += 1
        try:
            yield
        finally:
            _DEPTH -= 1


@contextmanager
def _within(names: MutableMapping[str, Any]) -> Iterator[None]:
    replacement_of = _replacement_of()
    functions = {n: f for n, f in names.items() if type(f) in _KINDS and f in replacement_of}
    names.update({n: replacement_of[f] for n, f in functions.items()})
    try:
        yield
    finally:
        names.update(functions)
