"""The values of tensors of PyTorch at a moment: copied where they are small, by reference where they are large."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from gradcli.pytorch.cuts import How
from gradcli.record.numbers import FIRST, Numbers, Summary
from gradcli.record.record import NOWHERE, CallSite

COPIED = 4096  # elements that are copied at the call; of more, the tensor itself is kept until its page
PLAIN = torch._C.DisableTorchFunction  # within it, no subclass of a tensor and no mode intercepts what we read


def tensors_in(*items: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in arguments or results, also those in lists, tuples and dictionaries."""
    for x in items:
        if isinstance(x, torch.Tensor):
            yield x
        elif isinstance(x, list | tuple):
            yield from tensors_in(*x)
        elif isinstance(x, dict):
            yield from tensors_in(*x.values())


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype: float32, bfloat16."""
    return str(dtype).removeprefix("torch.")


def array_of(x: torch.Tensor) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a tensor, without a copy where NumPy can show them; None of one that has none."""
    with PLAIN(), suppress(Exception):
        array: np.ndarray[Any, Any]
        x = x.detach()
        if x.is_quantized:
            x = x.dequantize()
        if x.layout is not torch.strided:
            x = x.to_dense()
        if x.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
            x = x.float()
        array = x.resolve_conj().resolve_neg().cpu().numpy()
        return array
    return None


def numbers_of(x: torch.Tensor, is_copied: bool = False) -> Numbers:
    """Return the numbers of a tensor now, copied where they are few; of one that shows none, its shape alone."""
    kind, shape = dtype_name(x.dtype), tuple(x.shape)
    a = array_of(x)
    if a is None:
        return Numbers(None, shape, kind)
    return Numbers(a.copy() if is_copied or a.size <= COPIED else a, shape, kind)


def summary_of(x: torch.Tensor) -> Numbers:
    """Return the summary of a large tensor, which is computed where it is; of a small one, its numbers."""
    shape = tuple(x.shape)
    with PLAIN(), torch.no_grad(), suppress(Exception):
        if x.numel() > COPIED and x.is_floating_point() and x.layout is torch.strided:
            least, greatest = (bound.item() for bound in torch.aminmax(x))
            norm = torch.linalg.vector_norm(x, dtype=torch.float64).item()
            if math.isfinite(least) and math.isfinite(greatest) and math.isfinite(norm):
                first = tuple(x.reshape(-1)[:FIRST].tolist())
                return Numbers(None, shape, dtype_name(x.dtype), known=Summary(norm, least, greatest, 0, 0, first))
    numbers = numbers_of(x)
    if numbers.whole is None or numbers.whole.size <= COPIED:
        return numbers
    return replace(numbers, whole=None, known=numbers.summary)


class Edge:
    """A position in PyTorch's graph: what a gradient arrives at, a result of a call or a leaf."""

    __slots__ = ("call", "result")

    def __init__(self, call: Call | None = None, result: int = 0) -> None:
        self.call, self.result = call, result


class Lost:
    """A line that cuts numbers off from the graph: how it does, the leaves that they came from, and when it did."""

    def __init__(self, site: CallSite) -> None:
        self.site, self.clock = site, 0
        self.hows: dict[How, None] = {}
        self.leaves: Any = WeakIdKeyDictionary()

    def add(self, how: How, clock: int, leaves: list[torch.Tensor]) -> None:
        """Add a way in which the line cuts something off."""
        self.clock = clock
        self.hows[how] = None
        for x in leaves:
            self.leaves[x] = None


@dataclass(eq=False)
class Value:
    """A tensor's numbers at a moment; a change in place makes another value.

    `edge` is where its gradient arrives; None of what requires none.  `kept` is the tensor without its history, of
    which the numbers are read when the page is made.
    """

    shape: tuple[int, ...]
    dtype: str
    version: int
    storage: int
    requires: bool
    edge: Edge | None
    role: str
    numbers: Numbers | None
    kept: torch.Tensor | None
    why_not: str = ""
    site: CallSite = NOWHERE
    changed: bool = False  # whether it was written into, unseen, before its page
    lost: Lost | None = None  # what cut it off
    modules: Sequence[Any] = ()  # in whose calls data was computed
    layout: tuple[int, tuple[int, ...]] | None = None  # of data: where it begins in its storage, and its strides

    def as_numbers(self, read: Callable[[torch.Tensor], Numbers] = numbers_of) -> Numbers:
        """Return the numbers, or by another function a summary, which are looked at now where they were not copied."""
        if self.numbers is None and self.kept is not None:
            self.changed = not self.kept.is_inference() and self.kept._version != self.version
            self.numbers = read(self.kept)
            self.kept = None
        return self.numbers or Numbers(None, self.shape, self.dtype)

    def copy(self) -> None:
        """Copy the numbers, which are about to be overwritten."""
        if self.numbers is None and self.kept is not None and self.kept._version == self.version:
            self.numbers, self.kept = numbers_of(self.kept, is_copied=True), None


def is_broadcast(value: Value, base: Value) -> bool:
    """Return whether a value is data that is repeated along axes: its strides there are 0."""
    if value.layout is None or base.layout is None or value.version != base.version or value.shape == base.shape:
        return False
    (start, strides), (first, steps) = value.layout, base.layout
    more = len(value.shape) - len(base.shape)
    if more < 0 or start != first or any(strides[:more]):
        return False
    sizes = zip(value.shape[more:], base.shape, strides[more:], steps, strict=True)
    return all(stride == 0 if size != old else size == 1 or stride == step for size, old, stride, step in sizes)


def part_of(value: Value, base: Value) -> tuple[int | range, ...] | None:
    """Return the key of a part of data with the numbers of a value, as in `base[key]`; None where it is no part."""
    if value.layout is None or base.layout is None or value.version != base.version:
        return None
    (start, strides), (first, steps) = value.layout, base.layout
    offset, key, axes = start - first, list[int | range](), iter(zip(value.shape, strides, strict=True))
    axis = next(axes, None)
    for count, step in zip(base.shape, steps, strict=True):
        k, offset = divmod(offset, step) if step else (0, offset)
        if axis is not None and step <= axis[1] < step * count and axis[1] % step == 0:
            size, stride = axis
            key.append(range(k, k + size * (stride // step), stride // step))
            axis = next(axes, None)
        else:
            key.append(k)
    inside = all(
        (k if isinstance(k, int) else k[-1] if k else 0) in range(n) for k, n in zip(key, base.shape, strict=True)
    )
    if axis is not None or offset or not inside:
        return None
    part, whole = value.as_numbers().whole, base.as_numbers().whole
    slices = tuple(k if isinstance(k, int) else slice(k.start, k.stop, k.step) for k in key)
    picked = None if whole is None else whole[slices]
    return tuple(key) if part is not None and picked is not None and np.array_equal(part, picked) else None


@dataclass(eq=False)
class Call:
    """A call of a function of PyTorch: its name, arguments, operands and results, and where the program makes it.

    `arguments` are those of the call, with a `Value` in the place of each tensor; of `nodes` the gradients flow from
    the results to the operands.
    """

    name: str
    path: str
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    operands: list[Value]
    results: list[Value]
    clock: int
    site: CallSite
    frame: int = 0  # the identity of the frame, which tells the calls of one run of a function apart
    modules: list[Any] = field(default_factory=list)
    bound: Any = None  # the row of gradcli's table, with its operands; None where it has none
    mask: Numbers | None = None  # of dropout
    origin: str = "torch"  # the module that defines a custom function
    parent: Call | None = None
    inner: list[Call] = field(default_factory=list)  # the calls that a function in Python makes
    freed: CallSite | None = None  # the backward that has freed what its nodes save

    def free(self, site: CallSite) -> None:
        """Keep no numbers of results any more, when a backward has freed the nodes."""
        self.freed, self.arguments = site, ((), {})
        for value in self.results:
            value.kept = None

    def stand_for_inner(self) -> None:
        """Let the only call within a function be the function itself, where gradcli has that alone."""
        if self.bound is not None and len(self.inner) == 1 and self.inner[0].bound is None:
            (call,) = self.inner
            call.name, call.path, call.arguments = self.name, self.path, self.arguments
            call.bound, call.operands = self.bound, self.operands
