"""`torch.nn`'s convolutions, and the transposed ones, in which each number of the input spreads over a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.graph.construct import reshape
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import sweep
from gradcli.pytorch.argument_checks import check_convolution, several
from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.names import calling
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn.layers import _Linear
from gradcli.pytorch.record import apply
from gradcli.pytorch.signatures import signature
from gradcli.pytorch.tensor import Tensor
from gradcli.vocabulary import FUNCTIONS


def _transposed(axes: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{axes}d"
    known = signature(name)

    def convolve(input: Any, weight: Any, bias: Tensor | None = None, *args: Any, **kwargs: Any) -> Tensor:
        missing_if(not input.is_floating_point(), f"{name} of integers")
        values = known.bound(name, (input, weight, bias, *args), kwargs)
        settings = {a.name: values.get(a.name, a.default) for a in known.ordered[3:]}
        groups = settings.pop("groups")
        others = {k: v for k, v in settings.items() if k != "output_padding"}
        check_convolution(axes, input, weight, bias, others, groups, transposed=True)
        _check_output_padding(axes, settings)
        x = input if input.dim() == axes + 2 else input.unsqueeze(0)
        rows = list(zip(x.shape[2:], weight.shape[2:], *(several(s, axes) for s in settings.values()), strict=True))
        sizes = [(n - 1) * step - 2 * ends + more + apart * (k - 1) + 1 for n, k, step, ends, more, apart in rows]

        def build(x: Node, w: Node, *bias: Node) -> Node:
            """Return the gradient of a convolution's input, of which the input here is the cotangent."""
            y = leaf((x.shape[0], w.shape[1] * groups, *sizes), x.dtype)
            spread = FUNCTIONS[f"conv{axes}d"](y, w, groups=groups, **others)
            back = sweep(Graph.of({"y": y, "w": w}, {"x": spread}), ["y"])
            (result,) = substituted([back.gradients["y"]], {back.cotangents["x"]: x})
            return result + reshape(bias[0], (*bias[0].shape, *(1,) * axes)) if bias else result

        operands = [t for t in (x, weight, bias) if t is not None]
        result = apply(name, build, operands, (tuple(rows), groups), "ConvolutionBackward0")
        return result if x is input else called(result.squeeze(0), "SqueezeBackward1")

    return convolve


def _check_output_padding(axes: int, settings: dict[str, Any]) -> None:
    rows = [several(settings[name], axes) for name in ("output_padding", "stride", "dilation")]
    if any(more >= max(others) for more, *others in zip(*rows, strict=True)):
        ends = [pair if axes == 2 else [least, *pair] for pair, least in zip(rows, (0, 1, 1), strict=True)]
        raise torch_error("output padding", *ends[0], *ends[1], *ends[2])


conv_transpose1d, conv_transpose2d = (calling(_transposed(n), f"conv_transpose{n}d") for n in (1, 2))


# Layers


class _Conv(_Linear):
    output_padding: Any = 0  # of transposed ones

    def _build(self) -> None:
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            if isinstance(value := getattr(self, name), int | list):
                setattr(self, name, tuple(value) if isinstance(value, list) else (value,) * self.axes)
        for which in ("in_channels", "out_channels"):
            raise_if(getattr(self, which) % self.groups, "channels of groups", which)
        other = isinstance(self.padding, str) or isinstance(self, _ConvTranspose)
        missing_if(self.padding_mode != "zeros" and other, f"torch.nn.{type(self).__name__}(padding_mode=…)")
        self._weights(self.out_channels, *self._planes(), *self.kernel_size)

    def _planes(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def forward(self, *args: Any, **more: Any) -> Any:
        if self.padding_mode == "zeros":
            return super().forward(*args, **more)
        ends = [n for n in self.padding[::-1] for _ in range(2)]
        return super().forward(F.pad(args[0], ends, self.padding_mode), padding=0)


class _ConvTranspose(_Conv):
    def _planes(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Any, output_size: Any = None) -> Any:
        missing_if(output_size is not None, f"torch.nn.{type(self).__name__}(…)(output_size=…)")
        return super().forward(input)
