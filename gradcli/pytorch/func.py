"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd_functional import cut, derivatives, pushed, variable
from gradcli.pytorch.creation import zeros_like
from gradcli.pytorch.joining import stack, unbind
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.naming import parameters_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


def _chosen(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Any
) -> tuple[list[Any], tuple[Tensor, ...], bool]:
    """Return a function's arguments with the chosen ones as tensors of their own, and whether there is an outside."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    outside = any(isinstance(a, Tensor) and a.requires_grad for a in args)
    given = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        given[n] = variable(given[n], names.get(n, ""))
    return given, tuple(given[n] for n in numbers), outside


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    @functools.wraps(func)
    @enable_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        given, xs, outside = _chosen(func, args, argnums)
        found = func(*given, **kwargs)
        y, aux = found if has_aux else (found, None)
        if not isinstance(y, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}")
        if y.dim():
            raise refusal("not a scalar to differentiate", y.dim())
        grads = tuple(map(zeros_like, xs))
        if y.requires_grad:
            grads = _grad(y, xs, create_graph=True, materialize_grads=True)  # type: ignore[assignment]
        passed = cut(grads[0] if isinstance(argnums, int) else grads, outside)
        value, aux = cut(y, outside), cut(aux, outside)
        return (passed, (value, aux)) if has_aux else (passed, value)

    return call


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        passed, value = both(*args, **kwargs)
        return (passed, value[1]) if has_aux else passed

    return call


def vjp(func: Callable[..., Any], *primals: Tensor, has_aux: bool = False) -> Any:
    outside = any(x.requires_grad for x in primals)
    with enable_grad():
        xs = tuple(map(variable, primals))
        found = func(*xs)
    y, aux = found if has_aux else (found, None)

    def pull(*v: Tensor) -> tuple[Tensor, ...]:
        with enable_grad():
            grads = _grad(y, xs, v, retain_graph=True, create_graph=True, materialize_grads=True)
        return tuple(cut(g, outside or any(w.requires_grad for w in v)) for g in grads)

    return (cut(y, outside), pull, aux) if has_aux else (cut(y, outside), pull)


@enable_grad()
def jvp(func: Callable[..., Any], primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Any:
    outside = any(x.requires_grad for x in (*primals, *tangents))
    xs = tuple(map(variable, primals))
    y = func(*xs)
    return cut(y, outside), cut(pushed(y, xs, tuple(tangents)), outside)


def jacrev(func: Callable[..., Any], argnums: Any = 0, **_: Any) -> Callable[..., Any]:
    @functools.wraps(func)
    @enable_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        given, xs, outside = _chosen(func, args, argnums)
        found = derivatives(func(*given, **kwargs), xs, True)
        return cut(found[0] if isinstance(argnums, int) else found, outside)

    return call


jacfwd = jacrev  # the same numbers: J does not depend on the order in which the chain rule is applied


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    return jacrev(jacrev(func, argnums), argnums)


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        dims = (in_dims,) * len(args) if isinstance(in_dims, int) else tuple(in_dims)
        parts = [unbind(a, d) if d is not None else None for a, d in zip(args, dims, strict=True)]
        count = next(len(p) for p in parts if p is not None)
        found = [
            func(*(a if p is None else p[i] for a, p in zip(args, parts, strict=True)), **kwargs) for i in range(count)
        ]
        if isinstance(found[0], tuple):
            return tuple(stack(list(own), out_dims) for own in zip(*found, strict=True))
        return stack(found, out_dims)

    return call
