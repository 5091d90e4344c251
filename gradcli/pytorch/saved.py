"""What steps keep for their backward, as scripts see it: `grad_fn._saved_self` and the like, and hooks that pack it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.pytorch.backward import check_kept
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.modes import Mode, _Switch
from gradcli.pytorch.record import Edge, Step, leading
from gradcli.pytorch.tensor import Tensor

# What PyTorch calls the inputs that a step may keep, in their order, and its result; `-` it never keeps.
_NAMES = {
    "": "Add Sub Neg SumBackward0 SumBackward1 MeanBackward0 MeanBackward1 View UnsafeView T Transpose Permute Expand "
    "Unsqueeze SqueezeBackward0 SqueezeBackward1 Select Slice Cat Stack Clone",
    "self": "Abs Acos Acosh Asin Asinh Atan Atanh ClampBackward1 Cos Cosh Elu Erf Gelu LeakyRelu Log Log10 Log1P Log2 "
    "Pow Silu Sin Sinh Softplus Var",
    "result": "Exp Exp2 Expm1 LogSoftmax Reciprocal Relu Rsqrt Sigmoid Softmax Sqrt Tan Tanh",
    "self result": "LinalgVectorNorm Logsumexp MaxBackward1 MinBackward1 Prod Std",
    "self other": "Atan2 Div Maximum Minimum Mul",
    "self mat2": "Bmm Mm",
    "self vec": "Mv",
    "self tensor": "Dot",
    "- mat1 mat2": "Addmm",
    "self exponent result": "PowBackward1",
    "self target": "BinaryCrossEntropy BinaryCrossEntropyWithLogits HuberLoss MseLoss SmoothL1Loss",
    "condition": "Where",
}
_KNOWN = {
    step if "Backward" in step else f"{step}Backward0": {w: -1 if w == "result" else i for i, w in enumerate(n.split())}
    for n, steps in _NAMES.items()
    for step in steps.split()
}
_SETTINGS = "alpha beta dim dims end index keepdim max min reduction self_sym_numel self_sym_sizes start step".split()  # noqa: SIM905


def attribute(step: Step, name: str) -> Any:
    """Return what a script asks a step for as `_saved_` and a word.

    Errors: PyTorch's, for what is freed, was changed since, or is none of the step's; `MissingError` where it is not
    known.
    """
    word, known = name.removeprefix("_saved_"), _KNOWN.get(step.name())
    if step.name() == "PowBackward0" and word == "exponent":
        _, kind, text = step.recipe.settings
        return int(text) if kind == "int" else float(text)
    if known is None or word in _SETTINGS:
        raise MissingError(f"{step.name()}.{name}")
    if word not in known:
        raise AttributeError(f"'{step.name()}' object has no attribute '{name}'")
    place = known[word] % (len(step.edges) + 1)
    check_kept(step, [c for c in step.checks if c[4] == place])
    if place in step.packed:
        return undone(step, place, (*step.edges, step)[place])
    for memory, _, array, own, which in step.checks:
        if which == place:
            found = leading(array, step) if own is None else own
            found._memory = memory
            return found
    if step.kept and step.kept[place] is not None:
        raise MissingError(f"{step.name()}.{name} of a number")
    return None


# Hooks


def pack(step: Step, out: Tensor) -> None:
    """Let a hook make of what a step keeps, in PyTorch's order, what it will unpack."""
    if step.name() not in _KNOWN:
        raise MissingError(f"saved_tensors_hooks around {step.name().removesuffix('Backward0')}")
    step.packed = {place: packed(out if own is None else own) for *_, own, place in step.checks}
    step.checks = []


def packed(x: Tensor) -> tuple[Any, Any]:
    """Return what the hook makes of a tensor, and what undoes that."""
    before, (hook, undo) = x._memory.version, Mode.hooks
    with _Switch(grad=False, hooks=None):
        found = hook(x)
    if x._memory.version != before:
        raise refusal("pack hook in place")
    return found, undo


def undone(step: Step, place: int, edge: Edge | None) -> Tensor:
    """Return what was packed as a tensor that leads back to where it came from."""
    own, undo = step.packed[place]
    with _Switch(hooks=None):
        found = undo(own)
    if not isinstance(found, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}"
        )
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
        for a, b in zip(found, kept, strict=True):
            if a is not b and b is not None and not np.array_equal(a, b, equal_nan=True):
                raise MissingError(f"{step.name()} with hooks that unpack other numbers than were packed")
    return found
