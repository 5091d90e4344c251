"""Files of models: protobufs of bounded size, and arrays without copies."""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.files import note_read, printable, reason
from gradcli.graph.array import Array
from gradcli.graph.shapes import MAX_RANK

MAX_BYTES = 2**31 - 1  # of a protobuf


def load(path: str) -> Any:
    """Return the model in a file, its external data unread.

    Errors: `InputError` for a file that cannot be read, or is not a model.
    """
    try:
        import onnx
    except ImportError:
        raise InputError(
            "models are read by the package `onnx`, which is not installed", hint="pip install 'gradcli[onnx]'"
        ) from None
    shown = printable(path)
    try:
        with open(path, "rb") as file:
            note_read(file)
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                raise InputError(
                    f"`{shown}` is longer than 2 GiB", hint="store its weights as external data", text=path
                )
            data = file.read(MAX_BYTES) if size else b""
    except (OSError, ValueError) as error:
        raise InputError(f"`{shown}` cannot be read: {printable(reason(error))}", text=path) from None
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:  # protobuf's errors have no common class
        raise InputError(f"`{shown}` is not an ONNX model, or it is cut off", text=path) from None
    if not model.HasField("graph") or not model.opset_import:
        raise InputError(f"`{shown}` is not an ONNX model: it has no graph, or no opset", text=path)
    if old := next((o for o in model.opset_import if o.version < 1), None):
        raise InputError(f"`{shown}` says that it is of opset {old.version}; opsets begin with 1", text=path)
    if not _is_text(model):
        raise InputError(f"`{shown}` is damaged: it has names that are not UTF-8", text=path)
    return model


def _is_text(model: Any) -> bool:
    """Return whether all strings of a message are text; protobuf leaves those that are not UTF-8 as bytes."""
    waiting = [model]
    while waiting:
        for field, value in waiting.pop().ListFields():
            values = [value] if isinstance(value, str | bytes) or not hasattr(value, "__len__") else value
            if field.type == field.TYPE_MESSAGE:
                waiting += values
            elif field.type == field.TYPE_STRING and any(isinstance(text, bytes) for text in values):
                return False
    return True


def initializers(graph: Any) -> dict[str, Any]:
    """Return the tensors that a graph holds, by their names.

    Errors: `InputError` for two of one name, and for a sparse one.
    """
    result: dict[str, Any] = {}
    for tensor in graph.initializer:
        if tensor.name in result:
            raise InputError(f"two initializers are called `{printable(tensor.name)}`", hint="the model is damaged")
        result[tensor.name] = tensor
    for sparse in graph.sparse_initializer:
        raise InputError(
            f"the initializer `{printable(sparse.values.name)}` is sparse, which is not supported",
            hint="store it with all its elements",
        )
    return result


def array(tensor: Any, folder: Path) -> Array:
    """Return the numbers of a tensor, in their own type; external data are mapped into memory.

    Errors: `InputError` for data that are not as long as the shape says, and for those outside of the model's folder.
    """
    from onnx import TensorProto, helper

    name = printable(tensor.name) or "a tensor"
    shape = tuple(tensor.dims)
    if len(shape) > MAX_RANK or any(n < 0 for n in shape):
        raise InputError(f"`{name}` has an invalid shape: {shape}")
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except Exception:
        raise InputError(f"`{name}` is of an unknown type") from None
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        return _external(tensor, folder, dtype, shape, name)
    if tensor.HasField("raw_data") and np.dtype(dtype).itemsize and tensor.data_type not in _PACKED:
        data = tensor.raw_data
        if len(data) != math.prod(shape) * dtype.itemsize:
            raise InputError(f"`{name}` has {len(data)} bytes, which do not fit shape {shape}")
        return np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)
    return _listed(tensor, shape, name)


_PACKED = {21, 22, 23, 25, 26}  # types of which two numbers or more share a byte


def _listed(tensor: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return the numbers of a tensor that lists them one by one."""
    from onnx import numpy_helper

    fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
    listed = sum(len(getattr(tensor, field)) for field in fields) + len(tensor.raw_data)
    if math.prod(shape) > 4 * listed:  # several in a byte are more than there are entries
        raise InputError(f"`{name}` has the shape {shape}, and {listed} numbers")
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except Exception:
        raise InputError(f"`{name}` cannot be read: its data do not fill its shape {shape}") from None


def _external(tensor: Any, folder: Path, dtype: np.dtype[Any], shape: tuple[int, ...], name: str) -> Array:
    facts = {entry.key: entry.value for entry in tensor.external_data}
    location = facts.get("location", "")
    base = folder.resolve()
    shown = printable(location[:80])
    way_out = "external data are read from the model's own folder alone"
    if (
        not location
        or "\0" in location
        or Path(location).is_absolute()
        or ".." in location.replace("\\", "/").split("/")
    ):
        raise InputError(f"the data of `{name}` lie outside of the model's folder: `{shown}`", hint=way_out)
    try:
        path = (base / location).resolve()
        if not path.is_relative_to(base) or not path.is_file():
            raise InputError(f"the data of `{name}` are not in the model's folder: `{shown}`", hint=way_out)
        start = int(facts.get("offset", "0"))
        count = math.prod(shape) * dtype.itemsize
        with path.open("rb") as file:
            note_read(file)
            size = os.fstat(file.fileno()).st_size
            if start < 0 or start + count > size or int(facts.get("length", count)) != count:
                raise InputError(f"`{shown}` does not have the {count:,} bytes of `{name}`")
            if not count:
                return np.zeros(shape, dtype)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InputError(f"`{shown}` cannot be read: {printable(reason(error))}") from None
    return np.frombuffer(mapped, dtype.newbyteorder("<"), math.prod(shape), start).reshape(shape)
