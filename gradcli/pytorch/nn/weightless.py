"""`torch.nn`'s modules without weights: each holds the settings of a function of `torch.nn.functional`."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from gradcli.graph.node import Node
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import _kept, _Layer
from gradcli.pytorch.nn.losses import reduction_of
from gradcli.pytorch.refusals import several

_FUNCTIONS = """
ReLU relu, ReLU6 relu6, LeakyReLU leaky_relu, ELU elu, SELU selu, CELU celu, GELU gelu, SiLU silu, Mish mish, GLU glu,
Sigmoid sigmoid, Tanh tanh, Softplus softplus, Softsign softsign, Tanhshrink tanhshrink, LogSigmoid logsigmoid,
Hardtanh hardtanh, Softmax softmax, LogSoftmax log_softmax, Softmin softmin, Hardswish hardswish, Threshold threshold,
Hardsigmoid hardsigmoid, Hardshrink hardshrink, Softshrink softshrink, MaxPool1d max_pool1d, MaxPool2d max_pool2d,
AvgPool1d avg_pool1d, AvgPool2d avg_pool2d, AdaptiveAvgPool2d adaptive_avg_pool2d, MSELoss mse_loss, L1Loss l1_loss,
SmoothL1Loss smooth_l1_loss, HuberLoss huber_loss, BCELoss binary_cross_entropy, NLLLoss nll_loss, KLDivLoss kl_div,
BCEWithLogitsLoss binary_cross_entropy_with_logits, CrossEntropyLoss cross_entropy, PoissonNLLLoss poisson_nll_loss,
GaussianNLLLoss gaussian_nll_loss, HingeEmbeddingLoss hinge_embedding_loss, MarginRankingLoss margin_ranking_loss,
CosineEmbeddingLoss cosine_embedding_loss, TripletMarginLoss triplet_margin_loss
"""
# The function of each module.
FUNCTIONS = dict(row.split() for row in _FUNCTIONS.split(","))
# What a module's text shows of its settings, where it is not all of them.
_SHOWN = {
    **dict.fromkeys(("MaxPool1d", "MaxPool2d"), "kernel_size stride padding dilation ceil_mode"),
    **dict.fromkeys(("AvgPool1d", "AvgPool2d"), "kernel_size stride padding"),
    **dict.fromkeys(("Hardshrink", "Softshrink"), "*lambd"),
    **dict.fromkeys(("Hardswish", "Hardsigmoid"), ""),
}


class _Pool(_Layer):
    stride: Any

    def _build(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size
        if self.calls.startswith("avg_pool1d"):
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, tuple(several(getattr(self, name), 1)))


class _Loss(_Layer):
    """A loss, which may be told in an old way how it is reduced."""

    reduction: str

    def _build(self) -> None:
        old = [self.__dict__.pop(k, self._buffers.pop(k, None)) for k in ("size_average", "reduce")]
        if any(x is not None for x in old):
            self.reduction = reduction_of(old[0], old[1], self.reduction)

    def forward(self, *given: Any, **more: Any) -> Any:
        try:
            return super().forward(*given, **more)
        except TypeError as error:
            _, missing, rest = str(error).partition("() missing ")
            if missing:
                raise TypeError(f"{type(self).__name__}.forward{missing}{rest}") from None
            raise


def _settings(name: str, is_loss: bool) -> dict[str, Any]:
    """Return the settings of a module with their defaults: what its function is given behind the operands."""
    _, *rest = signature(getattr(F, FUNCTIONS[name])).parameters.values()
    found = {p.name: p.default for p in rest if p.kind is p.POSITIONAL_OR_KEYWORD}
    if is_loss:
        found = {k: v for k, v in found.items() if v is not Parameter.empty}
    if [*found][-1:] == ["weight"]:  # behind what is of the module's
        del found["weight"]
    if "return_indices" in found:
        found["ceil_mode"] = found.pop("ceil_mode")  # which a module has last
    return {k: float(str(v.value)) if isinstance(v, Node) else v for k, v in found.items()}


def __getattr__(name: str) -> type:
    """Return a module, which is made of its function's signature when it is first asked for."""
    if name not in FUNCTIONS:
        raise AttributeError(name)
    is_loss = name.endswith("Loss")
    settings = _settings(name, is_loss)
    required = " ".join(k for k, v in settings.items() if v is Parameter.empty)
    defaults = {k: v for k, v in settings.items() if v is not Parameter.empty}
    own: dict[str, Any] = {"__doc__": f"`torch.nn.{name}`.", "__init__": _kept(required, **defaults)}
    own["calls"] = " ".join([FUNCTIONS[name], *(k for k in settings if k not in ("size_average", "reduce"))])
    shown = " ".join(settings).replace("inplace", "inplace?").replace("approximate", "approximate!")
    own["shown"] = "" if is_loss else _SHOWN.get(name, shown)
    base = _Loss if is_loss else _Pool if "stride" in settings else _Layer
    globals()[name] = made = type(name, (base,), own)
    return made
