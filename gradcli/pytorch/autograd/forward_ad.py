"""`torch.autograd.forward_ad`: tensors with tangents, by the J·u of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli.graph.graph import Graph
from gradcli.graph.jvp import push
from gradcli.graph.node import Node, cast
from gradcli.graph.rewrite import substituted
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.modes import Mode, _set, _Switch
from gradcli.pytorch.recipes import Recipe
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, tangent_of

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent."""

    primal: Any
    tangent: Any


UnpackedDualTensor.__module__ = "torch.autograd.forward_ad"


def enter_dual_level() -> int:
    """Begin a level of forward mode; return its number."""
    raise_if(Mode.dual is not None, "nested levels of tangents")
    _set({"dual": object()})
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Drop the tangents of all tensors."""
    raise_if(Mode.dual is None, "no level of tangents to exit")
    _set({"dual": None})


class dual_level:
    """A block in which tensors have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a view of a tensor with a tangent."""
    raise_if(Mode.dual is None, "no level of tangents")
    for name, x in (("primal", tensor), ("tangent", tangent)):
        raise_if(not x.is_floating_point(), "dtype of a dual tensor", name, x.dtype)
    raise_if(tangent_of(tensor) is not None, "tangent of a dual tensor")
    sizes = list(tensor.shape), list(tangent.shape)
    raise_if(sizes[0] != sizes[1], "size of a forward tangent", *sizes)
    dual = tensor[...]
    dual._tangent = Mode.dual, tangent
    return dual


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent, or None."""
    tangent = tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with _Switch(dual=None):
        return UnpackedDualTensor(set_grad_fn_name(tensor[...], "Identity"), tangent)


def _set_tangent(
    out: Tensor, operands: Sequence[Any], recipe: Recipe, y: Node, name: str, numbers: Sequence[Any]
) -> None:
    """Set the tangent of an operation's result `y`: the sum over the operands of J·u."""
    tangents = {i: u for i, x in enumerate(operands) if isinstance(x, Tensor) and (u := tangent_of(x)) is not None}
    if not tangents or not out.is_floating_point():
        return
    count, dtype = len(operands), out._a.dtype.name

    # The operands of the step are those of the operation, then their tangents; its numbers follow.
    def build(*nodes: Node) -> Node:
        names = [str(i) for i in range(len(recipe.inputs))]
        known = dict(zip(recipe.inputs, (*nodes[:count], *nodes[count + len(tangents) :]), strict=True))
        pushed = push(Graph.of(dict(zip(names, recipe.inputs, strict=True)), {"y": y}), map(str, tangents))
        known |= {pushed.seeds[str(i)]: u for i, u in zip(tangents, nodes[count:], strict=False)}
        return cast(substituted([pushed.graph.outputs["y.jvp"]], known)[0], dtype)  # type: ignore[arg-type]

    level = Mode.dual
    with _Switch(dual=None):
        settings = (recipe.op, recipe.settings, tuple(tangents), recipe.outputs.index(y))
        out._tangent = level, apply("jvp", build, [*operands, *tangents.values()], settings, name, numbers)


Recorder.pushed = _set_tangent
