"""`torch.autograd`: `backward`, `grad`, and what scripts find beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcli.pytorch.backward import Seen, Sweep, about, accumulated, as_tensor
from gradcli.pytorch.messages import warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.record import Edge, Leaf, edge_of, leading
from gradcli.pytorch.tensor import Tensor, alias

__all__ = ["Variable", "backward", "grad"]
ELSEWHERE = {"Function": "autograd.function"} | dict.fromkeys(("gradcheck", "gradgradcheck"), "autograd.gradcheck")
ELSEWHERE |= dict.fromkeys(("detect_anomaly", "enable_grad", "inference_mode", "no_grad"), "modes")
ELSEWHERE |= dict.fromkeys(("set_detect_anomaly", "set_grad_enabled"), "modes")


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
    """Return tensors as a list; for the edge of one, a tensor that leads there."""
    if isinstance(x, Tensor) or x is None:
        return [x]
    if not hasattr(x, "ownership_token"):
        return [_listed(y)[0] if hasattr(y, "ownership_token") else y for y in x]
    node = x.node
    return [node.variable if isinstance(node, Leaf) else leading(np.zeros((*node.shape, 1), node.dtype), node)]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors, weighted by `grad_tensors`, to the `.grad` of the leaves they came from."""
    roots, chosen = _listed(tensors), None if inputs is None else _listed(inputs)
    if not roots:
        raise RuntimeError("'backward' called with no tensors")  # pragma: no cover
    if chosen == []:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    seeds = _seeds(roots, _listed(grad_tensors), create_graph)
    if create_graph:
        warn("backward with create_graph")
    call = Call(_weighted(roots, seeds), chosen, implicit=grad_tensors is None)
    for x in chosen or ():
        x.retain_grad()
    sweep = _swept(call, seeds, retain_graph, create_graph)
    for x in chosen or ():
        g = _arrived(sweep, x)
        if g is not None:
            before = x._grad
            kept = before._a.copy() if before is not None else None
            if x.is_leaf:
                x._grad = accumulated(before, g, create_graph)
            call.leaves.append((x, kept, g, x._grad))
    if chosen is None and Listeners.done is not None:
        call.leaves = [(leaf.variable, *more) for leaf, *more in sweep.leaves]  # type: ignore[misc]
    _tell(call, sweep)


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
        from gradcli.pytorch.func import vmap

        options = (retain_graph, create_graph, allow_unused, False, materialize_grads)
        return vmap(lambda *v: grad(outputs, inputs, v, *options))(*_listed(grad_outputs))  # type: ignore[no-any-return]
    roots, wanted = _listed(outputs), _listed(inputs)
    seeds = _seeds(roots, _listed(grad_outputs), create_graph)
    for x in wanted:
        if not x.requires_grad:
            raise about("One of the differentiated Tensors does not require grad", "no grad", x)
    call = Call(_weighted(roots, seeds), wanted, returns=True, implicit=grad_outputs is None)
    sweep = _swept(call, seeds, retain_graph, create_graph)
    found = [_arrived(sweep, x) for x in wanted]
    for i, (x, g) in enumerate(zip(wanted, found, strict=True)):
        if g is None and not allow_unused and not materialize_grads:
            unused = f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
            raise about(f"{unused}allow_unused=True if this is the desired behavior.", "unused", x, roots)
    call.leaves = [(x, None, g, None) for x, g in zip(wanted, found, strict=True) if g is not None]
    _tell(call, sweep)
    if materialize_grads:
        return tuple(as_tensor(np.zeros_like(x._a)) if g is None else g for x, g in zip(wanted, found, strict=True))
    return tuple(found)


def _swept(call: Call, seeds: Sequence[tuple[Edge, Any]], retain: bool | None, create: bool) -> Sweep:
    """Return the sweep of a call, which has run; who listens is told before it."""
    wanted = None if call.inputs is None else {edge_of(x): None for x in call.inputs}
    sweep = Sweep(bool(create if retain is None else retain) or Mode.mapped, create, wanted)
    call.freed = not sweep.retain
    if Listeners.before is not None:
        Listeners.before(call)
    before, Mode.grad = Mode.grad, create
    outer, Sweep.running = Sweep.running, sweep
    try:
        with np.errstate(all="ignore"):
            sweep.run(seeds)
    finally:
        Mode.grad, Sweep.running = before, outer
    return sweep


def _arrived(sweep: Sweep, x: Tensor) -> Tensor | None:
    """Return what arrived at a tensor that was asked for."""
    g = (sweep.wanted or {}).get(edge_of(x))
    return None if g is None else as_tensor(g)


def _tell(call: Call, sweep: Sweep) -> None:
    if Listeners.done is not None:
        call.seen = sweep.seen or call.seen
        Listeners.done(call)


def _weighted(roots: Sequence[Tensor], seeds: Sequence[tuple[Edge, Any]]) -> list[tuple[Tensor, Any]]:
    return [(y, g if isinstance(g, np.ndarray) else g._a) for y, (_, g) in zip(roots, seeds, strict=True)]


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
    flows = [_seed(i, y, v) for i, (y, v) in enumerate(zip(roots, given, strict=True))]
    for i, y in enumerate(roots):
        if not y.requires_grad:
            raise about(f"element {i} of tensors does not require grad and does not have a grad_fn", "no root", y)
    return [(edge_of(y), as_tensor(v) if create else getattr(v, "_a", v)) for y, v in zip(roots, flows, strict=True)]


def _seed(i: int, y: Tensor, v: Any) -> Any:
    if v is None:
        if y.requires_grad and y._a.size != 1:
            raise about("grad can be implicitly created only for scalar outputs", "scalar", y)
        return np.ones(y._a.shape, y._a.dtype)
    if v.shape != y.shape:
        where = f"grad_output[{i}] has a shape of {v.shape} and output[{i}] has a shape of {y.shape}."
        raise about(f"Mismatch in shape: {where}", "shape", y, v)
    return v.to(y.dtype)


class _VariableType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class Variable(metaclass=_VariableType):
    """What tensors that autograd knows were called once: today it returns the tensor itself."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warn("volatile")
        found = alias(data)
        if requires_grad:
            if found._a.dtype.kind != "f":
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            found.requires_grad_()
        return found


Variable.__module__ = "torch.autograd"
