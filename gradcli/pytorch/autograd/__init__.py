"""`torch.autograd`: `backward`, `grad`, and the names beside them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradcli.pytorch import names
from gradcli.pytorch.backward import Call, Contribution
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode, _Lasting, _Switch
from gradcli.pytorch.record import Recorder, edge_of
from gradcli.pytorch.tensor import Tensor, alias, new

__all__ = ["Variable", "backward", "detect_anomaly", "grad", "set_detect_anomaly"]
ELSEWHERE = {"Function": "autograd.function"} | dict.fromkeys(("gradcheck", "gradgradcheck"), "autograd.gradcheck")
ELSEWHERE |= dict.fromkeys(("enable_grad", "inference_mode", "no_grad", "set_grad_enabled"), "modes")


def _as_list(x: Any) -> list[Any]:
    """Return tensors as a list."""
    return [x] if isinstance(x, Tensor) or x is None else list(x)


def _chosen(inputs: Any, function: str) -> list[Tensor]:
    """Return the tensors whose gradients are requested."""
    result = _as_list(inputs)
    raise_if(not result, "empty inputs", function)
    return result


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, create_graph: bool = False, *, inputs: Any = None
) -> None:
    """Add the gradients of tensors, weighted by `grad_tensors`, to the `.grad` of the leaves."""
    raise_if(Mode.transforms, "backward in a transform")
    chosen = None if inputs is None else _chosen(inputs, "backward")
    call = _begun(tensors, grad_tensors, retain_graph, create_graph)
    if create_graph:
        warn("backward with create_graph")
    for x in chosen or ():
        x.retain_grad()
    call.inputs = chosen
    call.run()
    Recorder.listener.is_done(call)


@names.function("backward")  # `autograd.function` is a module
def _backward(
    self: Tensor, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> None:
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_backward.__qualname__ = "Tensor.backward"  # for what Python says of wrong arguments


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients of outputs with respect to inputs, and leave every `.grad` as it is."""
    if materialize_grads and allow_unused is False:
        raise torch_error("unused, yet materialized")
    missing_if(is_grads_batched, "autograd.grad(is_grads_batched=…)", "torch.func.vmap")
    by_script = Mode.maps and not sys._getframe(1).f_globals.get("__name__", "").startswith("gradcli.")
    for i, y in enumerate(_as_list(outputs)):
        if by_script and Mode.maps == Mode.transforms and y._map <= Mode.maps:  # it stands for all elements
            raise torch_error("no gradient in a map", i, about=(y,))
    call = _begun(outputs, grad_outputs, retain_graph, create_graph)
    call.inputs = chosen = _chosen(inputs, "grad")
    call.returns = True
    for x in chosen:
        raise_if(not x.requires_grad, "input without a gradient", about=(x,))
    call.run()
    result: list[Tensor | None] = []
    for i, x in enumerate(chosen):
        g = call.targets[edge_of(x)]
        if g is not None:
            call.contributions.append(Contribution(x, g))
        elif materialize_grads:
            g = new(np.zeros_like(x._a))
            g._requires = create_graph
        elif not allow_unused:
            raise torch_error("unused input", i, about=(x, [y for y, _ in call.roots]))
        result.append(g)
    Recorder.listener.is_done(call)
    return tuple(result)


def _begun(outputs: Any, grad_outputs: Any, retain: bool | None, create: bool) -> Call:
    """Return a call, with the cotangent v of each root.

    Errors: PyTorch's, for a root without a gradient, and for a `v` that does not fit.
    """
    roots = _as_list(outputs)
    vs: list[Any] = [None] * len(roots) if grad_outputs is None else _as_list(grad_outputs)
    for v in vs[: len(roots)]:
        raise_if(v is not None and not isinstance(v, Tensor), "kind of a gradient", type(v).__name__)
    seeds = [(y, _seed(i, y, v)) for i, (y, v) in enumerate(zip(roots, vs, strict=False))]
    raise_if(len(vs) != len(roots), "count of gradients", len(roots), len(vs))
    for i, y in enumerate(roots):
        raise_if(not y.requires_grad, "no gradient to start from", i, about=(y,))
    freed = not ((create if retain is None else retain) or Mode.mapped)
    return Call(seeds, freed=freed, create=create, implicit=grad_outputs is None)


def _seed(i: int, y: Tensor, v: Any) -> Any:
    if v is None:
        raise_if(y.requires_grad and y._a.size != 1, "no v for several numbers", about=(y,))
        one = np.empty_like(y._a)
        one.fill(1)
        return new(one)
    raise_if(v.shape != y.shape, "shape of v", i, v.shape, y.shape, about=(y, v))
    return v.to(y.dtype)


class _VariableType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor)


class Variable(metaclass=_VariableType):
    """The older name of tensors with gradients: it returns the tensor itself."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        raise_if(not isinstance(data, Tensor), "variable of no tensor", type(data).__name__)
        if volatile:
            warn("volatile")
        result = alias(data)
        if requires_grad:
            raise_if(result._a.dtype.kind != "f", "integers that require grad")
            result.requires_grad_()
        return result


Variable.__module__ = "torch.autograd"


class set_detect_anomaly(_Lasting):
    """Search for nan in gradients."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=bool(mode), check_nan=bool(check_nan))


class detect_anomaly(_Switch):
    """Search for nan in gradients in a block."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(anomaly=True, check_nan=bool(check_nan))
        warn("anomaly detection")


set_detect_anomaly.__module__ = detect_anomaly.__module__ = "torch.autograd.anomaly_mode"
