"""`torch.nn.utils.rnn`: sequences of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.pytorch.messages import refuse_if
from gradcli.pytorch.tensor import Tensor


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    refuse_if(not isinstance(sequences, Iterable), "no sequences to pad", type(sequences))
    own: list[Any] = list(sequences)
    length = max(len(x) for x in own)
    sizes = (len(own), length) if batch_first else (length, len(own))
    found = own[0].new_full((*sizes, *own[0].shape[1:]), padding_value)
    for i, x in enumerate(own):
        start = length - len(x) if padding_side == "left" else 0
        (found[i] if batch_first else found[:, i])[start : start + len(x)] = x
    return found  # type: ignore[no-any-return]
