"""Products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from gradcli.graph import construct
from gradcli.graph.einsum import einsum as einsum_node
from gradcli.graph.einsum import without_dots
from gradcli.graph.node import Node
from gradcli.pytorch.calls import check_numbers, set_grad_fn_name
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.names import function
from gradcli.pytorch.operations.indexing import check_repeated
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor

_RANKS = {"mm": (2, 2), "addmm": (2, 2), "mv": (2, 1), "dot": (1, 1), "bmm": (3, 3)}
_FACTORS = {"mm": ("self", "mat2"), "addmm": ("mat1", "mat2"), "bmm": ("batch1", "batch2")}  # as errors call them


def _check(name: str, a: Tensor, b: Tensor) -> None:
    """Check the ranks of two factors, and that their inner sizes agree."""
    ranks = a._a.ndim - 1, b._a.ndim - 1
    if ranks != _RANKS[name]:
        wrong = int(ranks[0] == _RANKS[name][0])
        raise torch_error(f"axes of {name}", *((_FACTORS[name][wrong], ranks[wrong]) if name in _FACTORS else ranks))
    if a._a.shape[-2] != b._a.shape[-min(3, b._a.ndim)] or (name == "bmm" and len(a) != len(b)):
        raise torch_error(f"sizes of {'mm' if name == 'addmm' else name}", *a.shape, *b.shape)


def _multiply(a: Tensor, b: Tensor, name: str) -> Tensor:
    if a._a.dtype != b._a.dtype:
        raise _of_different_dtypes(a, b, _product_kind(a, b, name))
    if not a.is_floating_point():
        check_numbers(_product_kind(a, b, name), a.dtype)
    return apply("matmul", _matmul, (a, b), (), name)


def _matmul(a: Node, b: Node) -> Node:
    common_shape((a.shape[:-2], b.shape[:-2]))  # of stacks alone it tells which axis does not fit
    return construct.matmul(a, b)


def _product_kind(a: Tensor, b: Tensor, name: str) -> str:
    """Return PyTorch's function by which it computes a product whose step has a name."""
    if a.dim() == b.dim() > 2:
        return "bmm"
    return {"DotBackward0": "dot", "MvBackward0": "mv"}.get(name, "mm")


def _of_different_dtypes(a: Tensor, b: Tensor, kind: str) -> Exception:
    words = [a.dtype.word, b.dtype.word]
    for x in (a, b) if kind == "bmm" else ():
        check_numbers("bmm", x.dtype)
    return torch_error(f"dtypes of {kind}", *([a.dtype.in_c, b.dtype.in_c] if kind == "mm" else words))


def _product(name: str, a: Tensor, b: Tensor) -> Tensor:
    _check(name, a, b)
    return _multiply(a, b, f"{name.capitalize()}Backward0")


mm: Callable[..., Tensor] = function("mm")(lambda input, mat2: _product("mm", input, mat2))
function("spmm")(mm)
mv: Callable[..., Tensor] = function("mv")(lambda input, vec: _product("mv", input, vec))
dot: Callable[..., Tensor] = function("dot")(lambda input, tensor: _product("dot", input, tensor))
function("bmm")(lambda input, mat2: _product("bmm", input, mat2))
function("vdot")(lambda input, other: set_grad_fn_name(dot(input, other), "VdotBackward0"))


def _shape_mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> Exception:
    """Return the error for factors whose inner sizes differ: that of the product by which PyTorch computes theirs."""
    if len(b) > 2:
        count = math.prod(common_shape((a[:-2], b[:-2])))
        return torch_error("sizes of bmm", count, 1, a[-1], count, *b[-2:])
    return torch_error("sizes of mv" if len(b) == 1 else "sizes of mm", math.prod(a[:-1]), a[-1], *b)


function("solve")(lambda **_: raise_if(True, "old solve"))  # whose arguments were in the opposite order


@function("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    ranks = (input.dim(), other.dim())
    if product := {(1, 1): dot, (2, 1): mv, (2, 2): mm}.get(ranks):
        return product(input, other)
    raise_if(0 in ranks, "product with a number", "matmul", *ranks)
    if input.shape[-1] != other.shape[-min(2, ranks[1])]:
        raise _shape_mismatch(input.shape, other.shape)
    return _multiply(input, other, _grad_fns_of(input._a.shape[:-1], other._a.shape[:-1], input.requires_grad))


@lru_cache(maxsize=512)
def _grad_fns_of(a: tuple[int, ...], b: tuple[int, ...], is_active: bool) -> str:
    """Return the `grad_fn`s of a product of these shapes; some depend on whether the first requires a gradient.

    PyTorch 2.13 multiplies a vector, a matrix and a stack by mm, mv and bmm of reshaped factors; a matrix times a stack
    is a transposed product of two matrices.
    """
    if len(b) == 2:
        return "SqueezeBackward4(Mm(Unsqueeze(0),1))" if len(a) == 1 else "UnsafeView(Mm(View(0),1))"
    if len(b) == 1:
        return "UnsafeView(Mv(View(0),1))"
    matrix = "View(Transpose(1))" if b[-1] == 1 else "UnsafeView(Clone(Transpose(1)))"
    if is_active and _folded(a, b)[0] and len(a) > 1:
        product = f"Transpose(UnsafeView(Mm({matrix},T(0))))"
        return product if 1 in (a[-2], b[-1]) else f"Clone({product})"
    if len(a) == 1 and is_active:
        return f"UnsafeView(Mv({matrix},0))"
    return f"UnsafeView(Bmm({_stack(0, a, b)},{_stack(1, b, a)}))"


def _stack(factor: int, shape: tuple[int, ...], other: tuple[int, ...]) -> str:
    """Return how PyTorch makes a stack with one axis of a factor; one that is repeated along some axes is copied."""
    outer, wanted = shape[:-2], other[:-2]
    repeated = len(wanted) > 1 and len(outer) < len(wanted) and any(n > 1 for n in outer)
    return f"UnsafeView(Clone(Expand({factor})))" if repeated else f"View(Expand({factor}))"


Tensor.__matmul__ = lambda self, other: matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def weighted_sum(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Return a sum by factors, which PyTorch truncates for integers."""
    beta, alpha = (k if product.is_floating_point() else int(k) for k in (beta, alpha))
    return beta * input + alpha * product


@function("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    if mat1._a.dtype != mat2._a.dtype:
        raise torch_error("dtypes of addmm", mat1.dtype.word, mat2.dtype.word)
    _check("addmm", mat1, mat2)
    check_numbers("addmm", mat1.dtype)
    if (beta, alpha) != (1, 1):
        check_repeated(input, input.shape, (len(mat1), mat2.shape[1]))
        return set_grad_fn_name(weighted_sum(input, mm(mat1, mat2), beta, alpha), "AddmmBackward0")

    def build(b: Node, x: Node, w: Node) -> Node:
        check_repeated(input, b.shape, (x.shape[0], w.shape[1]))
        if not x.shape[1]:  # a sum of nothing, of which only the shape is left
            b = construct.broadcast(b, (x.shape[0], w.shape[1]))
        return construct.call("add", construct.matmul(x, w), b)

    return apply("addmm", build, (input, mat1, mat2))


@function("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    for name, x in (("self", input), ("vec2", vec2)):
        raise_if(x.dim() != 1, "axes of outer", name, x.dim())
    return input.reshape(-1, 1) * vec2


def _as_equation(*arguments: Any) -> tuple[str, tuple[Any, ...]]:
    """Return an equation with the operands, for operands that are followed by the numbers of their axes each."""
    rows = arguments if len(arguments) % 2 else (*arguments, None)
    raise_if(any(n is not ... and not 0 <= n < 52 for row in arguments[1::2] for n in row), "number of an axis")
    *terms, last = [
        "".join("..." if n is ... else _LETTERS[n] for n in row) for row in (*arguments[1::2], rows[-1] or ())
    ]
    return ",".join(terms) + ("" if rows[-1] is None else f"->{last}"), arguments[: len(terms) * 2 : 2]


_LETTERS = ascii_uppercase + ascii_lowercase


def _check_einsum(equation: str, operands: Sequence[Any]) -> None:
    """Check that an equation fits its operands."""
    left, _, right = equation.partition("->")
    terms, sizes = left.split(","), dict[str, int]()
    bad = next((i for i, c in enumerate(equation) if not (c.isalpha() or c in ",->")), None)
    raise_if(bad is not None, "letter of einsum", bad)
    raise_if(len(operands) > len(terms), "more operands than terms")
    raise_if(len(operands) < len(terms), "fewer operands than terms")
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        raise_if(len(term) != x.dim(), "subscripts of einsum", len(term), x.dim(), i)
        of_term: dict[str, int] = {}
        for c, n in zip(term, x.shape, strict=True):
            raise_if(of_term.setdefault(c, n) != n, "sizes of a repeated letter", c, i, n, of_term[c])
            known = sizes.get(c, 1)
            raise_if(1 not in (n, known) and n != known, "sizes of a letter", c, n, i, known)
            sizes[c] = n if known == 1 else known
    for c in right:
        raise_if(right.count(c) > 1, "letter twice in a result", c)
        raise_if(c not in sizes, "letter in a result alone", c)


@function("einsum")
def einsum(equation: Any, operands: Any) -> Tensor:
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if isinstance(equation, Tensor):
        equation, parts = _as_equation(equation, *operands)
    equation = equation.replace(" ", "")
    if "..." in equation and equation.partition("->")[0].count(",") + 1 == len(parts):
        equation = without_dots(equation, [x.dim() for x in parts])
    _check_einsum(equation, parts)
    left, _, right = equation.partition("->")
    name = "ViewBackward0"
    if len(parts) == 1:
        name = "PermuteBackward0" if len(right) == len(set(left)) else "SumBackward1"
    elif right and set(left) - {","} == set(right) and len(left) == len(right) + 1:
        name = "MulBackward0"
    return apply("einsum", lambda *n: einsum_node(equation, *n), tuple(parts), equation, name)


def _folded(a: Sequence[int], b: Sequence[int]) -> tuple[bool, bool]:
    """Return which of two factors' shapes is that of one matrix or vector to PyTorch, where the other is a stack."""
    one = [len(s) < 3 or (len(a) == len(b) == 3 and s[0] == 1) for s in (a, b)]
    return (one[0], one[1]) if one[0] != one[1] else (False, False)
