"""`torch.autograd.functional`: Jacobians, Hessians and products with them, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.pytorch.autograd import grad
from gradcli.pytorch.creation import ones_like, zeros_like
from gradcli.pytorch.joining import stack
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.tensor import Tensor
from gradcli.pytorch.views import reshape

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _shaped(found: tuple[Any, ...], like: Any) -> Any:
    return found[0] if isinstance(like, Tensor) else found


def _leaves(inputs: Any, create: bool) -> tuple[Tensor, ...]:
    """Return the inputs as tensors to differentiate by: their own views, or leaves of the same numbers."""
    if create:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in _tuple(inputs))
    return tuple(x.detach().requires_grad_() for x in _tuple(inputs))


def _cut(found: Any, create: bool) -> Any:
    if isinstance(found, tuple):
        return tuple(_cut(f, create) for f in found)
    return found if create else found.detach()


def _vectors(v: Any, others: Any, several: bool) -> tuple[Tensor, ...]:
    """Return vectors to multiply by, one for each of other tensors; 1 for a single number.

    Errors: `RuntimeError` for those of other shapes.
    """
    own = _tuple(others)
    if v is None:
        if len(own) != 1 or own[0].numel() != 1:
            where = "input to the user-provided function is" if several else "user-provided function returns"
            raise RuntimeError(f"The vector v can only be None if the {where} a single Tensor with a single element.")
        return (ones_like(own[0].detach()),)
    found = _tuple(v)
    if len(found) != len(own):
        raise RuntimeError(
            "The given v should contain a single Tensor."
            if isinstance(others, Tensor)
            else f"v is a tuple of invalid length: should be {len(own)} but got {len(found)}."
        )
    for i, (x, y) in enumerate(zip(found, own, strict=True)):
        if x.shape != y.shape:
            entry = "" if isinstance(others, Tensor) else f"Entry {i} in "
            raise RuntimeError(f"{entry}v has invalid size: should be {y.shape} but got {x.shape}.")
    return found


def derivatives(y: Tensor, xs: tuple[Tensor, ...], create: bool) -> tuple[Tensor, ...]:
    """Return the Jacobians of a tensor by each of several, of its shape followed by theirs."""
    rows: list[tuple[Any, ...]] = []
    for i in range(y.numel()):
        v = zeros_like(y.detach())
        v._a.reshape(-1)[i] = 1
        found: tuple[Any, ...] = (None,) * len(xs)
        if y.requires_grad:
            found = grad(y, xs, v, retain_graph=True, create_graph=create, allow_unused=True)
        rows.append(tuple(zeros_like(x.detach()) if g is None else g for g, x in zip(found, xs, strict=True)))
    return tuple(reshape(stack([row[k] for row in rows]), (*y.shape, *x.shape)) for k, x in enumerate(xs))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    **_: Any,
) -> Any:
    """Return the Jacobian of a function, for each output and each input."""
    with enable_grad():
        xs = _leaves(inputs, create_graph)
        outputs = func(*xs)
        found = tuple(_shaped(derivatives(y, xs, create_graph), inputs) for y in _tuple(outputs))
    return _cut(_shaped(found, outputs), create_graph)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, **_: Any) -> Any:
    """Return the Hessian of a function with a single number as its result, for each pair of inputs."""
    with enable_grad():
        xs = _leaves(inputs, create_graph)
        y = func(*xs)
        if y.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        first = grad(y, xs, create_graph=True, allow_unused=True)
        rows = []
        for g, x in zip(first, xs, strict=True):
            own = zeros_like(x.detach()) if g is None else g
            rows.append(_shaped(derivatives(own, xs, create_graph), inputs))
    return _cut(_shaped(tuple(rows), inputs), create_graph)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return what a function gives, and vᵀJ."""
    with enable_grad():
        xs = _leaves(inputs, create_graph)
        outputs = func(*xs)
        found = grad(outputs, xs, _vectors(v, outputs, False), create_graph=create_graph, materialize_grads=True)
    return _cut(outputs, create_graph), _cut(_shaped(found, inputs), create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return what a function gives, and J·v: the derivative of vᵀJ by v."""
    with enable_grad():
        xs = _leaves(inputs, create_graph)
        tangents = _vectors(v, inputs, True)
        outputs = func(*xs)
        found = tuple(pushed(y, xs, tangents) for y in _tuple(outputs))
    return _cut(outputs, create_graph), _cut(_shaped(found, outputs), create_graph)


def pushed(y: Tensor, xs: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Tensor:
    """Return J·v of a tensor."""
    w = zeros_like(y.detach()).requires_grad_()
    if not y.requires_grad:
        return zeros_like(y)
    first = grad(y, xs, w, create_graph=True, allow_unused=True)
    used = [(g, t) for g, t in zip(first, tangents, strict=True) if g is not None and g.requires_grad]
    if not used:
        return zeros_like(y)
    (found,) = grad([g for g, _ in used], w, [t for _, t in used], create_graph=True, allow_unused=True)
    return zeros_like(y) if found is None else found


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return what a function gives, and vᵀH."""
    with enable_grad():
        xs = _leaves(inputs, create_graph)
        y = func(*xs)
        first = grad(y, xs, create_graph=True, materialize_grads=True)
        tangents = _vectors(v, inputs, True)
        used = [(g, t) for g, t in zip(first, tangents, strict=True) if g is not None and g.requires_grad]
        found = grad([g for g, _ in used], xs, [t for _, t in used], create_graph=create_graph, materialize_grads=True)
    return _cut(y, create_graph), _cut(_shaped(found, inputs), create_graph)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return what a function gives, and H·v, which is vᵀH, as H is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)
