"""`torch.autograd.functional`: Jacobians, Hessians and products with them, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from gradcli.pytorch.autograd import grad
from gradcli.pytorch.backward import Request, requested
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.modes import Mode, _Switch, enable_grad
from gradcli.pytorch.operations.creation import ones_like, zeros_like
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.operations.views import reshape
from gradcli.pytorch.record import dependencies, edge_of
from gradcli.pytorch.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dicts, in order."""
    if isinstance(tree, dict | list | tuple):
        return [x for inner in (tree.values() if isinstance(tree, dict) else tree) for x in leaves(inner)]
    return [tree]


def with_leaves(tree: Any, values: Iterator[Any]) -> Any:
    """Return nested lists, tuples and dicts with other leaves."""
    if isinstance(tree, dict):
        return {key: with_leaves(inner, values) for key, inner in tree.items()}
    if not isinstance(tree, list | tuple):
        return next(values)
    result = [with_leaves(x, values) for x in tree]
    return type(tree)(*result) if hasattr(tree, "_fields") else type(tree)(result)


def variable(x: Tensor, name: str = "", outside: bool = True) -> Any:
    """Return a tensor to differentiate by: a view if `outside` may differentiate once more, else a leaf."""
    result: Any = x.view_as(x) if outside and x.requires_grad else x.detach()
    if not result.requires_grad:
        with _Switch(transforms=0):
            result.requires_grad_()
    result._label = name
    return result


def variables(func: Callable[..., Any], inputs: Any, outside: bool = True) -> tuple[Tensor, ...]:
    """Return a function's inputs as tensors to differentiate by, with the names of its parameters."""
    names = chain(parameters_of(func), repeat(""))
    return tuple(map(variable, leaves(inputs), names, repeat(outside)))


def _variables(func: Callable[..., Any], inputs: Any, create: bool) -> tuple[Tensor, ...]:
    raise_if(Mode.transforms, "requires_grad_ in a transform")
    return variables(func, inputs, create)


def _cut(result: Any, outside: bool) -> Any:
    """Return a function's results, without their history unless `outside` needs it."""
    return with_leaves(result, (x if outside or not isinstance(x, Tensor) else x.detach() for x in leaves(result)))


def _vectors(v: Any, others: Any, function: str) -> list[Tensor]:
    """Return a vector v for each of other tensors; 1 for a single number."""
    outputs, result = leaves(others), leaves(v)
    if v is None:
        raise_if(len(outputs) != 1 or outputs[0].numel() != 1, "no v", function)
        return [ones_like(outputs[0].detach())]
    if len(result) != len(outputs):
        one = isinstance(others, Tensor)
        raise torch_error("several v") if one else torch_error("count of v", len(outputs), len(result))
    for i, (x, y) in enumerate(zip(result, outputs, strict=True)):
        which = "" if isinstance(others, Tensor) else f"Entry {i} in "
        raise_if(x.shape != y.shape, "size of v", which, y.shape, x.shape)
    return result


def unit(x: Tensor, index: int) -> Tensor:
    """Return a one-hot tensor of the shape of another, with the 1 at a flat index."""
    result = zeros_like(x.detach())
    result._a.flat[index] = 1  # also in memory that is not contiguous
    return result


def assemble_jacobian(parts: Sequence[Any], axis: int, y: Tensor, x: Tensor) -> Tensor:
    """Return the rows or columns of the Jacobian of a tensor by another as one tensor, of the shape of both."""
    shape = (*y.shape, *x.shape)
    if len(parts) < 2:  # a stack of one would turn -0 into 0
        return reshape(parts[0], shape) if parts else y.new_zeros(shape)
    return reshape(stack(parts, axis), shape)


def gradients(y: Tensor, xs: Sequence[Tensor], v: Any = None, create: bool = True) -> tuple[Any, ...]:
    """Return the gradients of a tensor by others: zeros where it does not depend on them."""
    if not y.requires_grad:
        return tuple(map(zeros_like, xs))
    return grad(y, xs, v, retain_graph=True, create_graph=create, materialize_grads=True)


def derivatives(
    y: Tensor, xs: tuple[Tensor, ...], create: bool = True, name: str = "jacrev", whole: Request | None = None
) -> tuple[Tensor, ...]:
    """Return the Jacobians of a tensor by each of several, of its shape followed by theirs.

    They are what is asked for under a name, or a part of the `whole`.
    """
    with requested(whole or Request(name)) as request:
        rows = [gradients(y, xs, unit(y, i), create) for i in range(y.numel())]
        result = tuple(assemble_jacobian([row[k] for row in rows], 0, y, x) for k, x in enumerate(xs))
        if request is not whole:
            request.result = result
    return result


def _check_outputs(outputs: Sequence[Tensor], strict: bool) -> None:
    """Check, if a call is strict, that each output requires a gradient."""
    for i, y in enumerate(outputs):
        raise_if(strict and not y.requires_grad, "output without a gradient", i)


def _check_slopes(slopes: Sequence[Any], strict: bool) -> None:
    """Check, if a call is strict, that the gradient by each input depends on the inputs."""
    for i, g in enumerate(slopes):
        raise_if(strict and (g is None or not g.requires_grad), "jacobian without a gradient", i)


def _check_reached(ys: Iterable[Tensor], xs: Sequence[Tensor], what: str) -> None:
    """Check that tensors depend on each of others."""
    reached = dependencies([edge_of(y)[0] for y in ys])
    for k, x in enumerate(xs):
        raise_if(edge_of(x)[0] not in reached, "independent of an input", what, k, "")


def _check_result(outputs: Sequence[Tensor], xs: Sequence[Tensor], strict: bool) -> None:
    """Check, if a call is strict, that outputs require gradients, and depend on each input."""
    _check_outputs(outputs, strict)
    if strict:
        _check_reached(outputs, xs, "The output")


@enable_grad()
def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    raise_if(strict and vectorize, "strict and vectorized")
    xs = _variables(func, inputs, create_graph)
    y = func(*xs)
    _check_outputs(leaves(y), strict)
    blocks = []
    for i, output in enumerate(leaves(y)):
        if strict:
            _check_reached([output], xs, f"Output {i}")
        blocks.append(derivatives(output, xs, create_graph, "jacobian"))
        for k, block in enumerate(blocks[-1]):
            wrong = strict and create_graph and not block.requires_grad
            raise_if(wrong, "independent of an input", "The jacobian", k, " when create_graph=True")
    return _cut(with_leaves(y, (with_leaves(inputs, iter(row)) for row in blocks)), create_graph)


@enable_grad()
def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    raise_if(strict and vectorize, "strict and vectorized")
    xs = _variables(func, inputs, create_graph)
    y = func(*xs)
    _check_outputs(leaves(y), strict)
    raise_if(y.numel() != 1, "result of a hessian")
    with requested(Request("hessian")) as request:
        slopes = gradients(y, xs)
        reached = dependencies([edge_of(y)[0]])
        _check_slopes([g if edge_of(x)[0] in reached else None for g, x in zip(slopes, xs, strict=True)], strict)
        for i, g in enumerate(slopes if strict else ()):
            _check_reached([g], xs, f"Output {i}")
        request.result = [derivatives(g, xs, create_graph) for g in slopes]
    rows = (with_leaves(inputs, iter(blocks)) for blocks in request.result)
    return _cut(with_leaves(inputs, rows), create_graph)


@enable_grad()
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    xs = _variables(func, inputs, create_graph)
    y = func(*xs)
    _check_result(leaves(y), xs, strict)
    pairs = zip(leaves(y), _vectors(v, y, "user-provided function returns"), strict=True)
    flowing = [(output, w) for output, w in pairs if output.requires_grad]
    with requested(Request("vjp")) as request:
        if flowing:
            outputs, vs = zip(*flowing, strict=True)
            request.result = grad(outputs, xs, vs, create_graph=create_graph, materialize_grads=True)
    return _cut((y, with_leaves(inputs, iter(request.result or map(zeros_like, xs)))), create_graph)


@enable_grad()
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    xs = _variables(func, inputs, create_graph)
    y, tangents = func(*xs), _vectors(v, inputs, "input to the user-provided function is")
    _check_result(leaves(y), xs, strict)
    return _cut(
        (y, with_leaves(y, (jacobian_vector_product(output, xs, tangents) for output in leaves(y)))), create_graph
    )


@enable_grad()
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return a function's result, and vᵀH, which is H·v, as H is symmetric."""
    xs = _variables(func, inputs, create_graph)
    y, vs = func(*xs), _vectors(v, inputs, "input to the user-provided function is")
    _check_result(leaves(y), xs, strict)
    with requested(Request("hvp", vs)) as request:
        request.result = _of_gradients(y, xs, vs, xs, None, create_graph, strict)
    return _cut((y, with_leaves(inputs, iter(request.result))), create_graph)


hvp = vhp


def jacobian_vector_product(y: Tensor, xs: Sequence[Tensor], tangents: Sequence[Tensor]) -> Tensor:
    """Return J·v of a tensor: the derivative of wᵀJ by w, times v."""
    w = zeros_like(y.detach(), requires_grad=True)
    with requested(Request("jvp", tangents)) as request:
        request.result = _of_gradients(y, xs, tangents, (w,), w, True)
    return request.result[0]  # type: ignore[no-any-return]


def _of_gradients(
    y: Tensor, xs: Any, vs: Any, by: Sequence[Tensor], w: Tensor | None, create: bool, strict: bool = False
) -> tuple[Any, ...]:
    """Return the gradients, by other tensors, of the gradients of y, which is weighted by w, times vectors."""
    first = grad(y, xs, w, create_graph=True, allow_unused=True) if y.requires_grad else ()
    _check_slopes(first, strict)
    pairs = [(g, v) for g, v in zip(first, vs, strict=False) if g is not None and g.requires_grad]
    if not pairs:
        return tuple(map(zeros_like, by))
    return grad([g for g, _ in pairs], by, [v for _, v in pairs], create_graph=create, materialize_grads=True)


def parameters_of(function: Any) -> list[str]:
    """Return the names of a function's positional parameters.

    >>> parameters_of(lambda a, b: a * b)
    ['a', 'b']
    """
    code, bound = getattr(function, "__code__", None), hasattr(function, "__self__")
    return [] if code is None else list(code.co_varnames[bound : code.co_argcount])
