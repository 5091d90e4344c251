"""`torch.autograd.graph`: the nodes of the graph, their saved tensors (`grad_fn._saved_self`), and hooks on these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcli.pytorch.backward import check_kept
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import MissingError, missing_if, raise_if
from gradcli.pytorch.modes import _Switch
from gradcli.pytorch.record import Edge, Recorder, Step, leading
from gradcli.pytorch.tensor import Tensor

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]

Node = Edge
# What PyTorch calls what a step keeps, with its place: the result is the last, behind the inputs.
_PLACES = {"self": 0, "condition": 0, "mat1": 1, "mat2": -2, "result": -1}
_PLACES |= dict.fromkeys(("other", "exponent", "vec", "tensor", "target"), 1)


def attribute(step: Step, name: str) -> Any:
    """Return the saved tensor or setting of a step by its attribute, `_saved_` and a word.

    Errors: PyTorch's, for what is freed or was changed since; `MissingError` for what is not known to be kept.
    """
    word = name.removeprefix("_saved_")
    if word in _PLACES:
        index = _PLACES[word] % (len(step.edges) + 1)
        checks = [c for c in step.checks if c[-1] == index]
        check_kept(step, checks)
        if index in step.packed:
            return step.packed[index].restored((*step.edges, step)[index])  # type: ignore[no-any-return]
        for memory, _, array, tensor, _ in checks:
            result = leading(array, step) if tensor is None else tensor
            result._memory = memory
            return result
    raise MissingError(f"{step.name()}.{name}")


Recorder.saved = attribute


class saved_tensors_hooks(_Switch):
    """Hooks on saved tensors: one function packs each, another unpacks it."""

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        super().__init__(hooks=Hooks(pack_hook, unpack_hook))


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors on the CPU, where they are in any case."""

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(lambda x: x, lambda x: x)


save_on_cpu.__module__ = saved_tensors_hooks.__module__ = "torch.autograd.graph"


@dataclass(frozen=True)
class Hooks:
    """A script's two functions that pack and unpack saved tensors."""

    packer: Callable[..., Any]
    unpacker: Callable[..., Any]

    def pack(self, step: Step, out: Tensor) -> None:
        """Pack the saved tensors of a step, in PyTorch's order."""
        name = step.name().removesuffix("Backward0")
        order = fact("hooks", name) or ""
        missing_if(not order, f"saved_tensors_hooks around {name}")
        kept = sorted(step.checks, key=lambda check: order.find(str(check[-1])))
        step.packed = {i: self.packed(out if tensor is None else tensor) for *_, tensor, i in kept}
        step.checks = []

    def packed(self, x: Tensor) -> Packed:
        """Return a tensor in packed form.

        Errors: `RuntimeError` where the function changes the tensor in place.
        """
        before = x._memory.version
        with _Switch(grad=False, hooks=None):
            result = self.packer(x)
        raise_if(x._memory.version != before, "pack hook in place")
        return Packed(result, self.unpacker)


@dataclass(frozen=True)
class Packed:
    """The packed form of a saved tensor, and the function that unpacks it."""

    value: Any
    unpacker: Callable[..., Any]

    def restored(self, edge: Edge | None) -> Tensor:
        """Return the unpacked tensor, with the history of an edge.

        Errors: `RuntimeError` where the function returns no tensor.
        """
        with _Switch(hooks=None):
            result = self.unpacker(self.value)
        raise_if(not isinstance(result, Tensor), "no tensor of an unpack hook", type(result).__name__)
        return leading(result._a, edge)
