"""`torch.autograd.graph`: nodes and edges of what was recorded, hooks on several gradients, and on what is kept."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradcli.pytorch.backward import Sweep
from gradcli.pytorch.handles import Handle
from gradcli.pytorch.modes import Mode, _Switch
from gradcli.pytorch.record import Edge, edge_of, shown
from gradcli.pytorch.tensor import Tensor

Node = Edge
GradientEdge = namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return what a gradient of a tensor flows into."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = edge_of(tensor)
    return GradientEdge(shown(edge), getattr(edge, "number", 0))


class saved_tensors_hooks(_Switch):
    """Have one function called with each tensor that is kept for the backward, and another with what that returned."""

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        super().__init__(hooks=(pack_hook, unpack_hook))

    def __enter__(self) -> None:
        if Mode.no_hooks is not None:
            raise RuntimeError(Mode.no_hooks)
        super().__enter__()


class save_on_cpu(_Switch):
    """Keep tensors where they are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__()


class disable_saved_tensors_hooks(_Switch):
    """Refuse hooks on what is kept, with a message."""

    def __init__(self, error_message: str) -> None:
        super().__init__(no_hooks=error_message)


class allow_mutation_on_saved_tensors(_Switch):
    """Keep copies for the backward, which a change in place does not spoil."""

    def __init__(self) -> None:
        super().__init__(mutable=True)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> Handle:
    """Have a function called in each backward with the gradients of tensors: once all are there, or with the first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    found: dict[int, Any] = {}
    during: Any = None

    def arrived(i: int, g: Tensor) -> None:
        nonlocal during
        if Sweep.running is not during:
            during = Sweep.running
            found.clear()
        found[i] = g
        if mode == "any" and len(found) == 1:
            fn(g)
        if mode == "all" and len(found) == sum(edge_of(t) in during.waiting for t in tensors):
            fn([found.get(k) for k in range(len(tensors))])

    return _Handles([t.register_hook(partial(arrived, i)) for i, t in enumerate(tensors)])


class _Handles(Handle):
    def __init__(self, handles: list[Handle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


_Handles.__name__ = _Handles.__qualname__ = "_MultiHandle"
for _class in (_Handles, GradientEdge, saved_tensors_hooks, save_on_cpu):
    _class.__module__ = "torch.autograd.graph"
__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks"]
__all__ += ["get_gradient_edge", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
