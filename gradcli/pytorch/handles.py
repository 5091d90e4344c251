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


def first(found: Any) -> Any:
    """Return what stands first where a hook has returned several."""
    return found[0] if isinstance(found, tuple) else found
