"""Tensors in another dtype, or on another device."""

from __future__ import annotations

from typing import Any

from gradcli.graph.dtypes import DType
from gradcli.graph.node import cast
from gradcli.pytorch import dtypes
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import method
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor


@method("to")
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    dtype: Any = None
    for value in (*args, kwargs.get("device"), kwargs.get("dtype")):
        if isinstance(value, str | dtypes.device) or type(value) is int:
            dtypes.check_device(value)
        elif isinstance(value, dtypes.dtype | type | Tensor):
            dtype = value.dtype if isinstance(value, Tensor) else value
    dtype = dtypes.chosen(dtype, input.dtype)
    if dtype is input.dtype:
        return input.clone() if kwargs.get("copy") else input
    return apply("cast", lambda x: cast(x, dtype.name), (input,), dtype.name)


def real(x: Tensor) -> Tensor:
    """Return integers as numbers of the default dtype."""
    return x if x._a.dtype.kind == "f" else to(x, dtypes.default_dtype())


SHORT: dict[str, DType] = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
SHORT |= {"short": "int16", "char": "int8", "byte": "uint8", "bool": "bool"}
for _name, _dtype in SHORT.items():
    method(_name)(lambda self, *_, _dtype=dtypes.BY_NAME[_dtype], **__: to(self, _dtype))


TYPES = {text: d for d in dtypes.ALL for text in (f"torch.{d.tensor}", repr(d))}


@method("type")
def type_(self: Tensor, dtype: Any = None) -> Any:
    if dtype is None:
        return f"torch.{self.dtype.tensor}"
    raise_if(isinstance(dtype, str) and dtype not in TYPES, "name of a type", dtype)
    return to(self, TYPES[dtype] if isinstance(dtype, str) else getattr(dtype, "dtype", dtype))


method("type_as")(lambda self, other: to(self, other.dtype))
method("cpu")(lambda self, *_, **__: self)
method("cuda")(lambda self, device=None, *_, **__: to(self, device if type(device) is int else "cuda"))  # an error
