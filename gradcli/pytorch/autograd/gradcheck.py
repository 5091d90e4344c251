"""`torch.autograd.gradcheck`: comparison of a backward with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.pytorch.autograd import grad
from gradcli.pytorch.autograd.functional import derivatives, leaves
from gradcli.pytorch.backward import Request, requested
from gradcli.pytorch.messages import raise_if, torch_error, warn
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.operations.creation import zeros_like
from gradcli.pytorch.tensor import Tensor, of_array

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient that differs from finite differences."""


GradcheckError.__module__ = "torch.autograd.gradcheck"


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, **_: Any,
) -> bool:  # fmt: skip
    """Return whether a function's backward agrees with finite differences.

    Errors: `GradcheckError` with both Jacobians where it does not, unless that is not wanted.
    """
    arguments = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    active = [i for i, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad]
    raise_if(not active, "gradcheck of no input")
    for i in active:
        if arguments[i]._a.dtype != np.float64:
            warn("gradcheck of another dtype", i)
    try:
        _compare(func, arguments, active, eps, {"atol": atol, "rtol": rtol})
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(
    func: Callable[..., Any], arguments: list[Any], active: list[int], eps: float, near: dict[str, float]
) -> None:
    """Compare a function's Jacobians by the chosen inputs with finite differences.

    Errors: `GradcheckError` for the first that is another one.
    """
    with enable_grad():
        results = leaves(func(*arguments))
        outputs = [y for y in results if y._a.dtype.kind == "f" and y.requires_grad]
    if not outputs:
        real = [k for k, y in enumerate(results) if y._a.dtype.kind == "f"]
        numerics = [_numeric(func, arguments, i, k, eps) for i in active for k in real]
        if not all(np.allclose(numeric, 0, atol=near["atol"]) for numeric in numerics):
            raise torch_error("numerical gradient that is not 0", kind=GradcheckError)
    xs, request = tuple(arguments[i] for i in active), Request("gradcheck")
    for k, y in enumerate(outputs):
        numerics = [_numeric(func, arguments, i, k, eps) for i in active]
        for _again in range(2):  # as PyTorch does, which a backward that prints shows
            with requested(request):
                request.result = result = derivatives(y, xs, False)
        for j, (numeric, jacobian) in enumerate(zip(numerics, result, strict=True)):
            analytic = jacobian._a.reshape(y.numel(), -1).T
            if not np.allclose(numeric, analytic, **near, equal_nan=True):
                where, both = f"output {k} with respect to input {j}", (of_array(numeric), of_array(analytic))
                raise torch_error("Jacobian that differs", where, *both, kind=GradcheckError)
    for _again in range(2 if len(outputs) == 1 else 2 + len(outputs)):
        with requested(request):
            grad(outputs, xs, list(map(zeros_like, outputs)), retain_graph=True, allow_unused=True)


def _numeric(func: Callable[..., Any], arguments: list[Any], i: int, k: int, eps: float) -> Any:
    """Return the finite differences of an output by an input: a row for each element of the input."""
    x = arguments[i]
    flat = x._a.reshape(-1)
    rows = []
    with enable_grad():  # as what is checked may ask for gradients itself
        for n in range(flat.size):
            before, ends = flat[n].copy(), []
            for sign in (1, -1):
                flat[n] = before + sign * eps
                ends.append(np.array(leaves(func(*arguments))[k]._a.reshape(-1)))
            flat[n] = before
            rows.append((ends[0] - ends[1]) / (2 * eps))
    return np.array(rows)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **settings: Any) -> bool:
    """Return whether the backward of a function's backward agrees with finite differences."""
    arguments = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    with enable_grad():
        outputs = leaves(func(*arguments))
    weights = leaves(grad_outputs)
    if grad_outputs is None:
        weights = [zeros_like(y.detach()).uniform_(-1, 1).requires_grad_() for y in outputs]

    def gradients(*args: Any) -> Any:
        xs, vs = args[: len(arguments)], args[len(arguments) :]
        active = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        with enable_grad(), requested(Request("")):
            result = grad(func(*xs), active, list(vs), create_graph=True, allow_unused=True)
        return tuple(g for g in result if g is not None)

    settings.pop("gen_non_contig_grad_outputs", None)
    return gradcheck(gradients, (*arguments, *weights), **settings)
