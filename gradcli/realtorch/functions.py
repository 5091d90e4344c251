"""Functions of PyTorch that its modules call: what they compute, on tensors of the emulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.operations.recurrent import KINDS, recurrent
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.recurrent import gru_step
from gradcli.pytorch.recipes import recipe_for
from gradcli.pytorch.running import noted_results
from gradcli.pytorch.tensor import Tensor


def _layers(
    op: str,
    input: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> Sequence[Tensor]:
    """Return the outputs and the last states of recurrent layers.

    Errors: `LookupError` for packed sequences, and for dropout, whose masks PyTorch does not keep.
    """
    if isinstance(params, bool) or (dropout and train and num_layers > 1):
        raise LookupError(op)
    operands = [input, *(hx if isinstance(hx, list | tuple) else [hx]), *params]
    settings = num_layers, bidirectional, has_biases, batch_first, False
    recipe = recipe_for(op, settings, lambda *nodes: tuple(recurrent(op, settings, *nodes)), [x._a for x in operands])
    return noted_results((), recipe, operands, "")


def _gates(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    return F.linear(x, w_ih, b_ih), F.linear(hx, w_hh, b_hh)


def _rnn_cell(activation: str, x: Any, hx: Any, *weights: Any) -> Any:
    of_x, of_h = _gates(x, hx, *weights)
    return getattr(of_x + of_h, activation)()


def _lstm_cell(x: Any, hx: Any, *weights: Any) -> Any:
    h, c = hx
    of_x, of_h = _gates(x, h, *weights)
    i, f, g, o = (of_x + of_h).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    axes = [a for a in range(v.dim()) if a != dim]
    return v * (g / v.norm(2, axes, keepdim=True))


def _broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in tensors))
    return tuple(x.expand(shape) for x in tensors)


def _looked_up(weight: Any, indices: Any, padding_idx: int = -1, *settings: Any) -> Any:
    return F.embedding(indices, weight, None if padding_idx < 0 else padding_idx, None, 2.0, *settings)


def _pooled(op: str, *settings: Any, return_indices: bool = True, **named: Any) -> Any:
    return getattr(F, op)(*settings[:6], return_indices=True, **named)


# By the last part of PyTorch's path, or the whole of it where another function has that name as well.
OWN: dict[str, Callable[..., Any]] = {
    "torch.embedding": _looked_up,
    **{f"{op}_with_indices": partial(_pooled, op) for op in ("max_pool1d", "max_pool2d", "max_pool3d")},
    **{op: partial(_layers, op) for op in KINDS},
    "rnn_tanh_cell": partial(_rnn_cell, "tanh"),
    "rnn_relu_cell": partial(_rnn_cell, "relu"),
    "lstm_cell": _lstm_cell,
    "gru_cell": lambda x, hx, *weights: gru_step(*_gates(x, hx, *weights), hx),
    "_weight_norm": _weight_norm,
    "broadcast_tensors": _broadcast_tensors,
}
