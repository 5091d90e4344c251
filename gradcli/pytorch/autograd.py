"""`torch.autograd`: `backward`, `grad`, and what scripts find beside them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Seen, Sweep, about, accumulated, as_tensor
from gradcli.pytorch.modes import (
    Mode,
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from gradcli.pytorch.record import Edge, edge_of
from gradcli.pytorch.tensor import Tensor

__all__ = [
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_CREATE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
    "the cycle and avoid the leak."
)


@dataclass
class Call:
    """One call of `backward` or `grad`, for who explains it."""

    roots: list[tuple[Tensor, Any]]  # what it flowed from, with v
    inputs: list[Tensor] | None = None  # what gradients are asked for; None: all leaves
    returns: bool = False  # what it finds, and leaves every .grad as it is
    freed: bool = True
    implicit: bool = False  # the script gave no v
    leaves: list[tuple[Tensor, Any, Any, Any]] = field(default_factory=list)  # with .grad before, own, and after
    seen: Seen = field(default_factory=Seen)


class Listeners:
    """Who is told: of a call before it runs, and of one that is done."""

    before: Callable[[Call], None] | None = None
    done: Callable[[Call], None] | None = None


def _listed(x: Any) -> list[Any]:
    return [x] if isinstance(x, Tensor) or x is None else list(x)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors, weighted by `grad_tensors`, to the `.grad` of the leaves they came from."""
    roots = _listed(tensors)
    if not roots:
        raise RuntimeError("'backward' called with no tensors")  # pragma: no cover
    if inputs is not None and not len(_listed(inputs)):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    seeds = _seeds(roots, _listed(grad_tensors), create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warnings.warn(_CREATE, UserWarning, stacklevel=3)
    chosen = _listed(inputs) if inputs is not None else None
    sweep = Sweep(bool(keep), create_graph, None if chosen is None else {edge_of(x): None for x in chosen})
    call = _Running(sweep, _call(roots, seeds, chosen, implicit=grad_tensors is None))
    call.run(seeds)
    for x in chosen or ():
        g = call.found(x)
        if g is not None:
            before = x._grad
            kept = before._a.copy() if before is not None else None
            x._grad = accumulated(before, as_tensor(g), create_graph)
            call.call.leaves.append((x, kept, as_tensor(g), x._grad))
    call.is_done()


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of outputs with respect to inputs, and leave every `.grad` as it is."""
    if is_grads_batched:
        from gradcli.pytorch.missing import MissingError

        raise MissingError("torch.autograd.grad(is_grads_batched=True)")
    roots, wanted = _listed(outputs), _listed(inputs)
    given = _listed(grad_outputs) if grad_outputs is not None else [None] * len(roots)
    seeds = _seeds(roots, given, create_graph)
    for x in wanted:
        if not x.requires_grad:
            raise about("One of the differentiated Tensors does not require grad", "no grad", x)
    keep = create_graph if retain_graph is None else retain_graph
    sweep = Sweep(bool(keep), create_graph, {edge_of(x): None for x in wanted})
    call = _Running(sweep, _call(roots, seeds, wanted, implicit=grad_outputs is None))
    call.call.returns = True
    call.run(seeds)
    call.call.leaves = [(x, None, as_tensor(g), None) for x in wanted if (g := call.found(x)) is not None]
    call.is_done()
    found: list[Tensor | None] = []
    for i, x in enumerate(wanted):
        g = call.found(x)
        if g is None and materialize_grads:
            g = np.zeros_like(x._a)
        if g is None and not allow_unused:
            raise about(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
                "unused",
                x,
                roots,
            )
        found.append(None if g is None else as_tensor(g))
    return tuple(found)


def _call(roots: Sequence[Tensor], seeds: Sequence[tuple[Edge, Any]], inputs: Any, implicit: bool) -> Call:
    found = [(y, g if isinstance(g, np.ndarray) else g._a) for y, (_, g) in zip(roots, seeds, strict=True)]
    return Call(found, inputs, implicit=implicit)


@dataclass
class _Running:
    """A sweep, and the call that it is of."""

    sweep: Sweep
    call: Call

    def run(self, seeds: Sequence[tuple[Edge, Any]]) -> None:
        """Run the sweep, and tell who listens before it."""
        sweep, call = self.sweep, self.call
        call.freed = not sweep.retain
        if Listeners.before is not None:
            Listeners.before(call)
        before, Mode.grad = Mode.grad, sweep.create
        try:
            with np.errstate(all="ignore"):
                sweep.run(seeds)
        finally:
            Mode.grad = before

    def found(self, x: Tensor) -> Any:
        """Return what arrived at a tensor that was asked for."""
        return (self.sweep.wanted or {}).get(edge_of(x))

    def is_done(self) -> None:
        """Tell who listens."""
        if Listeners.done is not None:
            if self.sweep.wanted is None:
                self.call.leaves = [(leaf.variable, old, own, new) for leaf, old, own, new in self.sweep.leaves]
            self.call.seen = self.sweep.seen or self.call.seen
            Listeners.done(self.call)


def _seeds(roots: Sequence[Tensor], given: Sequence[Any], create: bool) -> list[tuple[Edge, Any]]:
    """Return what flows into each root.

    Errors: PyTorch's, for a root without a gradient, and for a `v` that does not fit.
    """
    given = list(given) if len(given) != 1 or given[0] is not None else [None] * len(roots)
    for v in given[: len(roots)]:
        if v is not None and not isinstance(v, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(v).__name__}")
    if len(given) != len(roots):
        raise about(f"got {len(roots)} tensors and {len(given)} gradients", "count")
    seeds: list[tuple[Edge, Any]] = []
    for i, (y, v) in enumerate(zip(roots, given, strict=True)):
        if v is None:
            if y.requires_grad and y._a.size != 1:
                raise about("grad can be implicitly created only for scalar outputs", "scalar", y)
            v = np.ones(y._a.shape, y._a.dtype)
        else:
            _check_shape(i, y, v)
            v = v.to(y.dtype)  # type: ignore[attr-defined]
            v = v if create else v._a
        seeds.append((None, v))  # type: ignore[arg-type]
    found = []
    for i, (y, (_, v)) in enumerate(zip(roots, seeds, strict=True)):
        if not y.requires_grad:
            raise about(f"element {i} of tensors does not require grad and does not have a grad_fn", "no root", y)
        v = as_tensor(v) if create else v
        found.append((edge_of(y), v))
    return found


def _check_shape(i: int, y: Tensor, v: Any) -> None:
    if v.shape != y.shape:
        raise about(
            f"Mismatch in shape: grad_output[{i}] has a shape of {v.shape} and output[{i}] has a shape of {y.shape}.",
            "shape",
            y,
            v,
        )


class _VariableType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class Variable(metaclass=_VariableType):
    """What tensors that autograd knows were called once: today it returns the tensor itself."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        found = _alias(data)
        if requires_grad:
            found.requires_grad_()
        return found


def _alias(data: Tensor) -> Tensor:
    """Return a leaf that shows the same memory."""
    from gradcli.pytorch.tensor import new

    found = new(data._a)
    found._memory = data._memory
    return found


Variable.__module__ = "torch.autograd"


def __getattr__(name: str) -> Any:
    if name == "Function":
        return import_module("gradcli.pytorch.functions").Function
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(import_module("gradcli.pytorch.gradcheck"), name)
    raise AttributeError(name)
