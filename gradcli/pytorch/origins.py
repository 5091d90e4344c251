"""The origins of views whose changes in place autograd cannot follow."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

HOOKED = "BackwardHookFunction"  # PyTorch's name for what a module with a backward hook is called through


class Maker(Enum):
    """The origin of such a view."""

    NO_GRAD = "no_grad"
    INFERENCE = "inference"
    SEVERAL = "several"  # an operation that returns several views
    FUNCTION = "function"  # a `torch.autograd.Function` that returns one tensor


class Origin(NamedTuple):
    """The origin of a view; a view of a view has that of the first."""

    maker: Maker
    name: str = ""  # of the operation or the function
    number: int = 0  # of the output
    is_inner: bool = False  # whether it is a view of the view with this origin

    def inner(self) -> Origin:
        """Return the origin of a view of this view."""
        return self._replace(is_inner=True)

    @property
    def in_mode(self) -> bool:
        """Whether the view was created where nothing is recorded."""
        return self.maker in (Maker.NO_GRAD, Maker.INFERENCE)
