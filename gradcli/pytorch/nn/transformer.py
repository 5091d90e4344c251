"""Layers of transformers: attention and a network of two linear layers, each beside a residual connection."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gradcli.pytorch.messages import missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import TORCH
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import init
from gradcli.pytorch.nn.attention import MultiheadAttention
from gradcli.pytorch.nn.containers import ModuleList
from gradcli.pytorch.nn.layers import LayerNorm, Linear, _Layer
from gradcli.pytorch.nn.modules import Dropout

_ACTIVATIONS = ("relu", "gelu")


class _TransformerLayer(_Layer):
    """Attention to sequences, then a network for each element, each beside a residual connection and normalized.

    `attentions` are the names of its parts that attend to a sequence.
    """

    attentions: tuple[str, ...] = ()
    norm_first: bool

    def _build(self) -> None:
        arguments = {name: self.__dict__.pop(name) for name in self.takes if name in self.__dict__}
        size, inner, bias = arguments["d_model"], arguments["dim_feedforward"], arguments["bias"]
        share, eps, dtype = arguments["dropout"], arguments["layer_norm_eps"], self._kind
        for name in self.attentions:
            attention = MultiheadAttention(
                size, arguments["nhead"], share, bias, batch_first=arguments["batch_first"], dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(size, inner, bias, dtype=dtype)
        self.dropout = Dropout(share)
        self.linear2 = Linear(inner, size, bias, dtype=dtype)
        self.norm_first = arguments["norm_first"]
        numbers = range(1, len(self.attentions) + 2)
        for i in numbers:
            setattr(self, f"norm{i}", LayerNorm(size, eps, bias=bias, dtype=dtype))
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(share))
        if "activation" in arguments:  # a module is registered already
            self.activation = _activation(arguments["activation"])
        else:
            self.activation = self._modules.pop("activation")

    def _through(self, x: Any, *blocks: Callable[[Any], Any]) -> Any:
        """Return x + block(x) after each block, normalized before the block or after the sum."""
        for i, block in enumerate(blocks, 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return x

    def _network(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attention(attend: Any, keys: Any, *masks: Any) -> Callable[[Any], Any]:
    """Return attention to keys, or to the queries themselves, as a function of the queries."""
    mask, padding, is_causal = masks

    def block(x: Any) -> Any:
        y = x if keys is None else keys
        return attend(
            x, y, y, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=bool(is_causal)
        )[0]  # fmt: skip

    return block


class TransformerEncoderLayer(_TransformerLayer):
    """Attention of a sequence to itself, then a network for each of its elements."""

    attentions = ("self_attn",)

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        attention = _attention(self.self_attn, None, src_mask, src_key_padding_mask, is_causal)
        return self._through(src, attention, self._network)


class TransformerDecoderLayer(_TransformerLayer):
    """Attention of a sequence to itself and to the encoder's output, then a network for each of its elements."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        itself = _attention(self.self_attn, None, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        encoded = _attention(self.multihead_attn, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._through(tgt, itself, encoded, self._network)


def _activation(value: Any) -> Callable[[Any], Any]:
    """Return the function of `torch.nn.functional` that a name means, or the function itself."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    if value not in _ACTIVATIONS:
        raise torch_error("activation of a transformer", value)
    return getattr(F, value)  # type: ignore[no-any-return]


class _Layers(_Layer):
    """Several copies of a layer, one after the other, and a normalization at the end."""

    def _build(self) -> None:
        layer, norm = self._modules.pop(next(iter(self.takes))), self._modules.pop("norm", None)
        self.layers = ModuleList([deepcopy(layer) for _ in range(self.num_layers)])
        if norm is not None:
            self.norm = norm

    def _through(self, x: Any, *args: Any, **masks: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args, **masks)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Layers):
    """Copies of an encoder layer."""

    def _build(self) -> None:
        super()._build()
        if self.enable_nested_tensor and (why := _why_dense(self.layers[0])):
            warn("no nested tensors", why)

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:  # fmt: skip
        nested = self.enable_nested_tensor and not self.training and src_key_padding_mask is not None
        missing_if(nested and not Mode.grad, "torch.nn.TransformerEncoder in eval mode with src_key_padding_mask")
        masks = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask}
        return self._through(src, **masks, is_causal=bool(is_causal))


class TransformerDecoder(_Layers):
    """Copies of a decoder layer."""

    def forward(self, tgt: Any, memory: Any, *args: Any, **masks: Any) -> Any:
        return self._through(tgt, memory, *args, **masks)


class Transformer(_Layer):
    """An encoder of a sequence, and a decoder of another one that attends to the encoder's output."""

    encoder: Any
    decoder: Any

    def _build(self) -> None:
        parts = {name: self.__dict__.pop(name, self._modules.pop(name, None)) for name in self.takes if name in _PARTS}
        dtype = self._kind
        settings = {name: parts[name] for name in TransformerEncoderLayer.takes if name in parts}
        settings |= {"d_model": self.d_model, "nhead": self.nhead, "batch_first": self.batch_first, "dtype": dtype}

        def norm() -> LayerNorm:
            return LayerNorm(self.d_model, parts["layer_norm_eps"], bias=parts["bias"], dtype=dtype)

        self.encoder, self.decoder = parts["custom_encoder"], parts["custom_decoder"]
        if self.encoder is None:
            layer = TransformerEncoderLayer(**settings)
            self.encoder = TransformerEncoder(layer, parts["num_encoder_layers"], norm())
        if self.decoder is None:
            decoding = TransformerDecoderLayer(**settings)
            self.decoder = TransformerDecoder(decoding, parts["num_decoder_layers"], norm())
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return a mask by which an element attends to those before it."""
        return TORCH["full"]((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        batch = int(not self.batch_first)
        raise_if(src.dim() == 3 and src.shape[batch] != tgt.shape[batch], "batches of a transformer")
        raise_if({src.shape[-1], tgt.shape[-1]} != {self.d_model}, "features of a transformer")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip


# The arguments of a transformer that its layers have.
_PARTS = frozenset(("num_encoder_layers", "num_decoder_layers", "dim_feedforward", "dropout", "activation"))
_PARTS |= frozenset(("custom_encoder", "custom_decoder", "layer_norm_eps", "norm_first", "bias"))


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
