"""`torch.nn`'s activations and losses: modules that hold the settings of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch.losses import reduction_of
from gradcli.pytorch.module import Module
from gradcli.pytorch.tensor import Tensor

# What each activation is called in `torch.nn.functional`, its settings with their defaults, and which of them it shows.
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "ReLU": ("relu", {"inplace": False}, "{inplace}"),
    "ReLU6": ("relu6", {"inplace": False}, "{inplace}"),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, "inplace": False}, "negative_slope={negative_slope}"),
    "ELU": ("elu", {"alpha": 1.0, "inplace": False}, "alpha={alpha}"),
    "SELU": ("selu", {"inplace": False}, "{inplace}"),
    "CELU": ("celu", {"alpha": 1.0}, "alpha={alpha}"),
    "GELU": ("gelu", {"approximate": "none"}, "approximate={approximate!r}"),
    "SiLU": ("silu", {"inplace": False}, "{inplace}"),
    "Mish": ("mish", {}, ""),
    "Sigmoid": ("sigmoid", {}, ""),
    "Tanh": ("tanh", {}, ""),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}, "beta={beta}, threshold={threshold}"),
    "Softsign": ("softsign", {}, ""),
    "Tanhshrink": ("tanhshrink", {}, ""),
    "LogSigmoid": ("logsigmoid", {}, ""),
    "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0}, "min_val={min_val}, max_val={max_val}"),
    "Softmax": ("softmax", {"dim": None}, "dim={dim}"),
    "LogSoftmax": ("log_softmax", {"dim": None}, "dim={dim}"),
    "Hardswish": ("hardswish", {"inplace": False}, "{inplace}"),
    "Hardsigmoid": ("hardsigmoid", {"inplace": False}, "{inplace}"),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}, "{lambd}"),
    "Softshrink": ("softshrink", {"lambd": 0.5}, "{lambd}"),
    "Threshold": (
        "threshold",
        {"threshold": 0.0, "value": 0.0, "inplace": False},
        "threshold={threshold}, value={value}",
    ),
    "GLU": ("glu", {"dim": -1}, "dim={dim}"),
    "Softmin": ("softmin", {"dim": None}, "dim={dim}"),
}

# The same of the losses: those that take class or sample weights have them as buffers.
_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "MSELoss": ("mse_loss", {}),
    "L1Loss": ("l1_loss", {}),
    "SmoothL1Loss": ("smooth_l1_loss", {"beta": 1.0}),
    "HuberLoss": ("huber_loss", {"delta": 1.0}),
    "BCELoss": ("binary_cross_entropy", {"weight": None}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, "pos_weight": None}),
    "CrossEntropyLoss": ("cross_entropy", {"weight": None, "ignore_index": -100, "label_smoothing": 0.0}),
    "NLLLoss": ("nll_loss", {"weight": None, "ignore_index": -100}),
    "KLDivLoss": ("kl_div", {"log_target": False}),
    "PoissonNLLLoss": ("poisson_nll_loss", {"log_input": True, "full": False, "eps": 1e-08}),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-06}),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0}),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0}),
    "SoftMarginLoss": ("soft_margin_loss", {}),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0}),
    "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-06, "swap": False}),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", {}),
}
_FIRST = {"HuberLoss": ("reduction", "delta")}


def _activation(name: str, function: str, settings: dict[str, Any], shown: str) -> type[Module]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        for key, value in (settings | dict(zip(settings, args, strict=False)) | kwargs).items():
            setattr(self, key, value)

    def forward(self: Any, input: Any) -> Any:
        given = {k: getattr(self, k) for k in settings if k != "inplace" or self.inplace}
        return getattr(F, function)(input, **given)

    def extra_repr(self: Any) -> str:
        if shown == "{inplace}":
            return "inplace=True" if self.inplace else ""
        found = shown.format(**{k: getattr(self, k) for k in settings})
        return found + (", inplace=True" if getattr(self, "inplace", False) else "")

    return _made(name, __init__, forward, extra_repr)


def _made(name: str, init: Callable[..., None], forward: Callable[..., Any], text: Callable[..., str]) -> type[Module]:
    body = {"__init__": init, "forward": forward, "extra_repr": text, "__module__": "torch.nn.modules"}
    return type(name, (Module,), {**body, "__doc__": f"`torch.nn.{name}`."})


def _loss(name: str, function: str, settings: dict[str, Any]) -> type[Module]:
    def __init__(
        self: Any, *args: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", **kwargs: Any
    ) -> None:
        Module.__init__(self)
        own = settings | dict(zip(settings, args, strict=False)) | kwargs
        for key, value in own.items():
            if isinstance(value, Tensor):
                self.register_buffer(key, value)
            else:
                setattr(self, key, value)
        old = size_average is not None or reduce is not None
        self.reduction = reduction_of(size_average, reduce, reduction) if old else reduction

    def forward(self: Any, *given: Any) -> Any:
        return getattr(F, function)(*given, reduction=self.reduction, **{k: getattr(self, k) for k in settings})

    return _made(name, __init__, forward, lambda self: "")


for _name, (_function, _settings, _shown) in _ACTIVATIONS.items():
    globals()[_name] = _activation(_name, _function, _settings, _shown)
for _name, (_function, _settings) in _LOSSES.items():
    globals()[_name] = _loss(_name, _function, _settings)

__all__ = [*_ACTIVATIONS, *_LOSSES]
