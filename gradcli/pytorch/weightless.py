"""`torch.nn`'s modules without weights: each holds the settings of a function of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch import functional as F
from gradcli.pytorch.losses import reduction_of
from gradcli.pytorch.module import Module
from gradcli.pytorch.tensor import Tensor

_MAX = {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_AVG = {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
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
    # Losses: those that take weights of classes or samples have them as buffers
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
        if len(args) > len(self.settings):
            least = 1 + sum(v is ... for v in self.settings.values())
            most = (
                f"from {least} to {len(self.settings) + 1} positional arguments"
                if self.settings
                else "1 positional argument"
            )
            raise TypeError(f"{type(self).__name__}.__init__() takes {most} but {len(args) + 1} were given")
        own = self.settings | dict(zip(self.settings, args, strict=False)) | kwargs
        _check(f"{type(self).__name__}.__init__()", self.settings, own)
        if own.get("stride", ...) is None:
            own["stride"] = own["kernel_size"]
        for name, value in own.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                single = self.function == "avg_pool1d" and isinstance(value, int) and name in _POOL
                setattr(self, name, (value,) if single else value)

    def forward(self, *given: Any, **more: Any) -> Any:
        own = {k: getattr(self, k) for k in self.settings if k != "inplace" or self.inplace}
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


class _Loss(_Holder):
    """A loss, which holds how it is reduced as well."""

    def __init__(
        self, *args: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        old = size_average is not None or reduce is not None
        self.reduction = reduction_of(size_average, reduce, reduction) if old else reduction

    def forward(self, *given: Any, **more: Any) -> Any:
        return super().forward(*given, **more, reduction=self.reduction)

    def extra_repr(self) -> str:
        return ""


def _home(name: str) -> str:
    return "loss" if name.endswith("Loss") else "pooling" if "Pool" in name else "activation"


for _name, (_function, _settings) in _ROWS.items():
    _body = {
        "function": _function,
        "settings": _settings,
        "shown": _SHOWN.get(_name),
        "__module__": f"torch.nn.modules.{_home(_name)}",
    }
    _bases = (_Loss if _name.endswith("Loss") else _Holder,)
    globals()[_name] = type(_name, _bases, {**_body, "__doc__": f"`torch.nn.{_name}`."})

__all__ = [*_ROWS]
