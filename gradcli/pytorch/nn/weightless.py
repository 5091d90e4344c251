"""`torch.nn`'s modules without weights: each holds the settings of a function of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.losses import reduction_of
from gradcli.pytorch.nn.module import Module
from gradcli.pytorch.tensor import Tensor

_MAX = {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_AVG = {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
_OLD = {"size_average": None, "reduce": None, "reduction": "mean"}
_CLASSES = {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"}
# The function, and its settings with their defaults; `...` is none.
_ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    # Activations
    "ReLU": ("relu", {"inplace": False}),
    "ReLU6": ("relu6", {"inplace": False}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    "ELU": ("elu", {"alpha": 1.0, "inplace": False}),
    "SELU": ("selu", {"inplace": False}),
    "CELU": ("celu", {"alpha": 1.0, "inplace": False}),
    "GELU": ("gelu", {"approximate": "none"}),
    "SiLU": ("silu", {"inplace": False}),
    "Mish": ("mish", {"inplace": False}),
    "Sigmoid": ("sigmoid", {}),
    "Tanh": ("tanh", {}),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}),
    "Softsign": ("softsign", {}),
    "Tanhshrink": ("tanhshrink", {}),
    "LogSigmoid": ("logsigmoid", {}),
    "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    "Softmax": ("softmax", {"dim": None}),
    "LogSoftmax": ("log_softmax", {"dim": None}),
    "Softmin": ("softmin", {"dim": None}),
    "Hardswish": ("hardswish", {"inplace": False}),
    "Hardsigmoid": ("hardsigmoid", {"inplace": False}),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Softshrink": ("softshrink", {"lambd": 0.5}),
    "Threshold": ("threshold", {"threshold": ..., "value": ..., "inplace": False}),
    "GLU": ("glu", {"dim": -1}),
    # Pooling
    "MaxPool1d": ("max_pool1d", _MAX),
    "MaxPool2d": ("max_pool2d", _MAX),
    "AvgPool1d": ("avg_pool1d", _AVG),
    "AvgPool2d": ("avg_pool2d", {**_AVG, "divisor_override": None}),
    "AdaptiveAvgPool1d": ("adaptive_avg_pool1d", {"output_size": ...}),
    "AdaptiveAvgPool2d": ("adaptive_avg_pool2d", {"output_size": ...}),
    "AdaptiveMaxPool1d": ("adaptive_max_pool1d", {"output_size": ...}),
    "AdaptiveMaxPool2d": ("adaptive_max_pool2d", {"output_size": ...}),
    "Unfold": ("unfold", {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    "Fold": ("fold", {"output_size": ..., "kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}),
    # Losses: those that take weights of classes or samples have them as buffers
    "MSELoss": ("mse_loss", _OLD),
    "L1Loss": ("l1_loss", _OLD),
    "SmoothL1Loss": ("smooth_l1_loss", {**_OLD, "beta": 1.0}),
    "HuberLoss": ("huber_loss", {"reduction": "mean", "delta": 1.0}),
    "BCELoss": ("binary_cross_entropy", {"weight": None, **_OLD}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, **_OLD, "pos_weight": None}),
    "CrossEntropyLoss": ("cross_entropy", {**_CLASSES, "label_smoothing": 0.0}),
    "NLLLoss": ("nll_loss", _CLASSES),
    "KLDivLoss": ("kl_div", {**_OLD, "log_target": False}),
    "PoissonNLLLoss": (
        "poisson_nll_loss",
        {"log_input": True, "full": False, "size_average": None, "eps": 1e-8, **_OLD},
    ),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-6, "reduction": "mean"}),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0, **_OLD}),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0, **_OLD}),
    "SoftMarginLoss": ("soft_margin_loss", _OLD),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0, **_OLD}),
    "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_OLD}),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", {"weight": None, **_OLD}),
}
# What a module's text shows of its settings, where it is not all of them.
_POOL = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
_SHOWN = {
    **dict.fromkeys(("MaxPool1d", "MaxPool2d"), _POOL + ", dilation={dilation}, ceil_mode={ceil_mode}"),
    **dict.fromkeys(("AvgPool1d", "AvgPool2d"), _POOL),
    **dict.fromkeys(("Hardshrink", "Softshrink"), "{lambd}"),
    **dict.fromkeys(("Hardswish", "Hardsigmoid"), ""),
}


class _Holder(Module):
    """A module that holds the settings of a function."""

    function: str
    settings: dict[str, Any]
    shown: str | None  # of the settings, in the module's text; None: all of them

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        name = f"{type(self).__name__}.__init__()"
        if len(args) > len(self.settings):
            least, most = 1 + sum(v is ... for v in self.settings.values()), len(self.settings) + 1
            count = f"from {least} to {most} positional arguments" if most > 1 else "1 positional argument"
            raise TypeError(f"{name} takes {count} but {len(args) + 1} were given")
        own = self.settings | dict(zip(self.settings, args, strict=False)) | kwargs
        _check(name, self.settings, own)
        if own.get("stride", ...) is None:
            own["stride"] = own["kernel_size"]
        for name, value in own.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                single = self.function == "avg_pool1d" and isinstance(value, int) and name in _POOL
                setattr(self, name, (value,) if single else value)

    def forward(self, *given: Any, **more: Any) -> Any:
        own = {k: getattr(self, k) for k in self.settings if k not in _UNTOLD or (k == "inplace" and self.inplace)}
        return getattr(F, self.function)(*given, **own, **more)

    def extra_repr(self) -> str:
        own = {k: getattr(self, k) for k in self.settings}
        inplace = ["inplace=True"] if own.pop("inplace", False) else []
        parts = [f"{k}={v!r}" for k, v in own.items()] if self.shown is None else [self.shown.format(**own)]
        return ", ".join(parts + inplace)


def _check(name: str, settings: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse settings that there are not, and miss those that there must be, as Python does."""
    for k in given:
        if k not in settings:
            raise TypeError(f"{name} got an unexpected keyword argument '{k}'")
    if lost := [repr(k) for k, v in given.items() if v is ...]:
        raise TypeError(
            f"{name} missing {len(lost)} required positional argument{'s' * (len(lost) > 1)}: {' and '.join(lost)}"
        )


# What a function is told only where it says something.
_UNTOLD = frozenset(("inplace", "size_average", "reduce"))


class _Loss(_Holder):
    """A loss, which may be told in an old way how it is reduced."""

    reduction: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        old = getattr(self, "size_average", None), getattr(self, "reduce", None)
        if old != (None, None):
            self.reduction = reduction_of(*old, self.reduction)

    def extra_repr(self) -> str:
        return ""


def _home(name: str) -> str:
    if name in ("Fold", "Unfold"):
        return "fold"
    return "loss" if name.endswith("Loss") else "pooling" if "Pool" in name else "activation"


def __getattr__(name: str) -> type:
    """Return a module, which is made of its row when it is first asked for."""
    if name not in _ROWS:
        raise AttributeError(name)
    function, settings = _ROWS[name]
    body = {"function": function, "settings": settings, "shown": _SHOWN.get(name), "__doc__": f"`torch.nn.{name}`."}
    body["__module__"] = f"torch.nn.modules.{_home(name)}"
    globals()[name] = made = type(name, (_Loss if name.endswith("Loss") else _Holder,), body)
    return made


__all__ = [*_ROWS]
