"""`torch.nn`'s activations and losses: modules that hold the settings of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch.losses import reduction_of
from gradcli.pytorch.module import Module
from gradcli.pytorch.tensor import Tensor

# What each activation is called in `torch.nn.functional`, its settings with their defaults, and which of them it shows
# (`-`: only that it works in place).
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "ReLU": ("relu", {"inplace": False}, "-"),
    "ReLU6": ("relu6", {"inplace": False}, "-"),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, "inplace": False}, "negative_slope={negative_slope}"),
    "ELU": ("elu", {"alpha": 1.0, "inplace": False}, "alpha={alpha}"),
    "SELU": ("selu", {"inplace": False}, "-"),
    "CELU": ("celu", {"alpha": 1.0, "inplace": False}, "alpha={alpha}"),
    "GELU": ("gelu", {"approximate": "none"}, "approximate={approximate!r}"),
    "SiLU": ("silu", {"inplace": False}, "-"),
    "Mish": ("mish", {"inplace": False}, "-"),
    "Sigmoid": ("sigmoid", {}, ""),
    "Tanh": ("tanh", {}, ""),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}, "beta={beta}, threshold={threshold}"),
    "Softsign": ("softsign", {}, ""),
    "Tanhshrink": ("tanhshrink", {}, ""),
    "LogSigmoid": ("logsigmoid", {}, ""),
    "Hardtanh": (
        "hardtanh",
        {"min_val": -1.0, "max_val": 1.0, "inplace": False},
        "min_val={min_val}, max_val={max_val}",
    ),
    "Softmax": ("softmax", {"dim": None}, "dim={dim}"),
    "LogSoftmax": ("log_softmax", {"dim": None}, "dim={dim}"),
    "Hardswish": ("hardswish", {"inplace": False}, ""),
    "Hardsigmoid": ("hardsigmoid", {"inplace": False}, ""),
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
_OLD: dict[str, Any] = {"size_average": None, "reduce": None, "reduction": "mean"}
_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "MSELoss": ("mse_loss", _OLD),
    "L1Loss": ("l1_loss", _OLD),
    "SmoothL1Loss": ("smooth_l1_loss", {**_OLD, "beta": 1.0}),
    "HuberLoss": ("huber_loss", {"reduction": "mean", "delta": 1.0}),
    "BCELoss": ("binary_cross_entropy", {"weight": None, **_OLD}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, **_OLD, "pos_weight": None}),
    "CrossEntropyLoss": (
        "cross_entropy",
        {
            **{"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"},
            "label_smoothing": 0.0,
        },
    ),
    "NLLLoss": (
        "nll_loss",
        {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"},
    ),
    "KLDivLoss": ("kl_div", {**_OLD, "log_target": False}),
    "PoissonNLLLoss": (
        "poisson_nll_loss",
        {"log_input": True, "full": False, "size_average": None, "eps": 1e-08, "reduce": None, "reduction": "mean"},
    ),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-06, "reduction": "mean"}),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0, **_OLD}),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0, **_OLD}),
    "SoftMarginLoss": ("soft_margin_loss", _OLD),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0, **_OLD}),
    "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-06, "swap": False, **_OLD}),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", _OLD),
}


def _activation(name: str, function: str, settings: dict[str, Any], shown: str) -> type[Module]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        for key, value in _bound(name, settings, args, kwargs).items():
            setattr(self, key, value)

    def forward(self: Any, input: Any) -> Any:
        given = {k: getattr(self, k) for k in settings if k != "inplace" or self.inplace}
        return getattr(F, function)(input, **given)

    def extra_repr(self: Any) -> str:
        if not shown:
            return ""
        found = [] if shown == "-" else [shown.format(**{k: getattr(self, k) for k in settings})]
        return ", ".join([*found, *["inplace=True"] * bool(getattr(self, "inplace", False))])

    return _made(name, __init__, forward, extra_repr)


# Whose `__init__` it is, where it is not the class's own.
_BASES = dict.fromkeys(("MSELoss", "L1Loss", "SoftMarginLoss"), "_Loss")
_BASES |= dict.fromkeys(("BCELoss", "MultiLabelSoftMarginLoss"), "_WeightedLoss")


def _bound(name: str, settings: dict[str, Any], args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a module that is made.

    Errors: `TypeError` in Python's words, for arguments that it does not have.
    """
    name = _BASES.get(name, name)
    if len(args) > len(settings):
        takes = f"from 1 to {len(settings) + 1} positional arguments" if settings else "1 positional argument"
        raise TypeError(f"{name}.__init__() takes {takes} but {len(args) + 1} were given")
    own = dict(zip(settings, args, strict=False))
    for key in given:
        if key not in settings:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
        if key in own:
            raise TypeError(f"{name}.__init__() got multiple values for argument '{key}'")
    return settings | own | given


def _made(name: str, init: Callable[..., None], forward: Callable[..., Any], text: Callable[..., str]) -> type[Module]:
    home = "loss" if name.endswith("Loss") else "activation"
    body = {"__init__": init, "forward": forward, "extra_repr": text, "__module__": f"torch.nn.modules.{home}"}
    return type(name, (Module,), {**body, "__doc__": f"`torch.nn.{name}`."})


def _loss(name: str, function: str, settings: dict[str, Any]) -> type[Module]:
    own = [k for k in settings if k not in _OLD]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        bound = _bound(name, settings, args, kwargs)
        for key in own:
            if isinstance(bound[key], Tensor):
                self.register_buffer(key, bound[key])
            else:
                setattr(self, key, bound[key])
        # What a way is none of, the loss itself refuses.
        old, how = (bound.get("size_average"), bound.get("reduce")), bound["reduction"]
        self.reduction = how if old == (None, None) else reduction_of(*old, how)

    def forward(self: Any, *given: Any) -> Any:
        return getattr(F, function)(*given, reduction=self.reduction, **{k: getattr(self, k) for k in own})

    return _made(name, __init__, forward, lambda self: "")


for _name, (_function, _settings, _shown) in _ACTIVATIONS.items():
    globals()[_name] = _activation(_name, _function, _settings, _shown)
for _name, (_function, _settings) in _LOSSES.items():
    globals()[_name] = _loss(_name, _function, _settings)

__all__ = [*_ACTIVATIONS, *_LOSSES]
