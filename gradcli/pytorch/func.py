"""`torch.func`: functions of functions, which differentiate them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from gradcli.pytorch.autograd import grad as _grad
from gradcli.pytorch.autograd.functional import (
    assemble_jacobian,
    derivatives,
    gradients,
    jacobian_vector_product,
    leaves,
    parameters_of,
    unit,
    variable,
    with_leaves,
)
from gradcli.pytorch.backward import Request, requested
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.functions import fact
from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.modes import Mode, _Switch, enable_grad
from gradcli.pytorch.operations.creation import zeros_like
from gradcli.pytorch.operations.joining import lanes_of, stack
from gradcli.pytorch.record import Leaf, dependencies, edge_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize"]
__all__ += ["stack_module_state", "vjp", "vmap"]


def _chosen(func: Callable[..., Any], args: tuple[Any, ...], argnums: Any) -> tuple[list[Any], tuple[Tensor, ...]]:
    """Return a function's arguments, of which the chosen ones are new variables, and these variables."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    arguments = list(args)
    names = dict(enumerate(parameters_of(func)))
    for n in numbers:
        name = names.get(n, "") if isinstance(arguments[n], Tensor) else ""
        arguments[n] = with_leaves(arguments[n], (variable(x, name) for x in leaves(arguments[n])))
    return arguments, tuple(leaves([arguments[n] for n in numbers]))


def _like_arguments(grads: Iterable[Any], arguments: Sequence[Any], argnums: Any) -> Any:
    """Return the gradients in the structure of the chosen arguments."""
    form = arguments[argnums] if isinstance(argnums, int) else tuple(arguments[n] for n in argnums)
    return with_leaves(form, iter(grads))


def _cut(result: Any, xs: Iterable[Tensor]) -> Any:
    """Return results without their history, but for those that depend on leaves other than the functions' inputs."""
    for x in xs:
        x._is_done = True

    def one(y: Any) -> Any:
        if not isinstance(y, Tensor) or not y.requires_grad:
            return y
        leaves = (fn for fn in dependencies([edge_of(y)[0]]) if isinstance(fn, Leaf))
        return y if Mode.grad and any(not leaf.variable._is_done for leaf in leaves) else y.detach()

    return with_leaves(result, map(one, leaves(result)))


def _apply_transformed(func: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
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
            y, aux = _with_aux(_apply_transformed(func, arguments, kwargs), has_aux, "grad_and_value(f)(*args)")
            raise_if(not isinstance(y, Tensor), "no tensor to differentiate", type(y), type(y).__name__)
            raise_if(y.dim(), "not a scalar to differentiate", y.dim())
            grads = _like_arguments(gradients(y, xs), arguments, argnums)
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
    arguments, xs = _chosen(func, primals, range(len(primals)))
    y, aux = _with_aux(_apply_transformed(func, arguments, {}), has_aux, "vjp(f, *primals)")

    def pull(v: Any, *_: Any) -> tuple[Any, ...]:
        raise_if(_structure(v) != _structure(y), "structure of v", _structure(v), _structure(y))
        flowing = [(o, w) for o, w in zip(leaves(y), leaves(v), strict=True) if o.requires_grad]
        grads: Sequence[Any] = [*map(zeros_like, xs)]
        with enable_grad(), requested(Request("vjp")) as request:
            if flowing:
                ys, vs = map(list, zip(*flowing, strict=True))
                request.result = grads = _grad(ys, xs, vs, True, True, materialize_grads=True)
        return _cut(with_leaves(primals, iter(grads)), xs)

    return (_cut(y, xs), pull, _cut(aux, xs)) if has_aux else (_cut(y, xs), pull)


def _structure(tree: Any) -> str:
    """Return the nesting of lists, tuples and dicts as text, with a star for each leaf."""
    return repr(with_leaves(tree, iter(lambda: _STAR, None)))


_STAR = type("Star", (), {"__repr__": lambda self: "*"})()


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    what = "jvp(f, primals, tangents)"
    raise_if(not isinstance(primals, tuple), "primals that are no tuple", what)
    with enable_grad():
        arguments, xs = _chosen(func, primals, range(len(primals)))
        for x, v in zip(xs, leaves(tangents), strict=False):
            raise_if(x.shape != v.shape, "size of a tangent", list(x.shape), list(v.shape))
        y, aux = _with_aux(_apply_transformed(func, arguments, {}), has_aux, what)
        outputs = leaves(y)
        result = (
            with_leaves(y, (o[...] for o in outputs)),
            with_leaves(y, (jacobian_vector_product(o, xs, leaves(tangents)) for o in outputs)),
        )
    return _cut((*result, aux) if has_aux else result, xs)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return a function's result, and the function of tangents that returns J·v there."""
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


def _jacobians(
    derive: Callable[[Tensor, tuple[Tensor, ...]], Iterable[Tensor]], what: str = "vjp(f, *primals)"
) -> Callable[..., Any]:
    """Return `jacrev` or `jacfwd`, given a function that returns the Jacobians of one tensor by several."""

    def of(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **_: Any) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with enable_grad():
                arguments, xs = _chosen(func, args, argnums)
                y, aux = _with_aux(_apply_transformed(func, arguments, kwargs), has_aux, what)
                result = with_leaves(
                    y, iter([_like_arguments(derive(y_leaf, xs), arguments, argnums) for y_leaf in leaves(y)])
                )
            return _cut((result, aux) if has_aux else result, xs)

        return call

    return of


def _columns(y: Tensor, xs: tuple[Tensor, ...], name: str = "jacfwd") -> Sequence[Tensor]:
    """Return the Jacobians of a tensor by others, a column at a time: zeros have the signs that they have forward."""

    def by(x: Tensor) -> Tensor:
        tangents = ([unit(o, i) if o is x else zeros_like(o.detach()) for o in xs] for i in range(x.numel()))
        result = assemble_jacobian([jacobian_vector_product(y, xs, t) for t in tangents], -1, y, x)
        return result if x.dim() else set_grad_fn_name(result, "SqueezeBackward1")

    with requested(Request(name)) as request:
        request.result = [by(x) for x in xs]
    return request.result


jacrev = _jacobians(derivatives)
jacfwd = _jacobians(_columns, "jvp(f, primals, tangents)")


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        # All derivatives below are parts of this one request: a page explains one Hessian.
        request = Request("hessian")
        blocks: list[Sequence[Tensor]] = []

        def hessian_blocks(y: Tensor, xs: tuple[Tensor, ...]) -> Sequence[Tensor]:
            blocks.append(_columns(y, xs, ""))
            return blocks[-1]

        gradient = _jacobians(functools.partial(derivatives, whole=request))(func, argnums)
        value = _jacobians(hessian_blocks)(gradient, argnums)(*args, **kwargs)
        with requested(request):
            request.result = blocks
        return value

    return call


def _lanes(x: Any, dim: int, call: str) -> tuple[Tensor, ...]:
    raise_if(not isinstance(x, Tensor), "no tensor to map over", call, dim, type(x))
    raise_if(not -x.dim() <= dim < x.dim(), "no axis to map over", call, dim, x.dim())
    lanes = lanes_of(x, dim % x.dim())
    for lane in lanes:
        lane._map = min(x._map, Mode.maps + 1)
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
    return [with_leaves(args, iter(row)) for row in zip(*parts, strict=False)]


def _stack_lanes(lanes: Sequence[Tensor], dim: int) -> Tensor:
    """Return the results of the lanes stacked, named after the operation that computed them."""
    result, step = stack(lanes, dim), lanes[0]._fn
    if result._map > Mode.maps:
        result._map = math.inf
    if step is None:
        return result
    return set_grad_fn_name(result, fact("vmap", step.name().removesuffix("Backward0")) or step.name())


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    raise_if(randomness not in ("error", "different", "same"), "randomness of a map", randomness)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        name = getattr(func, "__name__", repr(func))
        rows = _rows(args, in_dims, f"vmap({name}, in_dims={in_dims}, ...)")
        result: list[Any] = []
        random = DEFAULT.get_state()
        inside: Any = {"maps": Mode.maps + 1, "transforms": Mode.transforms + 1, "randomness": randomness}
        inside["width"] = len(rows)
        for i, row in enumerate(rows, 1):
            if randomness == "same":
                DEFAULT.set_state(random)
            with _Switch(mapped=Mode.mapped or i < len(rows), **inside):
                result.append(func(*row, **kwargs))
            for y in leaves(result[-1]):
                raise_if(not isinstance(y, Tensor), "no tensor of a map", name, type(y))
        columns = zip(zip(*map(leaves, result), strict=True), _spread(out_dims, result[0]), strict=True)
        return with_leaves(result[0], (_stack_lanes(column, d) for column, d in columns))

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
