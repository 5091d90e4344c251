"""Detached numbers: the lines that cut them off from the graph, which explain a missing gradient."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.modes import Mode
from gradcli.pytorch.record import Leaf, Line, Recorder, dependencies, edge_of, script_line

Tensor = Any  # the class is defined above
_OWN = tuple(
    f"gradcli.pytorch.{name}"
    for name in ("calls", "cuts", "dispatch", "names", "operations", "record", "running", "tensor")
)
_TIMES = 8  # that the leaves behind a line are looked up


class Kind(Enum):
    """A kind of cut, which the record has a sentence for."""

    DETACHED = auto()
    NUMBER = auto()
    LIST = auto()
    ARRAY = auto()
    COPIED = auto()
    DISCRETE = auto()
    INDICES = auto()
    UNRECORDED = auto()
    FORWARD = auto()

    @property
    def why_not(self) -> str:
        """Why what is cut off so requires no gradient, in the words of `Quantity.why_not`."""
        if self is Kind.UNRECORDED:
            return "no_grad"
        return "integers" if self in (Kind.DISCRETE, Kind.INDICES) else "detached"


class How(NamedTuple):
    """The way in which a line detaches numbers: `code` is the script's call, `.item()`, or the name of an operation.

    `arguments` are those of a function that copies numbers, as a message has them.
    """

    kind: Kind
    code: str
    arguments: str = ""

    @property
    def call(self) -> str:
        """The script's call, with the arguments where they are known: torch.tensor([…])."""
        return f"{self.code}({self.arguments})" if self.arguments else self.code


@dataclass(eq=False)
class Cut:
    """A line that detaches the numbers of tensors, how it does, and the leaves that they depend on.

    That of one tensor has the ways in which that tensor was cut off, and `at`, that of its line.
    """

    line: Line
    hows: list[How] = field(default_factory=list)
    leaves: dict[int, weakref.ref[Tensor]] = field(default_factory=dict)
    times: int = 0
    at: Cut | None = None

    def blame(self) -> Cut:
        """Add the ways in which a tensor was cut off to those of its line, and return the cut."""
        if self.at is not None:
            self.at.hows.extend(how for how in self.hows if how not in self.at.hows)
        return self


# By the file, the line, and the name of PyTorch's function within which they are; "" for those that the script wrote.
CUTS: dict[tuple[str, int, str], Cut] = {}


def cut(x: Tensor, kind: Kind, code: str, arguments: str = "") -> Cut | None:
    """Record that the line that is running cuts a tensor off; return None for a tensor without a graph.

    A function of PyTorch's that does so within is named in place of `code`, and the line is not blamed for it.  Nor is
    the line of indices, while nothing reads them: the values beside them have a gradient.
    """
    before = x._detached
    if not Recorder.explains or (before is None and not x.requires_grad):
        return None
    line, within = script_line(), _within() if kind not in (Kind.UNRECORDED, Kind.FORWARD) else ""
    how = How(kind, code, arguments) if not within else How(kind, f".{within}()" if code.startswith(".") else within)
    at = CUTS.setdefault((line.file, int(line), within), Cut(line))
    if at.times < _TIMES:
        at.times += 1
        at.leaves |= before.leaves if before is not None else _leaves(x)
    earlier = before.blame().hows if before is not None and before.at is at else []
    result = Cut(line, list(dict.fromkeys([*earlier, how])), at.leaves, at=at)
    return result if kind is Kind.INDICES else result.blame()


def _within() -> str:
    """Return the function of PyTorch's, called by the script, within which another one runs; "" where none does."""
    frame: Any = sys._getframe(2)
    names: list[str] = []
    is_inner = False
    while frame is not None and (module := frame.f_globals.get("__name__", "")).startswith("gradcli."):
        name = frame.f_code.co_name
        if module == "gradcli.pytorch.dispatch" and name == "function":
            names.append(frame.f_locals["self"].public_name)
        elif not module.startswith(_OWN) and not name.startswith("<"):
            is_inner = True
            names.append(name)
        frame = frame.f_back
    return names[-1] if is_inner or len(names) > 1 else ""


def cut_all(data: Any, kind: Kind, code: str, arguments: str = "") -> Cut | None:
    """Record that the line that is running cuts off the tensors in lists."""
    parts = data if isinstance(data, list | tuple) else [data]
    inner = [p for p in parts if isinstance(p, list | tuple) or hasattr(p, "_detached")]
    result = [(cut_all if isinstance(p, list | tuple) else cut)(p, kind, code, arguments) for p in inner]
    return next((c for c in result if c is not None), None)


def note_lost(out: Tensor, operands: Sequence[Any], op: str, kind: Kind = Kind.DISCRETE) -> None:
    """Record where the result of an operation, which is not recorded, was cut off from the graph."""
    for x in operands if Recorder.explains else ():
        if isinstance(x, np.ndarray):
            continue
        if x._detached is not None:
            out._detached = x._detached.blame()
        elif x.requires_grad:
            out._detached = cut(x, kind, op) if Mode.grad else _unrecorded(x)


def _unrecorded(x: Tensor) -> Cut | None:
    """Record that the line that is running computes something of a tensor where nothing is recorded."""
    kind = Kind.FORWARD if Mode.off.startswith("the forward") else Kind.UNRECORDED
    return cut(x, kind, Mode.off) if Mode.off else None


def _leaves(x: Tensor) -> dict[int, weakref.ref[Tensor]]:
    """Return the leaves that a tensor depends on, and the intermediates that retain their gradients."""
    try:
        edges = dependencies([edge_of(x)[0]])
    except RuntimeError:  # a view that a change in place has left behind
        return {}
    retained = (kept() for e in edges for kept in e.retained.values())
    result = [*(e.variable for e in edges if isinstance(e, Leaf)), *(y for y in retained if y is not None)]
    return {id(y): weakref.ref(y) for y in result}
