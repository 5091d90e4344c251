"""`torch.autograd.graph`: the nodes of what was recorded, and what they keep (`grad_fn._saved_self`)."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.backward import check_kept
from gradcli.pytorch.messages import MissingError
from gradcli.pytorch.record import Edge, Step, leading

__all__ = ["Node"]

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
        for memory, _, array, own, _ in checks:
            found = leading(array, step) if own is None else own
            found._memory = memory
            return found
    raise MissingError(f"{step.name()}.{name}")
