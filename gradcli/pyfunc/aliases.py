"""`autograd.numpy` and `jax.numpy` as names of NumPy while the user's file runs: files for these run as they are.

Their `grad` and `jacobian` are gradcli's.  Neither library has to be installed, and neither is loaded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np

from gradcli.pyfunc.scipy_functions import log_softmax

_TOPS = ("autograd", "jax")
# gradcli's functions by the names that autograd and JAX have for them.
DERIVATIVES = {name: name for name in ("grad", "value_and_grad", "jacobian", "hessian", "elementwise_grad")}
DERIVATIVES |= {"egrad": "elementwise_grad", "jacfwd": "jacobian", "jacrev": "jacobian"}


@contextmanager
def aliases(derivatives: Mapping[str, Any]) -> Iterator[None]:
    """Import these functions as `autograd` and `jax` within the block; afterwards imports are as before."""
    finder = _Finder(derivatives)
    before = {n: sys.modules.pop(n) for n in [*sys.modules] if n.partition(".")[0] in _TOPS}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] in _TOPS]:
            del sys.modules[name]
        sys.modules.update(before)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `autograd` and `jax`, and those of their modules that NumPy and SciPy have."""

    def __init__(self, derivatives: Mapping[str, Any]) -> None:
        self._derivatives = derivatives

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the module's specification; None where it is another's, or has no counterpart."""
        top, _, inner = name.partition(".")
        if top not in _TOPS or (inner and not self._counterpart(inner) and inner != "nn"):
            return None
        return ModuleSpec(name, self, is_package=True)

    @staticmethod
    def _counterpart(inner: str) -> str | None:
        """Return the module of NumPy or SciPy that one is a name of."""
        return inner if inner.partition(".")[0] in ("numpy", "scipy") else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module with the names of the other."""
        top, _, inner = spec.name.partition(".")
        module = types.ModuleType(spec.name)
        if counterpart := self._counterpart(inner):
            meant = importlib.import_module(counterpart)
            vars(module).update(__getattr__=lambda name: getattr(meant, name), __all__=getattr(meant, "__all__", []))
        elif inner == "nn":
            vars(module).update(_NEURAL)
        elif not inner:
            vars(module).update({**self._derivatives, **(_JAX if top == "jax" else {})})
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is complete."""


def _unchanged(function: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Return a function as it is: `jax.jit` has nothing to do, since functions are traced here."""
    return _unchanged if function is None else function


# `jax.config` has settings such as 64-bit numbers, which are always on here.
_CONFIG = types.SimpleNamespace(update=lambda name, value: None)
_JAX: dict[str, Any] = {"jit": _unchanged, "checkpoint": _unchanged, "config": _CONFIG}
_NEURAL: dict[str, Any] = {
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softmax": lambda x, axis=-1: np.exp(log_softmax(x, axis)),
    "log_softmax": lambda x, axis=-1: log_softmax(x, axis),
}
