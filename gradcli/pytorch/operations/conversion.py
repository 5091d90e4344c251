"""Tensors in another dtype, or on another device."""

from __future__ import annotations

from typing import Any

from gradcli.graph.dtypes import DType
from gradcli.graph.node import cast
from gradcli.pytorch import dtypes
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import function
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor


@function("to")
def to(input: Tensor, dtype: Any = None, device: Any = None, tensor: Any = None, copy: bool = False) -> Tensor:
    dtypes.check_device(device)
    if tensor is not None:  # PyTorch takes numbers, too
        dtype = tensor.dtype if isinstance(tensor, Tensor) else type(tensor)
    dtype = dtypes.chosen(dtype, input.dtype)
    if dtype is input.dtype:
        return input.clone() if copy else input
    return apply("cast", lambda x: cast(x, dtype.name), (input,), dtype.name)


def real(x: Tensor) -> Tensor:
    """Return integers as numbers of the default dtype."""
    return x if x._a.dtype.kind == "f" else to(x, dtypes.default_dtype())


SHORT: dict[str, DType] = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
SHORT |= {"short": "int16", "char": "int8", "byte": "uint8", "bool": "bool"}
for _name, _dtype in SHORT.items():
    function(_name)(lambda self, *_, _dtype=dtypes.BY_NAME[_dtype], **__: to(self, _dtype))


TYPES = {text: d for d in dtypes.ALL for text in (f"torch.{d.tensor}", repr(d))}


@function("type")
def type_(self: Tensor, dtype: Any = None) -> Any:
    if dtype is None:
        return f"torch.{self.dtype.tensor}"
    raise_if(isinstance(dtype, str) and dtype not in TYPES, "name of a type", dtype)
    return to(self, TYPES[dtype] if isinstance(dtype, str) else getattr(dtype, "dtype", dtype))


function("type_as")(lambda self, other: to(self, other.dtype))
function("cpu")(lambda self, *_, **__: self)
function("cuda")(
    lambda self, device=None, *_, **__: to(self, device=device if type(device) is int else "cuda")
)  # an error
