"""`torch.autograd.graph`: the nodes of the graph, their saved tensors (`grad_fn._saved_self`), and hooks on these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from gradcli.pytorch.backward import check_kept, in_form
from gradcli.pytorch.chains import chain_of, form_of, root_of, saved_as, saved_position
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import MissingError, missing, missing_if, raise_if
from gradcli.pytorch.modes import _Switch, enable_grad
from gradcli.pytorch.record import Edge, GradFn, Handle, Recorder, Step
from gradcli.pytorch.running import leading
from gradcli.pytorch.tensor import Tensor

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]

Node = GradFn
# What PyTorch calls what a step keeps, with its place: the result is the last, behind the inputs.
_PLACES = {"self": 0, "condition": 0, "mat1": 1, "mat2": -2, "result": -1}
_PLACES |= dict.fromkeys(("other", "exponent", "vec", "tensor", "target"), 1)


def attribute(step: Step, name: str) -> Any:
    """Return the saved tensor or setting of a step by its attribute, `_saved_` and a word.

    Errors: PyTorch's, for what is freed or was changed since; `MissingError` for what is not known to be kept.
    """
    word = name.removeprefix("_saved_")
    index = saved_position(step.called, word)
    if index is None and word in _PLACES and chain_of(step.called) is None:
        index = _PLACES[word] % (len(step.edges) + step.count)
    if index is not None:
        checks = [c for c in step.checks if c[-1] == index]
        check_kept(step, checks)
        if index in step.packed:
            return step.packed[index](_edges(step)[index])  # type: ignore[no-any-return]
        for memory, _, array, tensor, _ in checks:
            result = leading(array, _edges(step)[index]) if tensor is None else tensor
            result._memory = memory
            with enable_grad():
                return _as_saved(step, index, result)
    raise MissingError(f"{step.name()}.{name}")


def _as_saved(step: Step, position: int, x: Any) -> Any:
    """Return an operand as PyTorch saves it: transposed, or as rows, where the call's last function takes it so."""
    return in_form(saved_as(step.called, position), x)


class InnerFn(GradFn):
    """A function within a call, which is one step of the record, so hooks cannot be called here.

    Of one that gives an operand another `form`, the gradient is that of the operand, which has a shape.
    """

    form: tuple[str, tuple[int, ...]] | None = None

    def __init__(self, edges: tuple[Edge | None, ...]) -> None:
        self.edges = edges

    def name(self) -> str:
        return type(self).__name__

    def order(self) -> Sequence[int]:
        return range(len(self.edges))

    def hooked(self, kind: str, hook: Any) -> Handle:
        raise missing(f"a hook of {self.name()}, which is part of another operation")

    def __call__(self, *grads: Any) -> Any:
        if self.form is None or len(grads) != 1:
            raise missing(f"a call of {self.name()}, which is part of another operation")
        return in_form(self.form[0], grads[0], self.form[1])


@cache
def _class(name: str) -> type:
    """Return the class of functions that scripts see under a name."""
    return type(name, (InnerFn,), {"__module__": "builtins"})


def inner_edges(step: Step) -> Sequence[Edge | None]:
    """Return the edges that PyTorch shows below the last function of a call; none of a step that is one function."""
    known = chain_of(step.called)
    return () if known is None else [_edge(part, step) for part in known.inputs]


def _edge(part: Any, step: Step) -> Edge | None:
    """Return the edge of a chain; None where none of its operands requires a gradient."""
    if part is None or isinstance(part, int):
        return None if part is None or part >= len(step.edges) else step.edges[part]
    inputs = tuple(_edge(inner, step) for inner in part.inputs)
    if not any(e is not None for e in inputs):
        return None
    fn = _class(part.name)(inputs)
    if (form := form_of(part)) is not None and isinstance(part.inputs[0], int):
        fn.form = form, step.recipe.inputs[part.inputs[0]].shape
    return fn, 0


Recorder.inner = inner_edges


def _edges(step: Step) -> Sequence[Edge | None]:
    """Return the edges of what a step keeps: of its operands, and of its results."""
    return *step.edges, *((step, i) for i in range(step.count))


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


class Hooks(NamedTuple):
    """A script's two functions that pack and unpack saved tensors."""

    packer: Callable[..., Any]
    unpacker: Callable[..., Any]

    def pack(self, step: Step, outs: Sequence[Tensor]) -> None:
        """Pack the saved tensors of a step, of which it is known that PyTorch saves just these."""
        name = root_of(step.called)
        is_several = fact("chain", step.recipe.op) is not None
        missing_if(fact("hooks", name) is None or is_several, f"saved_tensors_hooks around {name}")
        results = dict(enumerate(outs, len(step.edges)))
        saved = {i: results[i] if x is None else _as_saved(step, i, x) for *_, x, i in step.checks}
        step.packed = {i: self.packed(x) for i, x in saved.items()}
        step.checks = []

    def packed(self, x: Tensor) -> Callable[[Edge | None], Tensor]:
        """Pack a tensor; return the function that unpacks it, with the history of an edge.

        Errors: `RuntimeError` where the function changes the tensor in place.
        """
        before = x._memory.version
        with _Switch(grad=False, hooks=None):
            result = self.packer(x)
        raise_if(x._memory.version != before, "pack hook in place")
        return partial(self.restored, result)

    def restored(self, packed: Any, edge: Edge | None) -> Tensor:
        """Return an unpacked tensor, with the history of an edge.

        Errors: `RuntimeError` where the function returns no tensor.
        """
        with _Switch(hooks=None):
            result = self.unpacker(packed)
        raise_if(not isinstance(result, Tensor), "no tensor of an unpack hook", type(result).__name__)
        return leading(result._a, edge)
