"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd_functional import derivatives, pushed
from gradcli.pytorch.creation import zeros_like
from gradcli.pytorch.joining import stack, unbind
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.modes import Mode, _Switch, enable_grad
from gradcli.pytorch.naming import parameters_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state"]
__all__ += ["vjp", "vmap"]


def _leaves(tree: Any) -> list[Any]:
    """Return what stands in lists, tuples and dicts, in order."""
    if isinstance(tree, dict | list | tuple):
        return [x for inner in (tree.values() if isinstance(tree, dict) else tree) for x in _leaves(inner)]
    return [tree]


def _filled(tree: Any, values: Iterator[Any]) -> Any:
    """Return lists, tuples and dicts like others, with other values in them."""
    if isinstance(tree, dict):
        return {key: _filled(inner, values) for key, inner in tree.items()}
    return type(tree)(_filled(x, values) for x in tree) if isinstance(tree, list | tuple) else next(values)


def _own(x: Tensor) -> Tensor:
    """Return a tensor to differentiate by: a view, so that what stands outside may differentiate once more."""
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def _chosen(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Any
) -> tuple[list[Any], tuple[Tensor, ...], bool]:
    """Return a function's arguments with the chosen ones as tensors of their own, and whether there is an outside."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    outside = any(isinstance(a, Tensor) and a.requires_grad for a in _leaves(args))
    given = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        given[n] = _filled(given[n], map(_own, _leaves(given[n])))
        if isinstance(given[n], Tensor):
            given[n]._called = names.get(n, "")
    return given, tuple(_leaves([given[n] for n in numbers])), outside


def _arranged(found: Iterable[Any], given: Sequence[Any], argnums: Any) -> Any:
    """Return what was found for each tensor in the form of the chosen arguments."""
    form = given[argnums] if isinstance(argnums, int) else tuple(given[n] for n in argnums)
    return _filled(form, iter(found))


def _cut(found: Any, outside: bool) -> Any:
    return _filled(found, (x if outside or not isinstance(x, Tensor) else x.detach() for x in _leaves(found)))


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
        own, value, aux = (_cut(found, outside) for found in (_arranged(grads, given, argnums), y, aux))
        return (own, (value, aux)) if has_aux else (own, value)

    return call


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        own, value = both(*args, **kwargs)
        return (own, value[1]) if has_aux else own

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    outside = any(x.requires_grad for x in _leaves(primals))
    own = _filled(primals, map(_own, _leaves(primals)))
    with enable_grad():
        found = func(*own)
    y, aux = found if has_aux else (found, None)

    def pull(*v: Any) -> tuple[Any, ...]:
        flows = _leaves(v)
        with enable_grad():
            grads = _grad(_leaves(y), _leaves(own), flows, True, True, materialize_grads=True)
        return _cut(_filled(own, iter(grads)), outside or any(w.requires_grad for w in flows))  # type: ignore[no-any-return]

    return (_cut(y, outside), pull, aux) if has_aux else (_cut(y, outside), pull)


@enable_grad()
def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    outside = any(x.requires_grad for x in _leaves((primals, tangents)))
    own = _filled(tuple(primals), map(_own, _leaves(primals)))
    y = func(*own)
    return _cut(y, outside), _cut(pushed(y, tuple(_leaves(own)), tuple(_leaves(tangents))), outside)


def jacrev(func: Callable[..., Any], argnums: Any = 0, **_: Any) -> Callable[..., Any]:
    @functools.wraps(func)
    @enable_grad()
    def call(*args: Any, **kwargs: Any) -> Any:
        given, xs, outside = _chosen(func, args, argnums)
        y = func(*given, **kwargs)
        found = [_arranged(derivatives(own, xs, True), given, argnums) for own in _leaves(y)]
        return _cut(_filled(y, iter(found)), outside)

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
        parts = [d if d is None else [unbind(x, d) for x in _leaves(a)] for a, d in zip(args, dims, strict=True)]
        count = len(next(p for p in parts if p is not None)[0])
        found = []
        for i in range(count):
            own = [a if p is None else _filled(a, (x[i] for x in p)) for a, p in zip(args, parts, strict=True)]
            with _Switch(mapped=Mode.mapped or i + 1 < count):
                found.append(func(*own, **kwargs))
        return _filled(found[0], (stack(column, out_dims) for column in zip(*map(_leaves, found), strict=True)))

    return call


def functional_call(module: Any, parameters: Any, args: Any = (), kwargs: Any = None, **_: Any) -> Any:
    """Call a module with other parameters and buffers in the place of its own, by their names."""
    every = [parameters] if isinstance(parameters, dict) else parameters
    places = []
    for name, value in (item for own in every for item in own.items()):
        owner, _, local = name.rpartition(".")
        inner = module.get_submodule(owner)
        places.append((inner._parameters if local in inner._parameters else inner._buffers, local, value))
    before = [own[local] for own, local, _ in places]
    try:
        for own, local, value in places:
            own[local] = value
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for (own, local, _), value in zip(places, before, strict=True):
            own[local] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of several modules of one form, stacked by their names."""
    named = [[dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]]
    params, buffers = ({k: stack([d[k].detach() for d in own]) for k in own[0]} for own in named)
    return {k: p.requires_grad_() for k, p in params.items()}, buffers
