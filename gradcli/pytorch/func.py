"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Callable, Iterable
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd_functional import derivatives, pushed
from gradcli.pytorch.creation import zeros_like
from gradcli.pytorch.joining import select, stack
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.naming import parameters_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


def _mapped(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return tuples, lists and dicts as they are nested, with what a function gives for what is in them."""
    if isinstance(tree, dict):
        return type(tree)((k, _mapped(f, v, *(o[k] for o in others))) for k, v in tree.items())
    if isinstance(tree, tuple | list):
        return type(tree)(_mapped(f, *own) for own in zip(tree, *others, strict=True))
    return f(tree, *others)


def _inner(tree: Any) -> list[Any]:
    found: list[Any] = []
    _mapped(found.append, tree)
    return found


def _rebuilt(tree: Any, values: Iterable[Any]) -> Any:
    """Return other values, nested as a tree is."""
    own = iter(values)
    return _mapped(lambda _: next(own), tree)


def _own(x: Tensor) -> Tensor:
    """Return a tensor to differentiate by: a view, so that what stands outside may differentiate once more."""
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def _chosen(func: Callable[..., Any], args: tuple[Any, ...], argnums: Any) -> tuple[list[Any], Any, bool]:
    """Return a function's arguments with the chosen ones as tensors of their own, and whether there is an outside."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    outside = any(isinstance(a, Tensor) and a.requires_grad for a in _inner(args))
    given = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        given[n] = _mapped(_own, given[n])
        if isinstance(given[n], Tensor):
            given[n]._called = names.get(n, "")
    return given, given[argnums] if isinstance(argnums, int) else tuple(given[n] for n in numbers), outside


def _cut(found: Any, outside: bool) -> Any:
    return found if outside else _mapped(lambda y: y.detach() if isinstance(y, Tensor) else y, found)


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
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{y.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        own = _mapped(zeros_like, xs)
        if y.requires_grad:
            own = _rebuilt(xs, _grad(y, _inner(xs), create_graph=True, materialize_grads=True))
        own, value, aux = (_cut(t, outside) for t in (own, y, aux))
        return (own, (value, aux)) if has_aux else (own, value)

    return call


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        own, value = both(*args, **kwargs)
        return (own, value[1]) if has_aux else own

    return call


def vjp(func: Callable[..., Any], *primals: Tensor, has_aux: bool = False) -> Any:
    outside = any(x.requires_grad for x in primals)
    with enable_grad():
        xs = tuple(map(_own, primals))
        found = func(*xs)
    y, aux = found if has_aux else (found, None)

    def pull(*v: Tensor) -> tuple[Tensor, ...]:
        with enable_grad():
            grads = _grad(y, xs, v, retain_graph=True, create_graph=True, materialize_grads=True)
        return tuple(_cut(g, outside or any(w.requires_grad for w in v)) for g in grads)

    return (_cut(y, outside), pull, aux) if has_aux else (_cut(y, outside), pull)


@enable_grad()
def jvp(func: Callable[..., Any], primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Any:
    outside = any(x.requires_grad for x in (*primals, *tangents))
    xs = tuple(map(_own, primals))
    y = func(*xs)
    return _cut(y, outside), _cut(pushed(y, xs, tuple(tangents)), outside)


def jacrev(func: Callable[..., Any], argnums: Any = 0, **_: Any) -> Callable[..., Any]:
    @functools.wraps(func)
    @enable_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        given, xs, outside = _chosen(func, args, argnums)
        found = func(*given, **kwargs)
        return _cut(_mapped(lambda y: _rebuilt(xs, derivatives(y, tuple(_inner(xs)), True)), found), outside)

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
        given = list(zip(args, dims, strict=True))
        count = next(_inner(a)[0].shape[d] for a, d in given if d is not None)
        found = []
        for i in range(count):
            own = (a if d is None else _mapped(lambda x, d=d: select(x, d, i), a) for a, d in given)  # noqa: B023
            found.append(func(*own, **kwargs))
        return _mapped(lambda *own: stack(list(own), out_dims), *found)

    return call


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, **_: Any
) -> Any:
    """Return what a module gives with other parameters and buffers, which are its own for this call only."""
    given = parameter_and_buffer_dicts
    modules, before = dict(module.named_modules()), []
    try:
        for name, value in dict(ChainMap(*((given,) if isinstance(given, dict) else given))).items():
            path, _dot, own = name.rpartition(".")
            held = next(h for h in (modules[path]._parameters, modules[path]._buffers) if own in h)
            before.append((held, own, held[own]))
            held[own] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for held, own, value in before:
            held[own] = value
