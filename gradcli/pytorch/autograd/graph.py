"""`torch.autograd.graph`: the nodes of what was recorded, what they keep (`grad_fn._saved_self`), and hooks on that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.pytorch.backward import check_kept
from gradcli.pytorch.facts import TABLES
from gradcli.pytorch.messages import MissingError, missing_if, refuse_if
from gradcli.pytorch.modes import Mode, _Switch
from gradcli.pytorch.record import Edge, Step, leading
from gradcli.pytorch.tensor import Tensor

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]

Node = Edge
# What PyTorch calls what a step keeps, with its place: the result is the last, behind the inputs.
_PLACES = {"self": 0, "condition": 0, "mat1": 1, "mat2": -2, "result": -1}
_PLACES |= dict.fromkeys(("other", "exponent", "vec", "tensor", "target"), 1)


def attribute(step: Step, name: str) -> Any:
    """Return what a script asks a step for as `_saved_` and a word.

    Errors: PyTorch's, for what is freed or was changed since; `MissingError` for what is not known to be kept.
    """
    word = name.removeprefix("_saved_")
    if word in _PLACES:
        place = _PLACES[word] % (len(step.edges) + 1)
        checks = [c for c in step.checks if c[-1] == place]
        check_kept(step, checks)
        if place in step.packed:
            return undone(step, place, (*step.edges, step)[place])
        for memory, _, array, own, _ in checks:
            found = leading(array, step) if own is None else own
            found._memory = memory
            return found
    raise MissingError(f"{step.name()}.{name}")


class saved_tensors_hooks(_Switch):
    """Have one function called with each tensor that is kept for the backward, and another with what that returned."""

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        super().__init__(hooks=(pack_hook, unpack_hook))


class save_on_cpu(saved_tensors_hooks):
    """Keep on the CPU what is kept for the backward: it is there."""

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(lambda x: x, lambda x: x)


save_on_cpu.__module__ = saved_tensors_hooks.__module__ = "torch.autograd.graph"


def pack(step: Step, out: Tensor) -> None:
    """Let a hook make of what a step keeps, in PyTorch's order, what it will unpack."""
    name = step.name().removesuffix("Backward0")
    missing_if(name not in TABLES["known"], f"saved_tensors_hooks around {name}")
    kept = sorted(step.checks, key=lambda check: TABLES["known"][name].find(str(check[-1])))
    step.packed = {place: packed(out if own is None else own) for *_, own, place in kept}
    step.checks = []


def packed(x: Tensor) -> tuple[Any, Any]:
    """Return what the hook makes of a tensor, and what undoes that."""
    before, (hook, undo) = x._memory.version, Mode.hooks
    with _Switch(grad=False, hooks=None):
        found = hook(x)
    refuse_if(x._memory.version != before, "pack hook in place")
    return found, undo


def undone(step: Step, place: int, edge: Edge | None) -> Tensor:
    """Return what was packed as a tensor that leads back to where it came from."""
    own, undo = step.packed[place]
    with _Switch(hooks=None):
        found = undo(own)
    refuse_if(not isinstance(found, Tensor), "no tensor of an unpack hook", type(found).__name__)
    return leading(found._a, edge)


def unpacked(step: Step, kept: Sequence[Any]) -> list[Any]:
    """Return what a step reads in its backward, of which hooks have packed some.

    Errors: `MissingError` where they unpack other numbers, and the step reads more than PyTorch keeps.
    """
    found = list(kept)
    for place in step.packed:
        found[place] = undone(step, place, None)._a
    others = [a for i, a in enumerate(kept) if i not in step.packed]
    if any(a is not None and a.size > 1 for a in others):
        same = (a is b or b is None or np.array_equal(a, b, equal_nan=True) for a, b in zip(found, kept, strict=True))
        missing_if(not all(same), f"{step.name()} with hooks that unpack other numbers than were packed")
    return found
