"""The mode that sees each call of PyTorch at the granularity of the program, and keeps what its page will read.

A call is kept in the metadata of the node of PyTorch's graph that it has made: it lives as long as that graph does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from types import FunctionType
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils.weak import WeakIdKeyDictionary

from gradcli.pytorch.cuts import How, Kind
from gradcli.realtorch.binding import bound, identities
from gradcli.realtorch.sites import caller, frames, is_called_by_program, site_of
from gradcli.realtorch.sweep import is_leaf, nodes_behind
from gradcli.realtorch.values import COPIED, PLAIN, Call, Edge, Lost, Value, dtype_name, numbers_of, tensors_in
from gradcli.record.numbers import Numbers
from gradcli.record.record import NOWHERE, CallSite

KEY = "gradcli"  # of what the metadata of a node holds
_MOST_LOST = 1000  # lines that cut something off, and memories that are written into
_MOST_CHANGES = 3  # before the last one, of a memory
_MOST_NODES = 5_000  # of PyTorch's graph, behind what is cut off
_ATTRIBUTES = {"T", "mT", "H", "mH", "real", "imag"}  # that are computed
# What returns no tensor that is computed of its operands, or looks at these alone.
_PASSED = frozenset(
    (
        "__format__", "__hash__", "__len__", "__repr__", "__reduce_ex__", "__setstate__", "_is_view", "backward",
        "data_ptr", "dim", "element_size", "get_device", "grad", "has_names", "is_complex", "is_contiguous",
        "is_floating_point", "is_inference", "is_pinned", "is_same_size", "is_set_to", "is_shared", "is_signed",
        "ndimension", "nelement", "numel", "register_hook", "register_post_accumulate_grad_hook", "retain_grad",
        "share_memory_", "size", "storage", "storage_offset", "stride", "untyped_storage",
    )
)  # fmt: skip


_READ = {
    "item": Kind.NUMBER,
    "tolist": Kind.LIST,
    "numpy": Kind.ARRAY,
    "__float__": Kind.NUMBER,
    "__int__": Kind.NUMBER,
}
_COPIES = ("tensor", "as_tensor", "asarray")
_INDICES = frozenset(("max", "min", "median", "mode", "sort", "topk", "kthvalue"))
_CASTS = frozenset(("long", "int", "short", "char", "byte", "bool", "to", "type", "type_as"))


class Recording(TorchFunctionMode):  # type: ignore[misc]
    """Records the calls of a program, and what happens to its tensors between them."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = count(1)
        self.values: Any = WeakIdKeyDictionary()  # the last value of each tensor
        self.leaves: Any = WeakIdKeyDictionary()  # the edge of each leaf
        self.cuts: Any = WeakIdKeyDictionary()  # why a tensor has no history, where it lost it, and by what
        self.cleared: Any = WeakIdKeyDictionary()  # where `.grad` of a tensor was set to None
        self.uses: Any = WeakIdKeyDictionary()  # where a leaf was read since the last backward
        self.modules: Any = WeakIdKeyDictionary()  # in whose calls a tensor without a history was computed
        self.shown: Any = WeakIdKeyDictionary()  # leaves whose memory the program has otherwise: .data, .numpy()
        self.lost: dict[tuple[str, int], Lost] = {}  # what was cut off, by its file and its line
        self.swept = 0  # the clock of the last backward
        self.last: CallSite | None = None  # where that was
        # The last backward with an error: its roots and inputs.
        self.failed: tuple[CallSite, Sequence[torch.Tensor], Sequence[torch.Tensor] | None] = NOWHERE, (), None
        self.reached: Any = WeakIdKeyDictionary()  # where the last explained backward of a leaf was
        self.changes: dict[int, list[tuple[int, CallSite]]] = {}  # when and where a memory was written into
        self.shared: dict[int, WeakSet[Value]] = {}  # the values that are kept by reference, by their memory
        self.parents: list[Call] = []  # the Python functions that are entered
        self.depth = 0  # how many backwards and custom functions run, in which no call is recorded
        self.faults: list[Exception] = []  # of the recording itself

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function, and record it where its result has a history."""
        kwargs = kwargs or {}
        globals().pop("__warningregistry__", None)  # each line of the program has its own warnings
        kind = _kind(func)
        if kind == "" or self.depth or torch._C._functorch.peek_interpreter_stack() is not None:
            return func(*args, **kwargs)
        if kind[0] == "=":
            return self._assigned(kind, func, args, kwargs)
        return self._called(kind, func, args, kwargs)

    def _before(
        self, name: str, func: Any, args: Any, kwargs: Any
    ) -> tuple[Call | None, list[torch.Tensor], list[int]]:
        """Return a call whose result may have a history, the tensors that it reads, and their versions.

        Nothing that fails here may reach the program: then the call is not recorded.
        """
        operands: list[torch.Tensor] = []
        try:
            with PLAIN():
                operands = list(tensors_in(args, kwargs))
                self._before_write(name, operands, kwargs)
                if not torch.is_grad_enabled() or not any(x.requires_grad for x in operands):
                    return None, operands, []
                known = [self.value(x) for x in operands]
                versions = [_version(x) for x in operands]
            site, frame, modules = self._where()
            leaves = [x for x in operands if x.requires_grad and x.grad_fn is None] if name != "detach" else []
            if leaves and is_called_by_program(sys._getframe(1)):
                for x in leaves:
                    self.uses[x] = site
            is_custom = isinstance(func, type)
            path = func.__qualname__ if is_custom else resolve_name(func) or name
            call = Call(name, path, _with_values((args, kwargs), iter(known)), known, [], 0, site, frame, modules)
            call.origin = func.__module__ if is_custom else "torch"
            call.parent = self.parents[-1] if self.parents else None
            return call, operands, versions
        except Exception as error:
            self.faults.append(error)
            return None, operands, []

    # Calls

    def _called(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        call, operands, versions = self._before(name, func, args, kwargs)
        if call is None:
            result = func(*args, **kwargs)
            if operands:
                self._after(None, name, operands, versions, result)
            return result
        call.bound = bound(call, args, kwargs, caller(sys._getframe(1)))
        if (call.bound is None or call.bound.is_composed) and _can_be_entered(func):
            self.parents.append(call)
            try:
                with self:
                    return _inner(func)(*args, **kwargs)
            finally:
                self.parents.pop()
                call.stand_for_inner()
        result = func(*args, **kwargs)
        self._after(call, name, operands, versions, result)
        return result

    def _after(
        self, call: Call | None, name: str, operands: list[torch.Tensor], versions: list[int], result: Any
    ) -> None:
        """Keep the results of a call, or why they have no history."""
        try:
            if call is not None:
                call.clock = next(self.clock)
                with PLAIN():
                    changed = [x for x, v in zip(operands, versions, strict=True) if _version(x) != v]
                    if is_in_place(name) and not name.startswith("_foreach"):  # what shows the same memory is read
                        changed = changed[:1]
                    self._results(call, [*tensors_in(result)], changed)
            if call is None or not call.results:
                self._note_cuts(name, operands, result)
                self._note_modules(result)
            elif call.parent is not None:
                call.parent.inner.append(call)
        except Exception as error:
            self.faults.append(error)

    def apply(self, cls: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a custom function, and record it as one operation, whose formula only the program knows."""
        call, operands, versions = self._before(cls.__name__, cls, args, kwargs)
        if call is not None and cls.__name__ == "BackwardHookFunction":  # in which PyTorch calls a module's hooks
            call.bound = identities(call.operands)
        self.depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self.depth -= 1
        self._after(call, cls.__name__, operands, versions, result)
        return result

    def _where(self) -> tuple[CallSite, int, list[Any]]:
        frame, modules = frames(sys._getframe(1))
        return site_of(frame), id(frame), modules

    def _results(self, call: Call, results: list[torch.Tensor], changed: list[torch.Tensor]) -> None:
        """Keep the values of what a call has made or changed, and the call in the nodes of their histories."""
        every = {id(x): x for x in (*results, *changed) if x.grad_fn is not None}
        kept: set[int] = set()
        for x in every.values():
            old = self.values.get(x)
            if old is not None and old.edge is x.grad_fn.metadata.get(KEY, {}).get(x.output_nr) and x not in changed:
                continue  # an operand that is returned as it is
            edge = Edge(call, len(call.results))
            edges_of(x.grad_fn)[x.output_nr] = edge
            value = self._new(x, edge, "result", call.site)
            call.results.append(value)
            kept.add(id(x))
        # The others are operands as they are, or have no history.
        if call.bound is not None and len(kept) < len(call.bound.results) == len(results):
            call.bound.results = [b for b, x in zip(call.bound.results, results, strict=True) if id(x) in kept]
        shapes = [tuple(b.output.shape) for b in call.bound.results] if call.bound is not None else []
        if len(shapes) == len(call.results) and shapes != [v.shape for v in call.results]:  # another function's name
            call.bound = None
        if call.name == "dropout" and len(call.results) == 1:
            mask = getattr(results[0].grad_fn, "_saved_other", None)
            # PyTorch keeps it divided by 1 - p.
            call.mask = numbers_of((mask != 0).to(mask.dtype)) if isinstance(mask, torch.Tensor) else None

    # Values

    def value(self, x: torch.Tensor) -> Value:
        """Return the value of a tensor now."""
        known: Value | None = self.values.get(x)
        is_same = known is not None and known.version == _version(x) and known.requires == x.requires_grad
        if known is not None and is_same and (x.grad_fn is not None or x not in self.shown or _shows(x, known.numbers)):
            return known
        if x.grad_fn is not None:
            edges = edges_of(x.grad_fn)
            return self._new(x, edges.setdefault(x.output_nr, Edge()), "result", NOWHERE)
        if x.requires_grad:
            edge = self.leaves.setdefault(x, Edge())
            return self._new(x, edge, "parameter" if isinstance(x, torch.nn.Parameter) else "leaf", NOWHERE)
        return self._new(x, None, "parameter" if isinstance(x, torch.nn.Parameter) else "data", NOWHERE)

    def _new(self, x: torch.Tensor, edge: Edge | None, role: str, site: CallSite) -> Value:
        is_small = x.numel() <= COPIED
        why, at, lost = self.cuts.get(x, ("", NOWHERE, None)) if x.grad_fn is None else ("", site, None)
        if edge is not None:  # a leaf that was made of what was cut off
            why, at = "", site
        if edge is None and not why and role == "parameter":
            why = "frozen"
        elif edge is None and not why:
            why = "data" if x.is_floating_point() or x.is_complex() else "integers"
        memory = memory_of(x)
        value = Value(
            tuple(x.shape), dtype_name(x.dtype), max(0, _version(x)), memory, edge is not None, edge, role,
            numbers_of(x) if is_small else None, None if is_small else x.detach(), why, at, lost=lost,
            modules=self.modules.get(x, ()),
            layout=(x.storage_offset(), x.stride()) if edge is None and x.layout == torch.strided else None,
        )  # fmt: skip
        if not is_small:
            self.shared.setdefault(memory, WeakSet()).add(value)
        self.values[x] = value
        return value

    def frozen(self, x: torch.Tensor) -> CallSite:
        """Return where `requires_grad` of a tensor was set to False."""
        why, site, _ = self.cuts.get(x, ("", NOWHERE, None))
        return site if why == "frozen" else NOWHERE

    def origin(self, x: torch.Tensor, grad: torch.Tensor | None) -> CallSite:
        """Return where the `.grad` of a leaf was cleared, set to 0, or left by a backward, before this one."""
        if grad is None:
            return self.cleared.get(x, NOWHERE)  # type: ignore[no-any-return]
        if bool(grad.any()):
            return self.reached.get(x, NOWHERE)  # type: ignore[no-any-return]
        memory = None if x.grad is None else memory_of(x.grad)
        return self.changes[memory][-1][1] if memory in self.changes else NOWHERE

    def _before_write(self, name: str, operands: list[torch.Tensor], kwargs: dict[str, Any]) -> None:
        """Copy the values that share the memory of what a call writes into, and keep where it does."""
        if not (is_in_place(name) or "out" in kwargs or kwargs.get("inplace")):
            return
        now = next(self.clock), self._where()[0]
        if len(self.changes) >= _MOST_LOST:
            self.changes.clear()
        written = operands if name.startswith("_foreach") else [*operands[:1], *tensors_in(kwargs.get("out"))]
        for x in written:
            self.changes[memory_of(x)] = [*self.changes.get(memory_of(x), ())[-_MOST_CHANGES:], now]
            for value in self.shared.pop(memory_of(x), ()):
                value.copy()

    # What has no history

    def _note_cuts(self, name: str, operands: list[torch.Tensor], result: Any) -> None:
        """Keep why results have no history, though an operand has one."""
        if name.endswith("_like") or name.startswith("new_"):  # which reads no number
            return
        with PLAIN():
            operands = operands[:1] if name.endswith("_as") else operands
            if name in ("data", "numpy", "detach", "__array__"):
                for x in operands:
                    self.shown[x] = None
            sources = [x for x in operands if x.requires_grad or self.cuts.get(x, ("frozen",))[0] != "frozen"]
            results = [x for x in tensors_in(result) if not x.requires_grad]
            if not sources or not (results or name in _READ):
                return
            known = next((self.cuts[x] for x in sources if x in self.cuts), None)
            how: How | None = _how(name, sources, results)
            site = self._where()[0]
            if not any(x.requires_grad for x in sources) and how is not None and how.kind.why_not != "detached":
                how = None  # which has no history because an operand has none
            # What a library does by itself, as `deepcopy` does, is no line of the program's forward pass.
            lost = known[2] if known else None
            frame = caller(sys._getframe(1))
            is_drawn = frame is not None and frame.f_code.co_name == "sample" and not is_called_by_program(frame)
            if how is not None and is_drawn:
                how = How(Kind.UNRECORDED, ".sample()")
            if how is not None and (is_drawn or is_called_by_program(frame)) and len(self.lost) < _MOST_LOST:
                lost = self.lost.setdefault((site.file, site.line), Lost(site))
                lost.add(how, next(self.clock), [*self._leaves(sources)])
            for x in results:
                why = known[0] if known and how is None else how.kind.why_not if how else "detached"
                self.cuts[x] = why, known[1] if known and why == known[0] else site, lost

    def _note_modules(self, result: Any) -> None:
        """Keep of which modules a result without a history is the output."""
        modules = frames(sys._getframe(1))[1]
        for x in tensors_in(result) if modules else ():
            self.modules[x] = modules

    def _leaves(self, tensors: list[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Yield the leaves that tensors were computed from."""
        yield from (x for x in tensors if x.requires_grad and x.grad_fn is None)
        for lost in [self.cuts[x][2] for x in tensors if x in self.cuts]:
            yield from lost.leaves if lost is not None else ()
        nodes = nodes_behind((x.grad_fn for x in tensors if x.grad_fn is not None), _MOST_NODES)
        yield from (node.variable for node in nodes if is_leaf(node))

    def _assigned(self, kind: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Set an attribute: `.grad`, `.data` or `requires_grad`."""
        x, *value = args
        if kind == "=data":
            self._before_write("=", [x], {})
            self.values.pop(x, None)
        had = kind == "=grad" and x.grad is not None
        result = func(*args, **kwargs)
        if had and value and value[0] is None:
            self.cleared[x] = self._where()[0]
        elif kind == "=requires_grad":
            is_required = value[0] if value else kwargs.get("requires_grad", True)
            if not is_required:
                self.cuts[x] = "frozen", self._where()[0], None
            elif x in self.cuts and self.cuts[x][0] == "frozen":
                del self.cuts[x]
        return result

    @contextmanager
    def sweeping(self) -> Iterator[bool]:
        """Enter a block in which a backward runs, and no call is recorded; yield whether it is the outermost one."""
        self.depth += 1
        try:
            yield self.depth == 1
        finally:
            self.depth -= 1
            if not self.depth:
                self.swept = next(self.clock)
                if len(self.uses):
                    self.uses.clear()


def _how(name: str, sources: list[torch.Tensor], results: list[torch.Tensor]) -> How:
    """Return how a function of PyTorch's cuts its results off from the graph."""
    if name in ("detach", "detach_"):
        return How(Kind.DETACHED, f".{name}()")
    if name == "data":
        return How(Kind.DETACHED, ".data")
    if name in _READ:
        return How(_READ[name], {"__float__": "float()", "__int__": "int()"}.get(name, f".{name}()"))
    if name in _COPIES:
        of_list = bool(results) and results[0].shape != sources[0].shape
        return How(Kind.COPIED, "torch.tensor", "[…]" if of_list else "…")
    if not torch.is_grad_enabled():
        return How(Kind.UNRECORDED, "inference_mode()" if torch.is_inference_mode_enabled() else "no_grad()")
    if name in _INDICES:
        return How(Kind.INDICES, name)
    plain = name.strip("_")
    return How(Kind.DISCRETE, "cast" if name in _CASTS else plain)


def edges_of(node: Any) -> dict[int, Edge]:
    """Return the edges that are known at a node of PyTorch's graph, by the number of its output."""
    result: dict[int, Edge] = node.metadata.setdefault(KEY, {})
    return result


def is_in_place(name: str) -> bool:
    """Return whether a function writes into its first argument.

    >>> [is_in_place(n) for n in ("add_", "__iadd__", "__setitem__", "__add__", "__invert__", "index_put", "=")]
    [True, True, True, False, False, False, True]
    """
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in ("__invert__", "__index__", "__int__"))
    return name.endswith(("_", "="))


def _version(x: torch.Tensor) -> int:
    return -1 if x.is_inference() else x._version


def _shows(x: torch.Tensor, numbers: Numbers | None) -> bool:
    """Return whether a tensor still has numbers that were copied."""
    before, now = None if numbers is None else numbers.whole, numbers_of(x).whole
    return before is None or now is None or np.array_equal(now, before, equal_nan=now.dtype.kind in "fc")


def memory_of(x: torch.Tensor) -> int:
    """Return the identity of a tensor's storage, which views share."""
    try:
        return int(x.untyped_storage()._cdata)
    except Exception:  # of a layout that has no storage
        return id(x)


@cache
def _kind(func: Any) -> str:
    """Return the name under which a function is recorded; "" of what is not, `=grad` of an attribute that is set."""
    name = getattr(func, "__name__", "")
    owner = getattr(func, "__self__", None)
    if name == "__get__":
        attribute = getattr(owner, "__name__", "")
        return attribute if attribute in _ATTRIBUTES or attribute == "data" else ""
    if name == "__set__":
        attribute = getattr(owner, "__name__", "")
        return f"={attribute}" if attribute in ("grad", "data", "requires_grad") else ""
    if name == "requires_grad_":
        return "=requires_grad"
    is_initial = getattr(func, "__module__", "") == "torch.nn.init"
    return "" if name in _PASSED or "." in name or is_initial else name


@cache
def _can_be_entered(func: Any) -> bool:
    """Return whether a function is one of Python's that asks by its own global names whether a mode is entered."""
    names = func.__code__.co_names if isinstance(func, FunctionType) else ()
    return "overrides" not in names and any(n.startswith("has_torch_function") for n in names)


@cache
def _inner(func: FunctionType) -> Callable[..., Any]:
    """Return a function of PyTorch's whose body runs though a mode is entered: its inner calls reach the mode."""
    names = {n: lambda *_: False for n in func.__globals__ if n.startswith("has_torch_function")}
    result = FunctionType(
        func.__code__, {**func.__globals__, **names}, func.__name__, func.__defaults__, func.__closure__
    )
    result.__kwdefaults__ = func.__kwdefaults__
    return result


def _with_values(x: Any, values: Iterator[Value]) -> Any:
    """Return arguments with values in the place of their tensors."""
    if isinstance(x, torch.Tensor):
        return next(values)
    if isinstance(x, list | tuple):
        return tuple(_with_values(e, values) for e in x)
    if isinstance(x, dict):
        return {k: _with_values(e, values) for k, e in x.items()}
    return x
