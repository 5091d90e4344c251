"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd.functional import (
    assembled,
    derivatives,
    filled,
    gradients,
    leaves,
    parameters_of,
    pushed,
    unit,
    variable,
    variables,
)
from gradcli.pytorch.backward import Request, requested
from gradcli.pytorch.calls import called
from gradcli.pytorch.functions import fact
from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.limits import limited
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.modes import Mode, _Switch, enable_grad
from gradcli.pytorch.operations.creation import zeros_like
from gradcli.pytorch.operations.joining import stack, unbind
from gradcli.pytorch.record import Leaf, dependencies, edge_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state"]
__all__ += ["vjp", "vmap"]


def _chosen(func: Callable[..., Any], args: tuple[Any, ...], argnums: Any) -> tuple[list[Any], tuple[Tensor, ...]]:
    """Return a function's arguments, of which the chosen ones are new variables, and these variables."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    arguments = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        name = names.get(n, "") if isinstance(arguments[n], Tensor) else ""
        arguments[n] = filled(arguments[n], (variable(x, name) for x in leaves(arguments[n])))
    return arguments, tuple(leaves([arguments[n] for n in numbers]))


def _arranged(grads: Iterable[Any], arguments: Sequence[Any], argnums: Any) -> Any:
    """Return the gradients in the structure of the chosen arguments."""
    form = arguments[argnums] if isinstance(argnums, int) else tuple(arguments[n] for n in argnums)
    return filled(form, iter(grads))


def _cut(result: Any, xs: Iterable[Tensor]) -> Any:
    """Return results without their history, but for those that depend on leaves other than the functions' inputs."""
    for x in xs:
        x._is_done = True

    def one(y: Any) -> Any:
        if not isinstance(y, Tensor) or not y.requires_grad:
            return y
        leaves = (e for e in dependencies([edge_of(y)]) if isinstance(e, Leaf))
        return y if Mode.grad and any(not e.variable._is_done for e in leaves) else y.detach()

    return filled(result, map(one, leaves(result)))


def _applied(func: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function that is transformed: `backward` is an error in it."""
    with _Switch(transforms=Mode.transforms + 1, grad=True):
        return func(*args, **kwargs)


def _with_aux(result: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """Return the part of a function's result that is differentiated, and the auxiliary part."""
    raise_if(has_aux and not (isinstance(result, tuple) and len(result) == 2), "nothing beside a result", what)
    return result if has_aux else (result, None)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            arguments, xs = _chosen(func, args, argnums)
            y, aux = _with_aux(_applied(func, arguments, kwargs), has_aux, "grad_and_value(f)(*args)")
            raise_if(not isinstance(y, Tensor), "no tensor to differentiate", type(y), type(y).__name__)
            raise_if(y.dim(), "not a scalar to differentiate", y.dim())
            grads = _arranged(gradients(y, xs), arguments, argnums)
        grads, value, aux = _cut((grads, y, aux), xs)
        return (grads, (value, aux)) if has_aux else (grads, value)

    return call


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    xs = variables(func, primals)
    arguments = filled(primals, iter(xs))
    y, aux = _with_aux(_applied(func, arguments, {}), has_aux, "vjp(f, *primals)")

    def pull(v: Any, *_: Any) -> tuple[Any, ...]:
        raise_if(_structure(v) != _structure(y), "structure of v", _structure(v), _structure(y))
        flowing = [(o, w) for o, w in zip(leaves(y), leaves(v), strict=True) if o.requires_grad]
        grads: Sequence[Any] = [*map(zeros_like, xs)]
        with enable_grad(), requested(Request("vjp")) as request:
            if flowing:
                ys, vs = map(list, zip(*flowing, strict=True))
                request.result = grads = _grad(ys, xs, vs, True, True, materialize_grads=True)
        return _cut(filled(arguments, iter(grads)), xs)

    return (_cut(y, xs), pull, _cut(aux, xs)) if has_aux else (_cut(y, xs), pull)


def _structure(tree: Any) -> str:
    """Return the nesting of lists, tuples and dicts as text, with a star for each leaf."""
    return repr(filled(tree, iter(lambda: _STAR, None)))


_STAR = type("Star", (), {"__repr__": lambda self: "*"})()


@limited("func.jvp")
def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    what = "jvp(f, primals, tangents)"
    with enable_grad():
        xs = variables(func, primals)
        for x, v in zip(xs, leaves(tangents), strict=False):
            raise_if(x.shape != v.shape, "size of a tangent", list(x.shape), list(v.shape))
        y, aux = _with_aux(_applied(func, filled(primals, iter(xs)), {}), has_aux, what)
        outputs = leaves(y)
        result = filled(y, (o[...] for o in outputs)), filled(y, (pushed(o, xs, leaves(tangents)) for o in outputs))
    return _cut((*result, aux) if has_aux else result, xs)


def _jacobians(
    derive: Callable[[Tensor, tuple[Tensor, ...]], Iterable[Tensor]], what: str = "vjp(f, *primals)"
) -> Callable[..., Any]:
    """Return `jacrev` or `jacfwd`, given a function that returns the Jacobians of one tensor by several."""

    def of(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **_: Any) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with enable_grad():
                arguments, xs = _chosen(func, args, argnums)
                y, aux = _with_aux(_applied(func, arguments, kwargs), has_aux, what)
                result = filled(y, iter([_arranged(derive(y_leaf, xs), arguments, argnums) for y_leaf in leaves(y)]))
            return _cut((result, aux) if has_aux else result, xs)

        return call

    return of


def _columns(y: Tensor, xs: tuple[Tensor, ...], name: str = "jacfwd") -> Sequence[Tensor]:
    """Return the Jacobians of a tensor by others, a column at a time: zeros have the signs that they have forward."""

    def by(x: Tensor) -> Tensor:
        tangents = ([unit(o, i) if o is x else zeros_like(o.detach()) for o in xs] for i in range(x.numel()))
        result = assembled([pushed(y, xs, t) for t in tangents], -1, y, x)
        return result if x.dim() else called(result, "SqueezeBackward1")

    with requested(Request(name)) as request:
        request.result = [by(x) for x in xs]
    return request.result


jacrev = _jacobians(derivatives)
jacfwd = _jacobians(_columns, "jvp(f, primals, tangents)")


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        request = Request("hessian")
        rows: list[Sequence[Tensor]] = []

        def columns(y: Tensor, xs: tuple[Tensor, ...]) -> Sequence[Tensor]:
            rows.append(_columns(y, xs, ""))
            return rows[-1]

        slopes = _jacobians(functools.partial(derivatives, whole=request))(func, argnums)
        result = _jacobians(columns)(slopes, argnums)(*args, **kwargs)
        with requested(request):
            request.result = rows
        return result

    return call


def _lanes(x: Any, dim: int, call: str) -> tuple[Tensor, ...]:
    raise_if(not isinstance(x, Tensor), "no tensor to map over", call, dim, type(x))
    raise_if(not -x.dim() <= dim < x.dim(), "no axis to map over", call, dim, x.dim())
    lanes = unbind(x, dim)
    for lane in lanes:
        lane._map = min(x._map, Mode.maps + 1)
        if lane._fn is not None:
            lane._fn.is_lane = True
    return lanes


def _spread(dims: Any, tree: Any) -> list[Any]:
    """Return the axis to map over of each tensor in lists, tuples and dicts, from one for all or from such a form."""
    if isinstance(dims, dict | list | tuple):
        if type(dims) is not type(tree) or len(dims) != len(tree):
            raise ValueError("another form")
        inner = [(dims[k], tree[k]) for k in tree] if isinstance(dims, dict) else zip(dims, tree, strict=True)
        return [d for part, x in inner for d in _spread(part, x)]
    return [dims] * len(leaves(tree))


def _form(tree: Any, indent: int = 2) -> str:
    """Return PyTorch's text of the structure of lists, tuples and dicts."""
    if not isinstance(tree, dict | list | tuple):
        return "*"
    keys, values = ([*tree], [*tree.values()]) if isinstance(tree, dict) else (None, tree)
    inner, separator = (_form(x, indent + 2) for x in values), ",\n" + " " * indent
    return f"TreeSpec({type(tree).__name__}, {keys}, [{separator.join(inner)}])"


def _rows(args: tuple[Any, ...], in_dims: Any, call: str) -> list[Any]:
    """Return the arguments for each element along the axes to map over."""
    raise_if(not isinstance(in_dims, int | tuple), "axes to map over", call, type(in_dims))
    try:
        dims = _spread(in_dims, args)
    except (ValueError, KeyError):
        raise torch_error("form of the axes to map over", call, _form(in_dims), _form(args)) from None
    parts = [repeat(x) if d is None else _lanes(x, d, call) for x, d in zip(leaves(args), dims, strict=True)]
    sizes = [len(p) for p in parts if isinstance(p, tuple)]
    raise_if(len({*sizes}) > 1, "sizes to map over", sizes)
    missing_if(not sizes[0], "vmap over an axis of no elements")
    return [filled(args, iter(row)) for row in zip(*parts, strict=False)]


def _stacked(lanes: Sequence[Tensor], dim: int) -> Tensor:
    """Return the results of the lanes stacked, named after the operation that computed them."""
    result, step = stack(lanes, dim), lanes[0]._fn
    if result._map > Mode.maps:
        result._map = math.inf
    if step is None:
        return result
    return called(result, fact("vmap", step.name().removesuffix("Backward0")) or step.name())


@limited("func.vmap")
def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        name = getattr(func, "__name__", repr(func))
        rows = _rows(args, in_dims, f"vmap({name}, in_dims={in_dims}, ...)")
        result: list[Any] = []
        random = DEFAULT.get_state()
        inside: Any = {"maps": Mode.maps + 1, "transforms": Mode.transforms + 1, "randomness": randomness}
        for i, row in enumerate(rows, 1):
            if randomness == "same":
                DEFAULT.set_state(random)
            with _Switch(mapped=Mode.mapped or i < len(rows), **inside):
                result.append(func(*row, **kwargs))
            for y in leaves(result[-1]):
                raise_if(not isinstance(y, Tensor), "no tensor of a map", name, type(y))
        columns = zip(zip(*map(leaves, result), strict=True), _spread(out_dims, result[0]), strict=True)
        return filled(result[0], (_stacked(column, d) for column, d in columns))

    return call


def functional_call(module: Any, parameters: Any, args: Any = (), kwargs: Any = None, **_: Any) -> Any:
    """Call a module with other parameters and buffers, by their names."""
    before = []
    try:
        for state in [parameters] if isinstance(parameters, dict) else parameters:
            for name, value in state.items():
                owner, _, local = name.rpartition(".")
                inner = module.get_submodule(owner)
                tensors = inner._parameters if local in inner._parameters else inner._buffers
                before.append((tensors, local, tensors[local]))
                tensors[local] = value
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for tensors, local, value in reversed(before):
            tensors[local] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of several modules of one form, stacked by their names."""
    named = [[dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]]
    params, buffers = ({k: stack([d[k].detach() for d in states]) for k in states[0]} for states in named)
    return {k: p.requires_grad_() for k, p in params.items()}, buffers
