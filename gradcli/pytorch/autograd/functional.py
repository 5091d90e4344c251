"""`torch.autograd.functional`: Jacobians, Hessians and products with them, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

from gradcli.pytorch.autograd import grad
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.operations.creation import ones_like, zeros_like
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.operations.views import reshape
from gradcli.pytorch.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def as_tuple(x: Any) -> tuple[Any, ...]:
    """Return one tensor, or several, as a tuple."""
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _shaped(found: tuple[Any, ...], like: Any) -> Any:
    return found[0] if isinstance(like, Tensor) else found


def variable(x: Tensor, name: str = "", outside: bool = True) -> Any:
    """Return a tensor to differentiate by: a view, where what stands outside may differentiate once more, or a leaf."""
    found: Any = x.view_as(x) if outside and x.requires_grad else x.detach().requires_grad_()  # type: ignore[attr-defined]
    found._called = name
    return found


def cut(found: Any, outside: bool) -> Any:
    """Return what a function gave, without its history unless what stands outside has a use for it."""
    if isinstance(found, tuple):
        return tuple(cut(f, outside) for f in found)
    return found if outside or not isinstance(found, Tensor) else found.detach()  # type: ignore[attr-defined]


def _leaves(func: Callable[..., Any], inputs: Any, create: bool) -> tuple[Tensor, ...]:
    """Return a function's inputs as tensors to differentiate by, under the names that it has for them."""
    names = chain(parameters_of(func), repeat(""))
    return tuple(variable(x, name, create) for x, name in zip(as_tuple(inputs), names, strict=False))


def _vectors(v: Any, others: Any, several: bool) -> tuple[Tensor, ...]:
    """Return vectors to multiply by, one for each of other tensors; 1 for a single number.

    Errors: `RuntimeError` for those of other shapes.
    """
    own = as_tuple(others)
    if v is None:
        if len(own) != 1 or own[0].numel() != 1:
            where = "input to the user-provided function is" if several else "user-provided function returns"
            raise RuntimeError(f"The vector v can only be None if the {where} a single Tensor with a single element.")
        return (ones_like(own[0].detach()),)
    found = as_tuple(v)
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


@enable_grad()
def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, *_: Any, **__: Any) -> Any:
    xs = _leaves(func, inputs, create_graph)
    outputs = func(*xs)
    found = tuple(_shaped(derivatives(y, xs, create_graph), inputs) for y in as_tuple(outputs))
    return cut(_shaped(found, outputs), create_graph)


@enable_grad()
def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, **_: Any) -> Any:
    xs = _leaves(func, inputs, create_graph)
    y = func(*xs)
    if y.numel() != 1:
        raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
    first = grad(y, xs, create_graph=True, allow_unused=True)
    own = [zeros_like(x.detach()) if g is None else g for g, x in zip(first, xs, strict=True)]
    return cut(_shaped(tuple(_shaped(derivatives(g, xs, create_graph), inputs) for g in own), inputs), create_graph)


@enable_grad()
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    xs = _leaves(func, inputs, create_graph)
    outputs = func(*xs)
    found = grad(outputs, xs, _vectors(v, outputs, False), create_graph=create_graph, materialize_grads=True)
    return cut(outputs, create_graph), cut(_shaped(found, inputs), create_graph)


@enable_grad()
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    xs = _leaves(func, inputs, create_graph)
    outputs, tangents = func(*xs), _vectors(v, inputs, True)
    found = tuple(pushed(y, xs, tangents) for y in as_tuple(outputs))
    return cut(outputs, create_graph), cut(_shaped(found, outputs), create_graph)


def pushed(y: Tensor, xs: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Tensor:
    """Return J·v of a tensor: the derivative of wᵀJ by w, times v."""
    w = zeros_like(y.detach()).requires_grad_()
    used, v = _used(y, xs, tangents, w) if y.requires_grad else ((), ())
    found = grad(used, w, v, create_graph=True, allow_unused=True)[0] if used else None
    return zeros_like(y) if found is None else found


def _used(y: Tensor, xs: tuple[Tensor, ...], tangents: tuple[Tensor, ...], w: Tensor | None = None) -> tuple[Any, Any]:
    """Return the gradients of a tensor that have gradients themselves, and the tangents of their inputs."""
    first = grad(y, xs, w, create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, t in zip(first, tangents, strict=True) if g is not None and g.requires_grad]
    return tuple(g for g, _ in pairs), tuple(t for _, t in pairs)


@enable_grad()
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return what a function gives, and vᵀH, which is H·v, as H is symmetric."""
    xs = _leaves(func, inputs, create_graph)
    y = func(*xs)
    used, tangents = _used(y, xs, _vectors(v, inputs, True))
    found = grad(used, xs, tangents, create_graph=create_graph, materialize_grads=True)
    return cut(y, create_graph), cut(_shaped(found, inputs), create_graph)


hvp = vhp


def parameters_of(function: Any) -> list[str]:
    """Return what a function calls the arguments that are given by their places.

    >>> parameters_of(lambda a, b: a * b)
    ['a', 'b']
    """
    code = getattr(function, "__code__", None)
    return [] if code is None else list(code.co_varnames[: code.co_argcount])
