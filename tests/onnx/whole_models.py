"""Models of the kinds that people train, with random weights: each function returns a model and its inputs' shapes."""

import numpy as np

from tests.onnx.builder import helper, info, model, node, numpy_helper, tensor, weights


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def made(nodes, inputs, outputs, initializers, **options):
    """Return a model of real inputs of these shapes, and the shapes."""
    declared = [info(name, shape) for name, shape in inputs.items()]
    return model(
        nodes, declared, [info(name, shape) for name, shape in outputs.items()], initializers, **options
    ), inputs


def cnn():
    nodes = [
        node("Conv", "x conv.weight conv.bias", "/conv/out", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "/conv/out", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("Gemm", "f fc.weight fc.bias", "g", transB=1),
        node("Softmax", "g", "probs"),
    ]
    own = weights(0, conv__weight=(2, 1, 3, 3), conv__bias=(2,), fc__weight=(3, 8), fc__bias=(3,))
    return model(nodes, [info("x", ["N", 1, 4, 4])], [info("probs", ["N", 3])], own), {"x": (2, 1, 4, 4)}


def mlp():
    nodes = [node("Gemm", "x w1 b1", "h"), node("Tanh", "h", "a"), node("Gemm", "a w2 b2", "y")]
    own = weights(1, w1=(2, 3), b1=(3,), w2=(3, 1), b2=(1,))
    return made(nodes, {"x": (4, 2)}, {"y": (4, 1)}, own)


def _normalised(source, target, k):
    names = f"{source} s{k} o{k} m{k} v{k}"
    return node("BatchNormalization", names, target, epsilon=1e-3)


def _statistics(k, n):
    rng = np.random.default_rng(k)
    columns = (("s", 0.5, 1.5), ("o", -1, 1), ("m", -1, 1), ("v", 0.5, 2))
    return [tensor(f"{name}{k}", rng.uniform(low, high, n)) for name, low, high in columns]


def resnet_block():
    nodes = [
        node("Conv", "x w1", "c1", pads=[1, 1, 1, 1]), _normalised("c1", "n1", 1), node("Relu", "n1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1]), _normalised("c2", "n2", 2), node("Add", "n2 x", "sum"),
        node("Relu", "sum", "r2"), node("GlobalAveragePool", "r2", "y"),
    ]  # fmt: skip
    own = weights(2, w1=(3, 3, 3, 3), w2=(3, 3, 3, 3)) + _statistics(1, 3) + _statistics(2, 3)
    return made(nodes, {"x": (1, 3, 4, 4)}, {"y": (1, 3, 1, 1)}, own)


def unet_block():
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]),
        node("LeakyRelu", "c1", "r1", alpha=0.1),
        node("AveragePool", "r1", "down", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "down w2 b2", "c2", pads=[1, 1, 1, 1]),
        node("Elu", "c2", "r2"),
        node("ConvTranspose", "r2 w3 b3", "up", strides=[2, 2]),
        node("Concat", "up r1", "both", axis=1),
        node("Conv", "both w4 b4", "y"),
    ]
    shapes = {"w1": (2, 1, 3, 3), "b1": (2,), "w2": (3, 2, 3, 3), "b2": (3,)}
    shapes |= {"w3": (3, 2, 2, 2), "b3": (2,), "w4": (1, 4, 1, 1), "b4": (1,)}
    return made(nodes, {"x": (1, 1, 4, 4)}, {"y": (1, 1, 4, 4)}, weights(3, **shapes))


def transformer_encoder():
    """Return a layer of two heads, as PyTorch's exporter writes it, with sizes that come from `Shape`."""
    nodes = [
        node("LayerNormalization", "x g1 h1", "n1", axis=-1),
        node("Shape", "n1", "shape"),
        node("Gather", "shape one", "length", axis=0),
        node("Concat", "minus_one length two_three", "split", axis=0),
        *(node("MatMul", f"n1 w{k}", f"{k}0") for k in "qkv"),
        *(node("Reshape", f"{k}0 split", f"{k}1") for k in "qkv"),
        *(node("Transpose", f"{k}1", f"{k}2", perm=[0, 2, 1, 3]) for k in "qv"),
        node("Transpose", "k1", "k2", perm=[0, 2, 3, 1]),
        node("MatMul", "q2 k2", "s0"),
        node("Div", "s0 root", "s1"),
        node("Softmax", "s1", "p", axis=-1),
        node("MatMul", "p v2", "a0"),
        node("Transpose", "a0", "a1", perm=[0, 2, 1, 3]),
        node("Reshape", "a1 shape", "a2"),
        node("MatMul", "a2 wo", "a3"),
        node("Add", "a3 x", "r"),
        node("LayerNormalization", "r g2 h2", "n2", axis=-1),
        node("MatMul", "n2 w1", "f0"),
        node("Gelu", "f0", "f1"),
        node("MatMul", "f1 w2", "f2"),
        node("Add", "f2 r", "y"),
    ]
    own = weights(
        4, wq=(6, 6), wk=(6, 6), wv=(6, 6), wo=(6, 6), w1=(6, 8), w2=(8, 6), g1=(6,), h1=(6,), g2=(6,), h2=(6,)
    )
    own += [ints("one", 1), ints("minus_one", -1), ints("two_three", 2, 3), tensor("root", 3**0.5)]
    return made(nodes, {"x": (2, 3, 6)}, {"y": (2, 3, 6)}, own, opset=20)


def causal_attention():
    """Return attention whose mask is made of `Range`, `Expand`, `ConstantOfShape` and `Where`."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n", axis=0),
        node("Range", "zero n one", "steps"),
        node("Unsqueeze", "steps axis1", "row"),
        node("Unsqueeze", "steps axis0", "column"),
        node("Less", "row column", "later"),
        node("ConstantOfShape", "nn", "none", value=tensor("v", [-20])),
        node("MatMul", "x wq", "q"),
        node("MatMul", "x wk", "k"),
        node("Transpose", "k", "kT", perm=[1, 0]),
        node("MatMul", "q kT", "s"),
        node("Where", "later none s", "m"),
        node("LogSoftmax", "m", "l", axis=-1),
        node("Exp", "l", "p"),
        node("MatMul", "p x", "y"),
    ]
    own = [*weights(5, wq=(2, 3), wk=(2, 3)), ints("axis0", 0), ints("axis1", 1), ints("nn", 4, 4)]
    own += [numpy_helper.from_array(np.int64(k), name) for k, name in enumerate(("zero", "one"))]
    return made(nodes, {"x": (4, 2)}, {"y": (4, 2)}, own)


def _recurrent(op, gates, outputs):
    nodes = [node(op, "x w r b", outputs, hidden_size=3), node("Squeeze", outputs.split()[0] + " axis", "z")]
    nodes.append(node("ReduceSum", "z", "y", keepdims=0))
    own = weights(6, w=(1, 3 * gates, 2), r=(1, 3 * gates, 3), b=(1, 6 * gates))
    return made(nodes, {"x": (4, 1, 2)}, {"y": ()}, [*own, ints("axis", 1)])


def lstm():
    return _recurrent("LSTM", 4, "h hn cn")


def gru():
    return _recurrent("GRU", 3, "h hn")


def rnn():
    return _recurrent("RNN", 1, "h hn")


def graph_network():
    """Return two rounds of messages along edges, added up at their targets by `ScatterND`."""
    nodes, h = [], "x"
    for k in "12":
        nodes += [
            node("Gather", f"{h} source", f"m{k}", axis=0),
            node("MatMul", f"m{k} w{k}", f"t{k}"),
            node("ScatterND", f"zeros target t{k}", f"a{k}", reduction="add"),
            node("MatMul", f"{h} u{k}", f"s{k}"),
            node("Add", f"a{k} s{k}", f"z{k}"),
            node("Tanh", f"z{k}", f"h{k}"),
        ]
        h = f"h{k}"
    nodes.append(node("ReduceMean", "h2 axis", "y", keepdims=0))
    own = [*weights(7, w1=(2, 2), u1=(2, 2), w2=(2, 2), u2=(2, 2)), tensor("zeros", np.zeros((4, 2)))]
    own += [ints("source", 0, 1, 1, 2, 3), ints("axis", 0)]
    own.append(numpy_helper.from_array(np.array([[1], [0], [2], [3], [2]], np.int64), "target"))
    return made(nodes, {"x": (4, 2)}, {"y": (2,)}, own)


def mobile_block():
    """Return a block of grouped and dilated convolutions with hard activations and a squeeze of channels."""
    nodes = [
        node("Conv", "x w1 b1", "c1"),
        node("HardSwish", "c1", "r1"),
        node("Conv", "r1 w2 b2", "c2", group=4, dilations=[2, 2], pads=[2, 2, 2, 2]),
        node("ReduceMean", "c2 axes", "m", keepdims=1),
        node("HardSigmoid", "m", "gate"),
        node("Mul", "c2 gate", "g"),
        node("Clip", "g low high", "r2"),
        node("Conv", "r2 w3 b3", "y", strides=[2, 2]),
    ]
    own = weights(8, w1=(4, 2, 1, 1), b1=(4,), w2=(4, 1, 3, 3), b2=(4,), w3=(2, 4, 1, 1), b3=(2,))
    own += [ints("axes", 2, 3), tensor("low", -0.3), tensor("high", 0.6)]
    return made(nodes, {"x": (1, 2, 4, 4)}, {"y": (1, 2, 2, 2)}, own)


def temporal_convolutions():
    nodes, h = [], "x"
    for k in (1, 2):
        nodes += [
            node("Pad", f"{h} pads{k}", f"p{k}", mode="constant"),
            node("Conv", f"p{k} w{k} b{k}", f"c{k}", dilations=[k]),
            node("Sigmoid", f"c{k}", f"s{k}"),
            node("Tanh", f"c{k}", f"t{k}"),
            node("Mul", f"s{k} t{k}", f"h{k}"),
        ]
        h = f"h{k}"
    own = [*weights(9, w1=(2, 1, 2), b1=(2,), w2=(2, 2, 2), b2=(2,))]
    own += [ints(f"pads{k}", 0, 0, k, 0, 0, 0) for k in (1, 2)]
    return made(nodes, {"x": (1, 1, 6)}, {"h2": (1, 2, 6)}, own)


def volumes():
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 0, 0, 1, 0, 0]),
        node("Softplus", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 1, 2], strides=[1, 1, 1], ceil_mode=1),
        node("LpPool", "p", "y", kernel_shape=[2, 2, 1], p=2),
    ]
    return made(nodes, {"x": (1, 1, 3, 3, 3)}, {"y": (1, 2, 3, 1, 1)}, weights(10, w=(2, 1, 2, 2, 2), b=(2,)))


def decoder():
    nodes = [
        node("Gemm", "z w1 b1", "h", alpha=0.5, beta=2.0),
        node("Reshape", "h square", "s"),
        node("ConvTranspose", "s w2", "u", strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1]),
        node("Sigmoid", "u", "y"),
    ]
    own = [*weights(11, w1=(3, 8), b1=(8,), w2=(2, 1, 3, 3)), ints("square", 0, 2, 2, 2)]
    return made(nodes, {"z": (1, 3)}, {"y": (1, 1, 4, 4)}, own)


def group_normalised():
    nodes = [
        node("GroupNormalization", "x s o", "n", num_groups=2, epsilon=1e-3),
        node("Mish", "n", "a"),
        node("InstanceNormalization", "a s o", "i", epsilon=1e-3),
        node("PRelu", "i slope", "y"),
    ]
    own = weights(12, s=(4,), o=(4,), slope=(4, 1, 1))
    return made(nodes, {"x": (1, 4, 2, 2)}, {"y": (1, 4, 2, 2)}, own, opset=21)


def super_resolution():
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("DepthToSpace", "c", "d", blocksize=2, mode="CRD"),
        node("Resize", "x none scales", "r", mode="linear", coordinate_transformation_mode="half_pixel"),
        node("Add", "d r", "y"),
    ]
    nodes[2].input[1] = ""
    own = [*weights(13, w=(4, 1, 3, 3), b=(4,))]
    own.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"))
    return made(nodes, {"x": (1, 1, 3, 3)}, {"y": (1, 1, 6, 6)}, own)


def attention_by_einsum():
    nodes = [
        node("Einsum", "x w", "q", equation="bti,hij->bhtj"),
        node("Einsum", "q q", "s", equation="bhtj,bhuj->bhtu"),
        node("Softmax", "s", "p", axis=-1),
        node("Einsum", "p q", "a", equation="bhtu,bhuj->bthj"),
        node("ReduceLogSumExp", "a axes", "y", keepdims=0),
    ]
    return made(nodes, {"x": (1, 3, 2)}, {"y": (1, 3)}, [*weights(14, w=(2, 2, 2)), ints("axes", 2, 3)])


def beam():
    """Return the largest scores, weighted by elements of another input, normalised over channels."""
    nodes = [
        node("TopK", "x k", "best index", axis=1),
        node("GatherElements", "other chosen", "picked", axis=1),
        node("Mul", "best picked", "m"),
        node("Unsqueeze", "m axes", "u"),
        node("LRN", "u", "y", size=1),
    ]
    own = [ints("k", 2), ints("axes", 2, 3)]
    own.append(numpy_helper.from_array(np.array([[3, 1], [0, 0]], np.int64), "chosen"))
    return made(nodes, {"x": (2, 4), "other": (2, 4)}, {"y": (2, 2, 1, 1)}, own)


def functions_of_its_own():
    body = [node("Mul", "a b", "ab"), node("Add", "ab b", "c")]
    function = helper.make_function("own", "Fused", ["a", "b"], ["c"], body, [helper.make_opsetid("", 18)])
    nodes = [helper.make_node("Fused", ["x", "w"], ["h"], domain="own"), node("Softsign", "h", "s")]
    nodes.append(helper.make_node("Fused", ["s", "x"], ["y"], domain="own"))
    options = {"functions": [function], "domains": [("own", 1)]}
    return made(nodes, {"x": (3,)}, {"y": (3,)}, weights(15, w=(3,)), **options)


def rounds():
    """Return a loop of three rounds whose condition is constant, and a branch that is known."""
    body = helper.make_graph(
        [node("Identity", "go", "goes"), node("MatMul", "h w", "z"), node("Tanh", "z", "next")],
        "round",
        [info("i", [], 7), info("go", [], 9), info("h", [1, 2])],
        [info("goes", [], 9), info("next", [1, 2])],
    )
    branches = {
        f"{name}_branch": helper.make_graph([node(op, "last", "out")], name, [], [info("out", [1, 2])])
        for name, op in (("then", "Exp"), ("else", "Neg"))
    }
    nodes = [node("Loop", "three yes x", "last", body=body), node("If", "yes", "y", **branches)]
    own = [*weights(16, w=(2, 2)), numpy_helper.from_array(np.int64(3), "three")]
    own.append(numpy_helper.from_array(np.array(True), "yes"))
    return made(nodes, {"x": (1, 2)}, {"y": (1, 2)}, own)


MODELS = {
    build.__name__: build
    for build in (
        cnn, mlp, resnet_block, unet_block, transformer_encoder, causal_attention, lstm, gru, rnn, graph_network,
        mobile_block, temporal_convolutions, volumes, decoder, group_normalised, super_resolution, attention_by_einsum,
        beam, functions_of_its_own, rounds,
    )
}  # fmt: skip
