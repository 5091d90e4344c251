"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.einsum import einsum as einsum_node
from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.operations.views import t
from gradcli.pytorch.record import apply
from gradcli.pytorch.registry import both, function
from gradcli.pytorch.tensor import Tensor


def _multiplied(a: Tensor, b: Tensor, name: str) -> Tensor:
    if a._a.dtype == bool == b._a.dtype:
        kernel = {"DotBackward0": "dot", "BmmBackward0": "baddbmm_kernel"}.get(name, "addmm_impl_cpu_")
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    if a._a.dtype != b._a.dtype:
        first, second = (x.dtype.word for x in (a, b))
        if name == "DotBackward0":
            raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {first} and {second}")
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {first.lower()} != {second.lower()}")
    return apply("matmul", construct.matmul, (a, b), (), name)


@both("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    for name, x in (("self", input), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix")
    _check_matrices(input, mat2)
    return _multiplied(input, mat2, "MmBackward0")


def _check_matrices(a: Tensor, b: Tensor) -> None:
    if a.shape[1] != b.shape[0]:
        raise refusal("shapes of a product", *a.shape, *b.shape)


@both("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.dim()}, {vec.dim()}")
    if input.shape[1] != vec.shape[0]:
        rows, columns = input.shape
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({vec.shape[0]})")
    return _multiplied(input, vec, "MvBackward0")


@both("dot")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    if input.dim() != 1 or tensor.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.dim()}D and {tensor.dim()}D tensors")
    if input.shape != tensor.shape:
        m, n = input.numel(), tensor.numel()
        raise refusal("sizes of a dot", m, n)
    return _multiplied(input, tensor, "DotBackward0")


@both("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    for i, x in enumerate((input, mat2), 1):
        if x.dim() != 3:
            raise RuntimeError(f"batch{i} must be a 3D tensor")
    if input.shape[-1] != mat2.shape[-2]:
        raise refusal("sizes of batches", input.shape[0], input.shape[2], *mat2.shape[:2])
    return _multiplied(input, mat2, "BmmBackward0")


@both("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    ranks = (input.dim(), other.dim())
    if own := {(1, 1): dot, (2, 1): mv, (2, 2): mm}.get(ranks):
        return own(input, other)
    if 0 in ranks:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {ranks[0]}D and {ranks[1]}D")
    if ranks == (1, 2) and input.shape != other.shape[:1]:
        return mv(t(other), input)  # which raises
    inner = other.shape[-2] if ranks[1] > 1 else other.shape[0]
    if input.shape[-1] != inner:
        rows = int(np.prod(input.shape[:-1]))
        raise refusal("shapes of a product", rows, input.shape[-1], inner, other.shape[-1])
    return _multiplied(input, other, "SqueezeBackward4" if ranks == (1, 2) else "UnsafeViewBackward0")


Tensor.__matmul__ = lambda self, other: matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@both("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {x.dim()}-D tensor")
    if (beta, alpha) != (1, 1):
        return called(beta * input + alpha * mm(mat1, mat2), "AddmmBackward0")  # type: ignore[operator,no-any-return]
    _check_matrices(mat1, mat2)
    if mat1._a.dtype != mat2._a.dtype:
        first, second = (x.dtype.word for x in (mat1, mat2))
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {first} and {second}")
    return apply("addmm", lambda b, x, w: construct.call("add", construct.matmul(x, w), b), (input, mat1, mat2))


both("vdot")(lambda input, other: called(dot(input, other), "VdotBackward0"))


@both("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    for name, x in (("self", input), ("vec2", vec2)):
        if x.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.dim()}-D")
    return input.reshape(-1, 1) * vec2  # type: ignore[attr-defined,no-any-return]


@function("einsum")
def einsum(equation: str, *operands: Any) -> Tensor:
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    left, _, right = equation.replace(" ", "").partition("->")
    name = "ViewBackward0"
    if len(parts) == 1:
        name = "PermuteBackward0" if len(right) == len(set(left)) else "SumBackward1"
    elif right and set(left) - {","} == set(right) and len(left) == len(right) + 1:
        name = "MulBackward0"
    return apply("einsum", lambda *n: einsum_node(equation, *n), tuple(parts), equation, name)
