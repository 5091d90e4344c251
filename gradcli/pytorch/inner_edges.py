"""The edges within products that PyTorch computes by several functions, as `next_functions` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from gradcli.pytorch.messages import missing
from gradcli.pytorch.record import Edge, Handle, Recorder, Step

# A function with its arguments: other functions, or the number of a factor.
Composition = tuple[Any, ...]


class InnerEdge(Edge):
    """A function within a product.  The product is one step of the record, so hooks cannot be called here."""

    def __init__(self, edges: tuple[Edge | None, ...]) -> None:
        self.edges = edges

    def name(self) -> str:
        return type(self).__name__

    def order(self) -> Sequence[int]:
        return range(len(self.edges))

    def hooked(self, kind: str, hook: Any) -> Handle:
        raise missing(f"a hook of {self.name()}, which is part of a product")

    def __call__(self, *grads: Any) -> Any:
        raise missing(f"a call of {self.name()}, which is part of a product")


@cache
def _class(name: str) -> type:
    """Return the class of functions that scripts see under a name."""
    return type(name, (InnerEdge,), {"__module__": "builtins"})


def inner_edges(step: Step) -> Sequence[Edge | None]:
    """Return the edges that PyTorch shows below the last function of a product; none for any other step.

    PyTorch 2.13 multiplies a vector, a matrix and a stack by mm, mv and bmm of reshaped factors.
    """
    if len(step.edges) != 2:
        return ()
    a, b = (n.shape for n in step.recipe.inputs)
    composition = _composition(step.called, a, b, step.edges[0] is not None)
    return () if composition is None else [_edge(composition, step.edges)]


def _composition(name: str, a: Sequence[int], b: Sequence[int], recorded: bool) -> Composition | None:
    """Return the functions below one called `name`, for factors of these shapes; `recorded` is of the first."""
    if name == "SqueezeBackward4":
        return ("Mm", ("Unsqueeze", 0), 1)
    if name in ("CloneBackward0", "TransposeBackward0"):  # the transposed product of two matrices
        product = ("UnsafeView", ("Mm", _matrix(b), ("T", 0)))
        return ("Transpose", product) if name == "CloneBackward0" else product
    if name != "UnsafeViewBackward0":
        return None
    if len(b) < 3:
        return ("Mm" if len(b) == 2 else "Mv", ("View", 0), 1)
    if len(a) == 1 and recorded:
        return ("Mv", _matrix(b), 0)
    return ("Bmm", _stack(0, a, b), _stack(1, b, a))


def _matrix(stack: Sequence[int]) -> Composition:
    """Return how PyTorch makes a matrix of the second factor, a stack: its transposes below each other."""
    return ("View", ("Transpose", 1)) if stack[-1] == 1 else ("UnsafeView", ("Clone", ("Transpose", 1)))


def _stack(factor: int, shape: Sequence[int], other: Sequence[int]) -> Composition:
    """Return how PyTorch makes a stack with one axis of a factor; one that is repeated along some axes is copied."""
    outer, wanted = shape[:-2], other[:-2]
    repeated = len(wanted) > 1 and len(outer) < len(wanted) and any(n > 1 for n in outer)
    return ("UnsafeView", ("Clone", ("Expand", factor))) if repeated else ("View", ("Expand", factor))


def _edge(part: Any, edges: Sequence[Edge | None]) -> Edge | None:
    """Return the edge of a composition; None where none of its factors requires a gradient."""
    if isinstance(part, int):
        return edges[part]
    name, *arguments = part
    inputs = tuple(_edge(argument, edges) for argument in arguments)
    return _class(f"{name}Backward0")(inputs) if any(e is not None for e in inputs) else None


Recorder.inner = inner_edges
