"""Trains a small network on handwritten digits, and writes it as digits.onnx, and a digit as digit.npy.

    gradcli run --quiet make_digits.py     (or python, with PyTorch)

It needs scikit-learn, for the images of 8×8 pixels, and onnx.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
STEPS, BATCH = 400, 64

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
labels = torch.tensor(digits.target)

net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(8, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(STEPS):
    chosen = torch.randint(0, 1500, (BATCH,))
    loss = torch.nn.functional.cross_entropy(net(images[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    right = (net(images[1500:]).argmax(1) == labels[1500:]).float().mean()
print(f"right: {right.item():.1%} of the digits that it has not seen")

# The same network as an ONNX model, with the names that PyTorch's exporter gives.
LAYERS = ["conv1", "conv2", "fc"]
weights = [p.detach().numpy() for p in net.parameters()]
names = [f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
nodes = []
result = "image"
for layer in LAYERS[:2]:
    for op, inputs, options in [
        ("Conv", [f"{layer}.weight", f"{layer}.bias"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("Relu", [], {}),
        ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ]:
        output = f"/{layer}/{op}_output_0"
        nodes.append(helper.make_node(op, [result, *inputs], [output], name=f"/{layer}/{op}", **options))
        result = output
nodes.append(helper.make_node("Flatten", [result], ["/Flatten_output_0"], name="/Flatten"))
nodes.append(helper.make_node("Gemm", ["/Flatten_output_0", "fc.weight", "fc.bias"], ["scores"], name="/fc/Gemm", transB=1))
model = helper.make_model(
    helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(w, name) for w, name in zip(weights, names)],
    ),
    opset_imports=[helper.make_opsetid("", 18)],
    ir_version=8,
)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, HERE / "digits.onnx")
np.save(HERE / "digit.npy", images[1503].reshape(1, 1, 8, 8).numpy())
print(f"digit.npy is a {labels[1503].item()}")
