"""Models made in tests, and what `onnx.reference` computes of them."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def tensor(name, array, dtype=np.float64):
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def weights(seed, **shapes):
    rng = np.random.default_rng(seed)
    return [tensor(name.replace("__", "."), 0.4 * rng.normal(size=shape)) for name, shape in shapes.items()]


def info(name, shape, kind=TensorProto.DOUBLE):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), opset=18, functions=(), domains=()):
    graph = helper.make_graph(nodes, "model", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, n) for domain, n in domains)]
    result = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    onnx.checker.check_model(result)
    return result


def saved(proto, folder):
    """Return the file of a model in a folder."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def reference(proto, values):
    return ReferenceEvaluator(proto).run(None, values)


def central_difference(proto, values, name, v, step=1e-5):
    """Return vᵀJ by an input, as `onnx.reference` has it."""
    x = values[name]
    grad = np.zeros_like(x)
    for key in np.ndindex(*x.shape):
        ends = []
        for side in (step, -step):
            moved = x.copy()
            moved[key] += side
            outputs = reference(proto, {**values, name: moved})
            ends.append(sum((w * y).sum() for w, y in zip(v, outputs, strict=True)))
        grad[key] = (ends[0] - ends[1]) / (2 * step)
    return grad
