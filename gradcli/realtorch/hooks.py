"""What the hooks of tensors change: each is called through a function that compares the gradient before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gradcli.realtorch.values import PLAIN

Hooked = tuple[torch.Tensor, Any, torch.Tensor, torch.Tensor]  # a tensor, its hook, the gradient before and after


@contextmanager
def heard(tensors: Iterable[torch.Tensor]) -> Iterator[list[Hooked]]:
    """Give the list of what hooks of tensors change within a block."""
    changes: list[Hooked] = []
    replaced: list[tuple[Any, int, Any, Any]] = []
    for x in tensors:
        for key, hook in [*(x._backward_hooks or {}).items()]:
            x._backward_hooks[key] = new = _heard(x, hook, changes)
            replaced.append((x._backward_hooks, key, hook, new))
    try:
        yield changes
    finally:
        for hooks, key, hook, new in replaced:
            if hooks.get(key) is new:  # one that the program has not removed
                hooks[key] = hook


def _heard(x: torch.Tensor, hook: Callable[..., Any], changes: list[Hooked]) -> Callable[..., Any]:
    def called(g: Any) -> Any:
        with PLAIN():
            before = g.detach().clone()
        result = hook(g)
        with PLAIN():
            after = g.detach() if result is None else result.detach()
            if not torch.equal(before.nan_to_num(), after.nan_to_num()):
                changes.append((x, hook, before, after.clone()))
        return result

    return called
