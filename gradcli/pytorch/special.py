"""`torch.special`: functions of `torch` under names of SciPy's."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.lookup import function_named
from gradcli.pytorch.registry import TORCH

_OTHER = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}
_SAME = (
    *("digamma", "erf", "erfc", "exp2", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "polygamma", "round"),
    *("sinc", "softmax", "xlogy"),
)


def __getattr__(name: str) -> Any:
    own = _OTHER.get(name) or (name if name in _SAME else "")
    found = TORCH.get(own) or function_named(own)
    if found is None:
        raise AttributeError(name)
    return found


def __dir__() -> list[str]:
    return [*_OTHER, *_SAME]
