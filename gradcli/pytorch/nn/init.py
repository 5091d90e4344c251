"""`torch.nn.init`: how parameters begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.messages import raise_if, warn
from gradcli.pytorch.modes import unrecorded
from gradcli.pytorch.operations.creation import eye
from gradcli.pytorch.tensor import Tensor, of_array


@unrecorded()
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    return tensor.uniform_(a, b, generator=generator)


@unrecorded()
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    return tensor.normal_(mean, std, generator=generator)


@unrecorded()
def constant_(tensor: Any, val: float) -> Tensor:
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


@unrecorded()
def eye_(tensor: Any) -> Tensor:
    raise_if(tensor.dim() != 2, "rank of an identity")
    return tensor.copy_(eye(*tensor.shape))


@unrecorded()
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Tensor:
    raise_if(tensor.dim() < 2, "rank of an orthogonal tensor")
    numbers = (generator or DEFAULT).normal(tensor.numel(), tensor._a.dtype).reshape(len(tensor), -1)
    wide = numbers.shape[0] < numbers.shape[1]
    q, r = np.linalg.qr((numbers.T if wide else numbers).astype(np.float64))
    q *= np.sign(np.diag(r))
    return tensor.copy_(of_array((q.T if wide else q) * gain).view(tensor.shape))


_LINEAR = ("linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    if nonlinearity == "leaky_relu":
        is_number = param is None or (isinstance(param, int | float) and not isinstance(param, bool))
        raise_if(not is_number, "slope that is no number", param)
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    gains = dict.fromkeys(_LINEAR, 1) | {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    raise_if(nonlinearity not in gains, "unknown gain", nonlinearity)
    return gains[nonlinearity]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Return how many numbers go into an output, and come out of an input."""
    raise_if(tensor.dim() < 2, "rank of a fan")
    inner = math.prod(tensor.shape[2:])
    return tensor.shape[1] * inner, tensor.shape[0] * inner


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    std = gain * math.sqrt(2.0 / float(sum(_fans(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if not tensor.numel():
        warn("nothing to initialize")
        return 0.0
    raise_if(mode.lower() not in ("fan_in", "fan_out"), "mode of a fan", mode.lower())
    fan = _fans(tensor)[mode.lower() == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Return a function under the name that it had once, which warns."""
    function = globals().get(f"{name}_")
    if function is None or name in ("ones", "zeros"):
        raise AttributeError(name)

    def fill(*args: Any, **kwargs: Any) -> Tensor:
        warn("old name in init", name, function.__name__)
        return function(*args, **kwargs)

    return fill
