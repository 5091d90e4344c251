"""The records of live tensors: of one from its `grad_fn` alone, and of all that an error of PyTorch's has left.

Nothing is added to any `.grad`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradcli.errors import InputError
from gradcli.realtorch.driver import node_of
from gradcli.realtorch.mode import Recording, memory_of
from gradcli.realtorch.sites import frames, site_of, user_frames
from gradcli.realtorch.sweep import Sweep
from gradcli.realtorch.values import PLAIN, Value, numbers_of
from gradcli.realtorch.writing import Request, Writer, _Part
from gradcli.record.naming import Names, is_readable, names_in
from gradcli.record.numbers import Numbers
from gradcli.record.record import CallSite, Changed, Contribution, Record

_NOTHING = Numbers(None, (), "float32")


def record_of(y: torch.Tensor, v: Any = None) -> Record:
    """Return the record of a backward from a tensor, by what PyTorch's graph and a recording know of it.

    Hooks of the graph run, as in any backward.

    Errors: `InputError` for a tensor without a graph, and for several numbers without a `v` of their shape.
    """
    if not y.requires_grad:
        raise InputError("the tensor requires no gradient", hint="it has no grad_fn: nothing that requires one made it")
    if v is None and y.numel() != 1:
        raise InputError(f"the tensor has shape {tuple(y.shape)}", hint="give the cotangent: gradcli.explain(y, v=…)")
    with torch.no_grad():
        weight = torch.ones_like(y) if v is None else torch.as_tensor(v, dtype=y.dtype, device=y.device)
    if weight.shape != y.shape:
        raise InputError(f"v has shape {tuple(weight.shape)}", hint=f"its shape is {tuple(y.shape)}")
    frame, _ = frames(sys._getframe(1))
    names, recording = names_in(user_frames(frame)), Recording()
    sweep = Sweep([node_of(y)])
    leaves = [leaf.tensor for leaf in sweep.leaves.values()]
    request = Request([y], [weight], site_of(frame), "grad", leaves, v is None, False, False, names)
    writer = Writer(recording, sweep, request)
    writer.prepare()
    try:
        grads = torch.autograd.grad(y, leaves, weight, retain_graph=True, allow_unused=True)
    finally:
        sweep.finish()
    request.returned = grads
    with torch.no_grad():
        return writer.record()


def ended(recording: Recording, names: Names) -> tuple[Record, dict[int, int]]:
    """Return the record of tensors with names, as far as it is known, and the quantity of each by its identity."""
    with torch._C.DisableTorchFunction(), torch.no_grad(), PLAIN():
        tensors = [*_tensors(names.readable()), *recording.failed[1], *(recording.failed[2] or ())]
        nodes = {y: node for y in tensors if y.requires_grad and (node := node_of(y)) is not None}
        sweep = Sweep(nodes.values(), hooks=False)
        writer = _EndWriter(recording, sweep, Request([*nodes], [], names=names))
        return writer.end()


class _EndWriter(Writer):
    """Writes such a record: its backwards are those that have reached the leaves, or have freed operations."""

    def end(self) -> tuple[Record, dict[int, int]]:
        """Return the record, and the quantities of the tensors."""
        self.prepare()
        self._operations()
        known = {id(x): self._quantity(self.recording.value(x)) for x in _tensors(self.request.names)}
        self._write_names()
        self._cuts()
        for part in self.parts:
            self._changed(part)
        self._backwards(known)
        for x in [x for x in self.request.names.held() if isinstance(x, torch.Tensor) and not is_readable(x)]:
            known[id(x)] = self._left_behind(x)
        return self.recorder.record(), known

    def _changed(self, part: _Part) -> None:
        """Write what was changed in place of what the backward of a call will read, and where."""
        kinds = {kind for node in part.nodes for kind in _lost(node, "modified by an inplace operation")}
        results = [(len(part.operands) + k, v) for k, v in enumerate(part.call.results)]
        read = [(i, v) for i, v in enumerate(part.operands) if isinstance(v, Value)]
        named = {v.storage: name for name, v in reversed(self.names)}
        of_results = results if kinds & {"result", "saved_tensors"} else ()
        for i, value in (*of_results, *(read if kinds - {"result"} else ())):
            sites = [site for clock, site in self.recording.changes.get(value.storage, ()) if clock > part.call.clock]
            if sites and value in self.ids and value.storage in named:  # which a later value has now
                self.recorder.name(self.ids[value], named[value.storage])
            for site in sites:
                is_last = site is sites[-1]
                storage = self.storages.get(value.storage)
                self.recorder.event(Changed(site=site, storage=storage, operations=((part.number, i),) * is_last))

    def _left_behind(self, view: torch.Tensor) -> int:
        """Write a view whose graph a change in place has left behind, and that change; return its quantity."""
        numbers, memory = numbers_of(view.detach()), memory_of(view)
        q = self.recorder.quantity(numbers, "result", requires=True, storage=self.storages.get(memory))
        self.recorder.name(q, self.request.names.of(view))
        for _, site in self.recording.changes.get(memory, ())[-1:]:
            self.recorder.event(Changed(site=site, storage=self.storages.get(memory, q)))
        return q

    def _backwards(self, known: Mapping[int, int]) -> None:
        last, sites = self.recording.last, dict[CallSite, list[int]]()
        for x in _tensors(self.request.names):
            if (site := self.recording.reached.get(x)) is not None:
                sites.setdefault(site, []).append(known[id(x)])
        passed: dict[CallSite, list[tuple[int, int]]] = {}  # the results of operations that a backward went through
        freed: dict[CallSite, list[tuple[int, int]]] = {}  # and of those that cannot be gone through again
        for part in self.parts:
            if part.call.freed is not None:
                results = [(part.number, k) for k, _ in enumerate(part.call.results)]
                passed.setdefault(part.call.freed, []).extend(results)
                if any(_lost(node, "a second time") for node in part.nodes):
                    freed.setdefault(part.call.freed, []).extend(results)
        for site in sorted({*sites, *passed, *([last] if last else [])}, key=lambda site: site == last):
            if lost := dict.fromkeys(freed.get(site, ()), _NOTHING):
                b = self.recorder.begin_backward((), (), site=site)
                self.recorder.end_backward(b, lost, {}, freed=True)
            roots, inputs = self._failed(site)
            b = self.recorder.begin_backward(roots, (), site=site, inputs=inputs)
            leaves = [Contribution(q, None, _NOTHING, _NOTHING) for q in sites.get(site, ())]
            self.recorder.end_backward(b, dict.fromkeys(passed.get(site, ()), _NOTHING), {}, leaves=leaves, freed=False)

    def _failed(self, site: CallSite) -> tuple[Sequence[int], Sequence[int] | None]:
        """Return the roots and the inputs of the backward that failed, if it is that at a place."""
        where, roots, inputs = self.recording.failed
        ids = [[self._quantity(self.recording.value(x)) for x in xs or ()] for xs in (roots, inputs)]
        return ((), None) if where != site else (ids[0], None if inputs is None else tuple(ids[1]))


def _tensors(names: Names) -> list[torch.Tensor]:
    """Return the tensors with a name, also one that something else has where the program has stopped."""
    return [x for x in names.held() if isinstance(x, torch.Tensor) and is_readable(x)]


def _lost(node: Any, words: str) -> set[str]:
    """Return the names of what a node of PyTorch's graph has saved, and can no longer read: the error has the words."""
    result = set()
    for name in [n for n in dir(node) if n.startswith("_saved_") or n == "saved_tensors"]:
        try:
            getattr(node, name)
        except RuntimeError as error:
            if words in str(error):
                result.add(name.removeprefix("_saved_"))
        except Exception:  # of one that cannot be shown
            continue
    return result
