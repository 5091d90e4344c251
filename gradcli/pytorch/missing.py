"""What PyTorch has and gradcli's does not: it ends the run at once, naming itself, its line and what comes nearest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any


class MissingError(BaseException):
    """Something of PyTorch's that gradcli's `torch` lacks; no `except Exception` of a script's catches it."""

    def __init__(self, name: str, hint: str | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.hint = hint


def missing_if(asked: Any, name: str, hint: str | None = None) -> None:
    """End the run where something that is missing is asked for."""
    if asked:
        raise MissingError(name, hint)


# What comes nearest where names do not tell.
_NEAREST = {
    "compile": "it changes no number: the function runs as it is without it",
    "script": "it changes no number: the function runs as it is without it",
    **dict.fromkeys(("LSTM", "GRU"), "RNN"),
    **dict.fromkeys(("LSTMCell", "GRUCell"), "RNNCell"),
    **dict.fromkeys(("BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d"), "BatchNorm2d"),
    **dict.fromkeys(("GroupNorm", "RMSNorm"), "LayerNorm"),
    "Conv3d": "Conv2d",
    "ConvTranspose3d": "ConvTranspose2d",
    "as_strided": "view",
    **{"mode": "unique", "argwhere": "nonzero", "quantile": "sort", "histc": "bincount", "rot90": "flip"},
    **{"std_mean": "std", "var_mean": "var", "take_along_dim": "gather", "tensor_split": "split", "cov": "var"},
    **dict.fromkeys(("LBFGS", "Adagrad", "Adadelta", "ASGD", "Rprop"), "Adam"),
    **{"Upsample": "functional.interpolate", "SoftMarginLoss": "functional.softplus", "slogdet": "logdet"},
    "scaled_dot_product_attention": "softmax of q @ k.mT / d**0.5 along the last axis, times v, is what it computes",
    "parameters_to_vector": "torch.cat of each parameter's reshape(-1) is what it computes",
}


def missing(name: str, known: Iterable[str] = (), prefix: str = "") -> MissingError:
    """Return the error for a name, with the nearest names that there are."""
    from gradcli.errors import did_you_mean

    near = _NEAREST.get(name, "")
    if " " in near:
        return MissingError(prefix + name, near)
    hint = f"the nearest that there is: `{near}`" if near else did_you_mean(name, dict.fromkeys(known))
    return MissingError(prefix + name, hint and re.sub("`(\\w)", rf"`{prefix}\1", hint))
