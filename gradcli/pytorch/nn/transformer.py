"""Layers of transformers: attention and a network of two linear layers, each beside a residual connection."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.messages import missing_if, refusal, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.attention import MultiheadAttention
from gradcli.pytorch.nn.containers import ModuleList
from gradcli.pytorch.nn.layers import LayerNorm, Linear, _Layer
from gradcli.pytorch.nn.modules import Dropout

_ACTIVATIONS = ("relu", "gelu")


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then a network for each of its elements."""

    def _build(self) -> None:
        arguments = {name: self.__dict__.pop(name) for name in self.takes if name in self.__dict__}
        size, inner, bias = arguments["d_model"], arguments["dim_feedforward"], arguments["bias"]
        share, eps, dtype = arguments["dropout"], arguments["layer_norm_eps"], OF_NUMPY[self._kind]
        self.self_attn = MultiheadAttention(
            size, arguments["nhead"], share, bias, batch_first=arguments["batch_first"], dtype=dtype
        )
        self.linear1 = Linear(size, inner, bias, dtype=dtype)
        self.dropout = Dropout(share)
        self.linear2 = Linear(inner, size, bias, dtype=dtype)
        self.norm_first = arguments["norm_first"]
        self.norm1 = LayerNorm(size, eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(size, eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(share), Dropout(share)
        if "activation" in arguments:  # a module is registered already
            self.activation = _activation(arguments["activation"])
        else:
            self.activation = self._modules.pop("activation")

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Any:  # fmt: skip
        masks = src_mask, src_key_padding_mask, is_causal
        if self.norm_first:
            x = src + self._attention(self.norm1(src), *masks)
            return x + self._network(self.norm2(x))
        x = self.norm1(src + self._attention(src, *masks))
        return self.norm2(x + self._network(x))

    def _attention(self, x: Any, mask: Any, padding: Any, is_causal: bool) -> Any:
        result, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(result)

    def _network(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _activation(value: Any) -> Callable[[Any], Any]:
    """Return the function of `torch.nn.functional` that a name means, or the function itself."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    if value not in _ACTIVATIONS:
        raise refusal("activation of a transformer", value)
    return getattr(F, value)  # type: ignore[no-any-return]


class TransformerEncoder(_Layer):
    """Several copies of an encoder layer, one after the other, and a normalization at the end."""

    def _build(self) -> None:
        layer, norm = self._modules.pop("encoder_layer"), self._modules.pop("norm", None)
        self.layers = ModuleList([deepcopy(layer) for _ in range(self.num_layers)])
        if norm is not None:
            self.norm = norm
        if self.enable_nested_tensor and (why := _why_dense(layer)):
            warn("no nested tensors", why)

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:  # fmt: skip
        nested = self.enable_nested_tensor and not self.training and src_key_padding_mask is not None
        missing_if(nested and not Mode.grad, "torch.nn.TransformerEncoder in eval mode with src_key_padding_mask")
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


def _why_dense(layer: TransformerEncoderLayer) -> str:
    """Return why PyTorch does not skip the padding of a sequence in its layers, in its words."""
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if layer.activation not in (F.relu, F.gelu) and type(layer.activation).__name__ not in ("ReLU", "GELU"):
        return "encoder_layer.activation_relu_or_gelu was not True"
    return "encoder_layer.self_attn.num_heads is odd" if attention.num_heads % 2 else ""
