"""Handles: what takes hooks away again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Handle:
    """What takes a hook away again."""

    def __init__(self, hooks: Any, hook: Callable[..., Any], key: Any = None) -> None:
        self.hooks, self.hook, self.key = hooks, hook, key
        if key is None:
            hooks.append(hook)
        else:
            hooks[key] = hook

    def remove(self) -> None:
        """Take the hook away."""
        if self.key is not None:
            self.hooks.pop(self.key, None)
        elif self.hook in self.hooks:
            self.hooks.remove(self.hook)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


Handle.__name__ = Handle.__qualname__ = "RemovableHandle"
Handle.__module__ = "torch.utils.hooks"


def first(found: Any) -> Any:
    """Return what stands first where a hook has returned several."""
    if found is not None and not isinstance(found, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(found).__name__}'")
    return found and found[0]


def check_returned(hook: Any, before: Any, found: Any) -> None:
    """Refuse what a hook returns if it cannot stand in the place of the gradient."""
    if not isinstance(found, type(before)):
        raise TypeError(f"expected Variable, but hook returned '{type(found).__name__}'")
    what = f"hook '{getattr(hook, '__name__', '<unknown>')}' has changed the"
    if found.dtype != before.dtype:
        raise RuntimeError(f"{what} type of value (was {before.type()} got {found.type()})")
    if found.shape != before.shape:
        raise RuntimeError(f"{what} size of value")
