"""Listens to a script on gradcli's `torch`, and hands on each call of `backward` or `grad` as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Call, Request
from gradcli.pytorch.record import Listener, dependencies, edge_of, finite
from gradcli.pytorch.recording import Named, Tape, numbers_of
from gradcli.record.numbers import Array
from gradcli.record.record import Left, Record

_CACHED = 2**14  # numbers that are squared at a time


class Heard:
    """A call of `backward` or `grad`; `kept` is what its hearer keeps with it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tape: Tape | None = None
        self.kept: Any = None

    @property
    def depth(self) -> int:
        """How many calls it runs within."""
        return self._call.depth

    @property
    def request(self) -> Request | None:
        """What the script asks for by name, of which the call is a part; None for a call of the script's own."""
        return self._call.request

    @property
    def has_roots(self) -> bool:
        """Whether it goes back from any tensor: not that of an empty list."""
        return bool(self._call.roots)

    def hold(self, names: Named) -> None:
        """Hold the recorded steps, before the call frees them."""
        self._call.explained = True
        self._tape = Tape(self._call, names)

    @property
    def operations(self) -> int:
        """How many operations are held."""
        return 0 if self._tape is None else len(self._tape.steps)

    def record(self, most: float = math.inf) -> tuple[Record, Mapping[int, int]]:
        """Return the record of the call, which is done, and the quantities of tensors with names, by their identity.

        It has no operations where these are more than `most`.
        """
        assert self._tape is not None
        return self._tape.record(most), self._tape.live

    @property
    def loss(self) -> float | None:
        """The number that a call of `backward` flows from; None for any other call."""
        call = self._call
        if call.returns or len(call.roots) != 1 or call.roots[0][0].numel() != 1:
            return None
        return call.roots[0][0]._a.item()  # type: ignore[no-any-return]

    @property
    def norm(self) -> float:
        """The 2-norm of the gradients."""
        return math.sqrt(sum(_square(c.grad._a) for c in self._call.contributions))

    @property
    def is_finite(self) -> bool:
        """Whether all gradients are finite."""
        return all(finite(c.grad._a) for c in self._call.contributions)

    @property
    def left(self) -> list[Left]:
        """What is left in each `.grad`; a call that returns its gradients leaves nothing."""
        arrays = ((c, None if c.after is None else c.after._a) for c in self._call.contributions)
        return [Left(id(c.tensor), c.before, after, c.tensor._memory.version) for c, after in arrays]

    @property
    def hooks(self) -> list[Callable[..., Any]]:
        """The hooks of what the gradients go back through."""
        edges = dependencies(edge_of(y)[0] for y, _ in self._call.roots)
        return [h for fn in edges for h in (*chain(*fn.pres.values()), *(fn._nexts or ()), *(fn._posts or ()))]


class Session(Listener):
    """Listens to the calls of a script, for an `explainer` with the same methods, which gets each as `Heard`."""

    def __init__(self, explainer: Any) -> None:
        self._explainer = explainer
        self._running: dict[int, Heard] = {}  # by the identity of the call

    def begins(self, call: Call) -> None:
        """Hand on a call before it runs."""
        heard = self._running[id(call)] = Heard(call)
        self._explainer.begins(heard)

    def is_done(self, call: Call) -> None:
        """Hand on a call that is done."""
        self._explainer.is_done(self._running.pop(id(call)))

    def is_answered(self, request: Request) -> None:
        """Hand on what a request has got."""
        self._explainer.is_answered(request, numbers_of(request.result))

    def stepped(self, optimizer: Any, changes: Sequence[Any]) -> None:
        """Hand on an optimizer's step."""
        self._explainer.stepped(optimizer, changes)


def _square(a: Array) -> float:
    """Return the sum of squares in float64, of as many numbers at a time as a cache holds."""
    row = a.reshape(-1)
    parts = (row[k : k + _CACHED].astype(float) for k in range(0, len(row), _CACHED))
    return float(sum(np.vdot(p, p) for p in parts))
