"""Operators that the specification defines by simpler ones: `Attention`, losses, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.errors import InputError
from gradcli.graph.node import Node
from gradcli.onnx.values import Value


def function_body(node: Any, domain: str, opset: int, inputs: Sequence[Value | None]) -> Any:
    """Return the function that defines an operator, with the defaults of its attributes; None if there is none."""
    from onnx import FunctionProto, defs

    try:
        schema = defs.get_schema(node.op_type, opset, domain)
    except Exception:  # SchemaError has no public name in all versions
        return None
    if schema.has_function:
        body = FunctionProto()
        body.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        types = [_type(v) for v in inputs]
        text = schema.get_context_dependent_function(node.SerializeToString(), types)
        if not text:
            raise InputError("the specification does not expand it for these inputs")
        body = FunctionProto.FromString(text)
    else:
        return None
    known = {a.name for a in body.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in known and attribute.default_value.name:
            body.attribute_proto.append(attribute.default_value)
    return body


def _type(value: Value | None) -> bytes:
    """Return the type of a value, as a protobuf."""
    from onnx import TensorProto, TypeProto, helper

    if value is None:
        return bytes(TypeProto().SerializeToString())
    if isinstance(value, Node):
        kind = TensorProto.BOOL if value.dtype == "bool" else TensorProto.FLOAT
    else:
        kind = TensorProto.FLOAT if value.dtype.kind == "f" else helper.np_dtype_to_tensor_dtype(value.dtype)
    return bytes(helper.make_tensor_type_proto(kind, list(value.shape)).SerializeToString())
