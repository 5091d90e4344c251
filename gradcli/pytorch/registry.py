"""The register of names: what `torch` has, and what are methods of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradcli.pytorch.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
TORCH: dict[str, Any] = {}  # what `torch` has by name
Number = (int, float, bool, np.number)


def both(*names: str) -> Callable[[F], F]:
    """Register a function of `torch` that is a method as well."""

    def register(made: F) -> F:
        return function(*names)(method(*names)(made))

    return register


def method(*names: str) -> Callable[[F], F]:
    """Register a method of tensors."""

    def register(made: F) -> F:
        for name in names or (made.__name__,):
            setattr(Tensor, name, made)
        return made

    return register


def function(*names: str) -> Callable[[F], F]:
    """Register a function of `torch`."""

    def register(made: F) -> F:
        TORCH.update(dict.fromkeys(names or (made.__name__,), made))
        return made

    return register


def tensor_like(x: Any) -> bool:
    """Tell whether something may be an operand."""
    return isinstance(x, (Tensor, *Number))
