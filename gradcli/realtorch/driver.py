"""The recording of a program under PyTorch: which backwards are explained, and when the recording ends."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import CodeType
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack

from gradcli.realtorch.mode import KEY, Recording
from gradcli.realtorch.quiet import unseen
from gradcli.realtorch.rounds import Count, Rounds
from gradcli.realtorch.sites import Lines, frames, site_of, user_frames
from gradcli.realtorch.steps import Explain, Steps
from gradcli.realtorch.sweep import Sweep, heard, is_leaf, nodes_behind
from gradcli.realtorch.values import PLAIN, tensors_in
from gradcli.realtorch.writing import Request, Writer
from gradcli.record.naming import names_in
from gradcli.record.record import CallSite, Record

_PATIENCE = 5  # how often explained lines run again before the others are given up
_REST = 100  # and before calls and steps are counted no longer


class Session:
    """A program that runs under PyTorch while its calls are recorded, until each backward line of it has its page.

    `wants` says, of the site of a backward and how often it was reached, whether it is explained; `explain` gets the
    record of each that is, or why it has none, and whether its calls were recorded; `explain_step` what a step of an
    optimizer has done; `count` what each of the first calls has added to `.grad`.  Without `lines`, the recording does
    not end; once it has ended, PyTorch's functions are its own again, and after some rounds `autograd.backward` and
    `autograd.grad` too, unless a line has no page yet.  `reached` says how often each line was, and `uncounted` has
    those that were not counted to the end.
    """

    def __init__(
        self,
        wants: Callable[[CallSite, int], bool],
        explain: Callable[[Record | Exception, CallSite, bool], None],
        lines: Lines | None = None,
        explain_step: Explain | None = None,
        count: Count | None = None,
    ) -> None:
        self.wants, self.explain, self.lines = wants, explain, lines
        self.reached: Counter[CallSite] = Counter()
        self.rounds = Rounds(count)
        self.uncounted: set[CallSite] = set()
        self.recording = record = Recording()
        self.steps = explain_step and Steps(wants, explain_step, self.reached, self.uncounted, record)
        self.explained: set[tuple[str, int, int]] = set()
        self._done: dict[tuple[int, int], tuple[CallSite, CodeType]] = {}  # what needs no page, by code and instruction
        self.is_recording = False
        self.failed: Writer | None = None  # of a backward that has ended with an error
        self.live: dict[int, int] = {}  # the quantity of each tensor with a name in the last record, by its identity
        self.has_ended = False  # before the program has
        self.keeps_all = False  # numbers, also of large intermediates: for a picture
        self._again = 0  # how often a line was reached again since the last page
        self._wrappers: list[tuple[Any, str, Any, Any]] = []  # of whom, its name, what was there, and what is
        self._process = os.getpid()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record within a block."""
        self._wrap(torch.autograd, "backward", self._running("backward"))
        self._wrap(torch.autograd, "grad", self._running("grad"))
        self._wrap(torch.Tensor, "backward", self._ending)
        self._wrap(torch.autograd.Function, "apply", self._applied)
        self._wrap(torch, "compile", self._compiled)
        self._wrap(torch.amp.GradScaler, "scale", self._scaled)
        self.is_recording = True
        self.recording.__enter__()
        try:
            with unseen(), self.steps.listening() if self.steps is not None else nullcontext():
                yield
        finally:
            self.has_ended = not self.is_recording
            self._end_if_on_top()
            self._unwrap()

    def _wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        before = vars(owner)[name]
        function = getattr(before, "__func__", before)
        new = functools.wraps(function)(wrapper(function))
        now = classmethod(new) if isinstance(before, classmethod) else new
        setattr(owner, name, now)
        self._wrappers.append((owner, name, before, now))

    def _unwrap(self, kept: Any = None) -> None:
        """Put PyTorch's own functions back, but for those of one owner, and what the program has replaced itself."""
        for owner, name, before, now in self._wrappers[::-1]:
            if owner is not kept and vars(owner).get(name) is now:
                setattr(owner, name, before)
        self._wrappers = [w for w in self._wrappers if w[0] is kept]

    # What is wrapped

    def _running(self, name: str) -> Callable[[Any], Any]:
        method, recording = torch.Tensor.backward.__code__, self.recording

        def wrapper(function: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                frame: Any = sys._getframe(1)
                if frame.f_code is method:
                    frame = frame.f_back
                done = self._done.get((id(frame.f_code), frame.f_lasti))
                if done is None or recording.depth:
                    return self._run(name, function, args, kwargs)
                self.reached[done[0]] += 1
                if self.steps is not None and name == "backward":
                    self.steps.swept(None)
                self._again += 1
                if self._again == _REST:
                    self._rest()
                begun = self.rounds.begin(name, _given(name, args, kwargs)) if self.rounds.count is not None else None
                recording.depth = 1  # what runs within it is no line of its own
                try:
                    result = self._pass_on(name, function, args, kwargs, done[0])
                    self.rounds.end(done[0], begun)
                    return result
                finally:
                    recording.depth = 0

            return called

        return wrapper

    def _ending(self, function: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            finally:
                self._end_if_done()

        return called

    def _applied(self, function: Any) -> Any:
        """Return what calls a custom function, and records it as one operation."""

        def called(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.is_recording or self.recording.depth:
                return function(cls, *args, **kwargs)
            return self.recording.apply(cls, functools.partial(function, cls), args, kwargs)

        return called

    def _compiled(self, function: Any) -> Any:
        """Return what compiles a model, which runs as it stands while it is recorded."""

        def called(*args: Any, **kwargs: Any) -> Any:
            compiled = function(*args, **kwargs)
            if self.is_recording:
                torch.compiler.set_stance("force_eager")
                self._compiles = True
            return compiled

        return called

    def _scaled(self, function: Any) -> Any:
        """Return what scales a loss, and keeps the factor with the node that multiplies it."""

        def called(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = function(scaler, *args, **kwargs)
            if self.is_recording and scaler.is_enabled():
                with PLAIN():
                    factor = scaler.get_scale()
                    for y in tensors_in(result):
                        if y.grad_fn is not None:
                            y.grad_fn.metadata[_SCALE] = factor
            return result

        return called

    _compiles = False

    # A backward

    def _run(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self._process != os.getpid():  # a process that was forked has no pages
            return function(*args, **kwargs)
        frame, _ = frames(sys._getframe(2))
        site = site_of(frame)
        with self.recording.sweeping() as is_first:
            if not is_first or torch._C._functorch.peek_interpreter_stack() is not None:
                return function(*args, **kwargs)
            key = site.file, site.line, site.instruction
            self.reached[site] += 1
            self.recording.last = site
            wanted = self.wants(site, self.reached[site])
            given = _given(name, args, kwargs)
            request = _request(name, given, site) if wanted else None
            begun = self.rounds.begin(name, given) if request is None else None
            if request is None:
                self._again += 1
                has_no_page = self.lines is not None and self.reached[site] > self.lines.round
                if has_no_page and not self.is_recording and frame is not None:
                    self._done[id(frame.f_code), frame.f_lasti] = site, frame.f_code
                keeps = given.get("retain_graph") or given.get("create_graph")
                roots = [y for y in tensors_in(given.get(_ROOTS[name])) if y.grad_fn is not None]
                nodes = nodes_behind(y.grad_fn for y in roots) if self.is_recording else {}
                if self.steps is not None and name == "backward":
                    self.steps.swept(None)
                result = self._pass_on(name, function, args, kwargs, site)
                for leaf in filter(is_leaf, nodes if name == "backward" else ()):
                    self.recording.reached[leaf.variable] = site
                _free({} if keeps else nodes, site)
                self.rounds.end(site, begun)
                return result
            request.names = names_in(user_frames(frame)).readable()
            request.retaining = [
                (x, None if x.grad is None else x.grad.detach().clone())
                for _, x in request.names.named()
                if not x.is_leaf and x.retains_grad
            ]
            sweep = Sweep([node for y in request.roots if (node := node_of(y)) is not None])
            writer, fault = Writer(self.recording, sweep, request, self.keeps_all), None
            try:
                with torch._C.DisableTorchFunction():
                    writer.prepare()
            except Exception as error:
                fault = error
            try:
                self.failed = writer
                with heard(x for _, x in request.names.named()) as request.hooked:
                    result = self._pass_on(name, function, args, kwargs, site)
                self.failed = None
            finally:
                sweep.finish()
            request.returned = result if isinstance(result, tuple) else ()
            self.explained.add(key)
            self._again = 0
            leaves = [leaf.tensor for leaf in sweep.leaves.values()]
            if self.steps is not None and name == "backward":
                self.steps.swept(leaves)
            self._explain(writer, fault)
            self.rounds.explained(site, name, request.roots, sweep.leaves.values())
            for x in leaves if name == "backward" else ():
                self.recording.reached[x] = site
        self._end_if_done()
        return result

    def _pass_on(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any, site: CallSite) -> Any:
        """Return what PyTorch's function returns; keep the roots of a call that ends with an error."""
        try:
            return function(*args, **kwargs)
        except Exception:
            given = _given(name, args, kwargs)
            inputs = given.get("inputs")
            wanted = None if inputs is None else [*tensors_in(inputs)]
            self.recording.failed = site, [*tensors_in(given.get(_ROOTS[name]))], wanted
            raise

    def _explain(self, writer: Writer, fault: Exception | None) -> None:
        """Write the record of a backward, and hand it on; the program goes on, whatever fails here."""
        request = writer.request
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                record: Record | Exception = writer.record() if fault is None else fault
        except Exception as error:
            record = error
        self.live = writer.known()
        if request.freed:
            _free(writer.sweep.nodes, request.site)
        with torch._C.DisableTorchFunction():
            self.explain(record, request.site, self.is_recording)

    @functools.cached_property
    def failure(self) -> tuple[Record, dict[int, int]] | None:
        """The record of the backward that has ended with an error, and its quantities, if it was to be explained."""
        writer = self.failed
        if writer is None or writer.request.site != self.recording.failed[0]:
            return None
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return writer.record(), writer.known()

    # The end

    def _end_if_done(self) -> None:
        """End the recording where no line is left that has no page yet."""
        if not self.is_recording or self.lines is None or not self.explained:
            return
        if self._again >= _PATIENCE or self.lines.are_explained(self.explained):
            self._end_if_on_top()

    def _end_if_on_top(self) -> None:
        """Leave the mode, unless it is set aside while one of its calls runs."""
        if self.is_recording and [*_get_current_function_mode_stack()][-1:] == [self.recording]:
            self.is_recording, self._again = False, 0
            self.recording.__exit__(None, None, None)
            self._unwrap(torch.autograd)  # a line that is met later goes through its functions
            if self._compiles:
                torch.compiler.set_stance("default")

    def _rest(self) -> None:
        """Stop counting where no line is left without a page: PyTorch has its functions back, at their own speed."""
        self.rounds.count = None
        if self.steps is not None:
            self.steps.rest()
        if self.lines is not None and self.lines.are_explained(self.explained):
            self._unwrap()
            self.uncounted.update(site for site, _ in self._done.values())


_SCALE = "gradcli.scale"  # the factor of a GradScaler, in the metadata of the node that multiplies by it
_ROOTS = {"backward": "tensors", "grad": "outputs"}


def _given(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of `backward` or `grad` by their names."""
    names = {
        "backward": ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"),
        "grad": ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"),
    }[name]
    given: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
    return given


def _request(name: str, given: dict[str, Any], site: CallSite) -> Request | None:
    """Return what a call of `backward` or `grad` asks for; None where PyTorch is about to raise an error."""
    if given.get("is_grads_batched"):
        return None
    roots = _sequence(given.get(_ROOTS[name]))
    v = _sequence(given.get("grad_tensors" if name == "backward" else "grad_outputs")) or [None] * len(roots)
    if not roots or len(v) != len(roots) or not all(isinstance(y, torch.Tensor) and y.requires_grad for y in roots):
        return None
    pairs = [*zip(roots, v, strict=True)]
    if any((y.numel() != 1) if g is None else (getattr(g, "shape", None) != y.shape) for y, g in pairs):
        return None
    with PLAIN(), torch._C.DisableTorchFunction():
        weights = [torch.ones_like(y).detach() if g is None else g.detach() for y, g in pairs]
        scales = {1.0 if y.grad_fn is None else y.grad_fn.metadata.get(_SCALE, 1.0) for y in roots}
    creates, keeps, inputs = bool(given.get("create_graph")), given.get("retain_graph"), given.get("inputs")
    return Request(
        roots, weights, site, name,
        None if inputs is None else [x for x in _sequence(inputs) if isinstance(x, torch.Tensor)],
        all(g is None for g in v), creates, not (creates if keeps is None else keeps),
        scale=scales.pop() if len(scales) == 1 else 1.0,
    )  # fmt: skip


def _free(nodes: Iterable[Any], site: CallSite) -> None:
    """Keep no numbers of the calls whose nodes a backward has freed."""
    for node in nodes:
        for edge in () if is_leaf(node) else node.metadata.get(KEY, {}).values():
            if edge.call is not None:
                edge.call.free(site)


def _sequence(x: Any) -> Sequence[Any]:
    if x is None or isinstance(x, torch.Tensor):
        return () if x is None else (x,)
    with suppress(TypeError):
        return tuple(x.values() if isinstance(x, dict) else x)
    return (x,)


def node_of(y: torch.Tensor) -> Any:
    """Return the node of PyTorch's graph at which the gradient of a tensor arrives."""
    if y.grad_fn is not None:
        return y.grad_fn
    with torch._C.DisableTorchFunction(), torch.enable_grad():
        view = y.view_as(y).grad_fn
        return None if view is None else view.next_functions[0][0]
