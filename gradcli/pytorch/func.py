"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
import re
from collections import ChainMap
from collections.abc import Callable, Iterable
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd_functional import derivatives, pushed
from gradcli.pytorch.backward import dependencies
from gradcli.pytorch.calls import called
from gradcli.pytorch.creation import zeros_like
from gradcli.pytorch.joining import select, stack
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.naming import parameters_of
from gradcli.pytorch.record import Leaf, edge_of
from gradcli.pytorch.tensor import Tensor
from gradcli.pytorch.views import reshape

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


def _chosen(func: Callable[..., Any], args: tuple[Any, ...], argnums: Any) -> tuple[list[Any], Any]:
    """Return a function's arguments with the chosen ones as tensors of their own, and those."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        given[n] = _mapped(_own, given[n])
        if isinstance(given[n], Tensor):
            given[n]._called = names.get(n, "")
    return given, given[argnums] if isinstance(argnums, int) else tuple(given[n] for n in numbers)


def _cut(found: Any, xs: Any) -> Any:
    """Return results without their history, but for those that lead to leaves other than what functions were given."""
    for x in _inner(xs):
        x._is_done = True

    def one(y: Any) -> Any:
        if not isinstance(y, Tensor) or not y.requires_grad:
            return y
        leaves = (e for e in dependencies([edge_of(y)]) if isinstance(e, Leaf))
        return y if any(not e.variable._is_done for e in leaves) else y.detach()

    return _mapped(one, found)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    @functools.wraps(func)
    @enable_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        given, xs = _chosen(func, args, argnums)
        found = func(*given, **kwargs)
        y, aux = found if has_aux else (found, None)
        if not isinstance(y, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}")
        if y.dim():
            raise refusal("not a scalar to differentiate", y.dim())
        own = _mapped(zeros_like, xs)
        if y.requires_grad:
            own = _rebuilt(xs, _grad(y, _inner(xs), create_graph=True, materialize_grads=True))
        own, value, aux = _cut((own, y, aux), xs)
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
    with enable_grad():
        xs = tuple(map(_own, primals))
        found = func(*xs)
    y, aux = found if has_aux else (found, None)

    def pull(*v: Tensor) -> tuple[Tensor, ...]:
        with enable_grad():
            return _cut(_grad(y, xs, v, retain_graph=True, create_graph=True, materialize_grads=True), xs)  # type: ignore[no-any-return]

    return (_cut(y, xs), pull, aux) if has_aux else (_cut(y, xs), pull)


@enable_grad()
def jvp(func: Callable[..., Any], primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Any:
    xs = tuple(map(_own, primals))
    found = func(*xs)
    return _cut((found, _mapped(lambda y: pushed(y, xs, tuple(tangents)), found)), xs)


def _jacobians(derive: Callable[[Tensor, tuple[Tensor, ...]], Iterable[Tensor]]) -> Callable[..., Any]:
    """Return `jacrev` or `jacfwd`, from what gives the Jacobians of one tensor by several."""

    def of(func: Callable[..., Any], argnums: Any = 0, **_: Any) -> Callable[..., Any]:
        @functools.wraps(func)
        @enable_grad()
        def call(*args: Any, **kwargs: Any) -> Any:
            given, xs = _chosen(func, args, argnums)
            found = func(*given, **kwargs)
            return _cut(_mapped(lambda y: _rebuilt(xs, derive(y, tuple(_inner(xs)))), found), xs)

        return call

    return of


def _columns(y: Tensor, xs: tuple[Tensor, ...]) -> Iterable[Tensor]:
    """Return the Jacobians of a tensor by others, a column at a time: zeros have the signs that they have forward."""
    for k, x in enumerate(xs):
        columns = []
        for i in range(x.numel()):
            tangents = [zeros_like(other.detach()) for other in xs]
            tangents[k]._a.reshape(-1)[i] = 1
            columns.append(pushed(y, xs, tuple(tangents)))
        yield reshape(stack(columns, -1), (*y.shape, *x.shape))


jacrev = _jacobians(lambda y, xs: derivatives(y, xs, True))
jacfwd = _jacobians(_columns)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    return jacfwd(jacrev(func, argnums), argnums)  # type: ignore[no-any-return]


def _lane(x: Tensor, dim: int, i: int, call: str) -> Tensor:
    if not -x.dim() <= dim < x.dim():
        raise refusal("no axis to map over", call, dim, x.dim())
    return select(x, dim, i)


def _stacked(lanes: tuple[Tensor, ...], dim: int) -> Tensor:
    """Return what was found for each lane as one tensor, called after the operation that gave it."""
    found = stack(list(lanes), dim)
    step = lanes[0]._fn
    return found if step is None else called(found, re.sub("^(Sum|Mean|Prod)Backward0", r"\1Backward1", step.name()))  # type: ignore[no-any-return]


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        dims = (in_dims,) * len(args) if isinstance(in_dims, int) else tuple(in_dims)
        given = list(zip(args, dims, strict=True))
        what = f"vmap({getattr(func, '__name__', repr(func))}, in_dims={in_dims}, ...)"
        lanes = next(_inner(a)[0].shape[d : d + 1 or None] for a, d in given if d is not None)
        found = []
        for i in range(lanes[0] if lanes else 1):
            own = (a if d is None else _mapped(lambda x, d=d: _lane(x, d, i, what), a) for a, d in given)  # noqa: B023
            found.append(func(*own, **kwargs))
        return _mapped(lambda *own: _stacked(own, out_dims), *found)

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
