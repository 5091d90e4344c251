"""`torch.nn.utils`: gradients cut to a length or a size."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.names import TORCH
from gradcli.pytorch.tensor import Tensor, of_array


def _with_gradients(parameters: Any) -> list[Any]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in listed if p._grad is not None]


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    chosen, norm_type = _with_gradients(parameters), float(norm_type)
    norms = [np.linalg.norm(p._grad._a.reshape(-1), norm_type) for p in chosen]
    kind = chosen[0]._a.dtype if chosen else np.dtype(np.float32)
    total = np.asarray(np.linalg.norm(np.array(norms, kind), norm_type) if norms else 0.0, kind)
    raise_if(error_if_nonfinite and not np.isfinite(total), "norm that is not finite", norm_type)
    scale = np.minimum(kind.type(max_norm) / (total + kind.type(1e-6)), kind.type(1.0))
    for p in chosen:
        p._grad._memory.keep()
        p._grad._a[...] *= scale
        p._grad._memory.version += 1
    return of_array(total)


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """Warn of the name that it had once."""
    warn("old name of clipping")
    return clip_grad_norm_(*args, **kwargs)


def parameters_to_vector(parameters: Any) -> Any:
    """Return all parameters as one vector."""
    return TORCH["cat"]([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Make parameters views of the parts of a vector, in order."""
    begin = 0
    for p in parameters:
        p.data = vec[begin : begin + p.numel()].view_as(p).data
        begin += p.numel()


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    for p in _with_gradients(parameters):
        p._grad._memory.keep()
        np.clip(p._grad._a, -clip_value, clip_value, out=p._grad._a)
        p._grad._memory.version += 1
