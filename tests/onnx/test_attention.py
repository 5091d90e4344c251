"""Rows of attention in which everything is masked: 0, and no gradient goes through them, as in PyTorch."""

import numpy as np
from conftest import each

from tests.onnx.builder import TensorProto, helper, info, model, node, saved, tensor

# What PyTorch 2.13 gives for `scaled_dot_product_attention(q, k, v, mask)` in float64, with v = [[1, 2], [3, 4]].
AT = "q=[[[[1,0.5],[-1,2]]]],k=[[[[0.5,1],[1,-1],[2,0]]]],v=[[[[1,2],[3,4],[5,7]]]]"
VALUE = [3.6790461973066275, 5.348807746633284, 0, 0]
GRADIENTS = {
    "q": [3.28437052744732, -2.1895803516315455, 0, 0],
    "k": [-2.1895803516315455, -1.0947901758157728, 0, 0, 2.1895803516315464, 1.0947901758157732],
    "v": [0.3302384506733431, 0.6604769013466862, 0, 0, 0.6697615493266569, 1.3395230986533138],
}
MASK = np.array([[True, False, True], [False, False, False]])
BIAS = np.where(MASK, 0, -np.inf)
SCORES = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s"), node("Div", "s root", "t")]
MASKED = [*SCORES, node("Add", "t bias", "masked"), node("Softmax", "masked", "p", axis=-1)]

WRITTEN = {  # by the specification's function, and as exporters write it: what is nan, or what is masked, is 0
    "Attention": [node("Attention", "q k v mask", "y")],
    "IsNaN": [*MASKED, node("IsNaN", "p", "bad"), node("Where", "bad zero p", "safe"), node("MatMul", "safe v", "y")],
    "mask": [*MASKED, node("Where", "none zero p", "safe"), node("MatMul", "safe v", "y")],
    "where it is kept": [
        *MASKED, node("Not", "none", "some"), node("Where", "some p zero", "safe"), node("MatMul", "safe v", "y"),
    ],
}  # fmt: skip


@each("written", WRITTEN)
def test_rows_in_which_all_is_masked(cli, tmp_path, written):
    held = [
        helper.make_tensor("mask", TensorProto.BOOL, [2, 3], MASK.reshape(-1).tolist()),
        helper.make_tensor("none", TensorProto.BOOL, [2, 1], [False, True]),
        tensor("bias", BIAS),
        tensor("zero", 0.0),
        tensor("root", np.sqrt(2)),
    ]
    inputs = [info("q", [1, 1, 2, 2]), info("k", [1, 1, 3, 2]), info("v", [1, 1, 3, 2])]
    proto = model(WRITTEN[written], inputs, [info("y", [1, 1, 2, 2])], held, opset=23)
    found = cli.json("backward", "-F", saved(proto, tmp_path), "--at", AT, "--v", "[[[[1,2],[3,4]]]]")
    np.testing.assert_allclose(np.ravel(found["value"]["y"]), VALUE, rtol=1e-7)
    for name, wanted in GRADIENTS.items():
        np.testing.assert_allclose(np.ravel(found["grad"][name]), wanted, rtol=1e-7, err_msg=name)
