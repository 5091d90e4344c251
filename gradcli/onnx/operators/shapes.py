"""Operators on integers: shapes, ranges, casts; they are folded while the model is read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import call, where
from gradcli.graph.node import Node, compare, const
from gradcli.graph.shapes import check_size, size_of
from gradcli.onnx.register import operator
from gradcli.onnx.values import Value, integers

_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
_FLOATS = (1, 10, 11, 16)


@operator("Shape")
def _shape(x: Value, *, start: int = 0, end: int | None = None) -> Array:
    return np.array(x.shape[slice(start, end)], np.int64)


@operator("Size")
def _size(x: Value) -> Array:
    return np.array(size_of(x.shape), np.int64)


@operator("Constant")
def _constant(**values: Any) -> Array:
    for name, value in values.items():
        if name == "value":
            return np.asarray(value)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise InputError("this constant holds no array of numbers; text and sparse arrays are not supported")


@operator("ConstantOfShape")
def _constant_of_shape(shape: Array, *, value: Any = None) -> Array:
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.broadcast_to(fill.reshape(()), check_size(integers(shape)))


@operator("Range")
def _range(start: Array, limit: Array, delta: Array) -> Array:
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    if not step or not all(map(math.isfinite, (first, last, step))):
        raise InputError("the step of a range is 0, or a bound is not finite")
    count = max(0, math.ceil((last - first) / step))
    check_size((count,))
    return np.asarray(first + np.arange(count) * step, start.dtype)


@operator("EyeLike")
def _eye_like(x: Value, *, dtype: int = 1, k: int = 0) -> Array:
    n, m = check_size(x.shape)
    return np.eye(n, m, max(-n, min(k, m)), dtype=_TYPES.get(dtype, "float32"))


@operator("NonZero")
def _non_zero(x: Array) -> Array:
    check_size((x.ndim, int(np.count_nonzero(x))))
    return np.array(np.nonzero(x), np.int64)


@operator("Cast")
def _cast(x: Value, *, to: Any, saturate: int = 1, round_mode: str = "up") -> Value:
    from onnx import TensorProto

    to = TensorProto.DataType.Value(to) if isinstance(to, str) else to  # a name, before opset 6
    if to not in _TYPES or (isinstance(x, np.ndarray) and x.dtype.kind == "V"):
        raise InputError("a cast to text, or to a type of 8 bits or fewer, has no derivative")
    if not isinstance(x, Node):
        with np.errstate(all="ignore"):
            return np.asarray(x.astype("float32" if to == 16 else _TYPES[to]))
    if to in _FLOATS:
        return where(x, 1, 0) if x.dtype == "bool" else x
    if to == 9:
        return x if x.dtype == "bool" else compare("ne", x, const(0))
    return where(x, 1, 0) if x.dtype == "bool" else call("trunc", x)


@operator("Unique")
def _unique(x: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    if not sorted:
        order = np.argsort(first)
        along = 0 if axis is None else axis
        values, first, counts = values.take(order, axis=along), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values, first, inverse.reshape(-1), counts


@operator("DequantizeLinear")
def _dequantize(x: Array, scale: Array, zero: Array | None = None, *, axis: int = 1, block_size: int = 0) -> Array:
    if block_size:
        raise InputError("weights quantised by blocks are not supported", hint="export the model before quantisation")

    def along(v: Array) -> Array:
        return v.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if v.ndim else v

    shifted = x.astype(np.float64) - (0 if zero is None else along(zero).astype(np.float64))
    return np.asarray(shifted * along(scale).astype(np.float64))
