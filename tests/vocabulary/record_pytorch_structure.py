"""Asks PyTorch for the numbers of `structure_cases.txt`, and writes them into `pytorch_structure.json`.

Run it where torch is installed: `python tests/vocabulary/record_pytorch_structure.py`.  For each case it records the
value; the gradients where the cotangent is 1, 2, 3, …; and the second derivatives: the gradients, by x, y and z, of the
sum of these gradients' elements, times 1, 2, 3, …
"""

import json
import warnings
from pathlib import Path

import torch
import torch.nn.functional

HERE = Path(__file__).parent
NAMES = {
    **vars(torch),
    **vars(torch.nn.functional),
    "torch": torch,
    "solve": torch.linalg.solve,
    "inv": torch.linalg.inv,
    "cross": torch.linalg.cross,
}


def cases():
    """Yield an expression, PyTorch's where that reads otherwise, and the values of x, y and z."""
    for line in HERE.joinpath("structure_cases.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            ours, theirs, *values = line.split(" | ")
            yield ours, theirs or ours, *map(json.loads, values)


def counting(x):
    return torch.arange(1.0, x.numel() + 1).reshape(x.shape)


def recorded(ours, theirs, *inputs):
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in inputs]
    y = eval(theirs, NAMES | dict(zip("xyz", leaves, strict=False)))
    # With create_graph, the gradient of `det` is right at singular matrices, too; without, it is 0 there.
    grads = torch.autograd.grad(y, leaves, counting(y), create_graph=True)
    total = sum((g * counting(g)).sum() for g in grads)
    second = [None] * len(leaves)
    if total.requires_grad:
        second = torch.autograd.grad(total, leaves, allow_unused=True)
    zeros = [torch.zeros_like(x) if s is None else s for x, s in zip(leaves, second, strict=True)]
    return {
        "expression": ours,
        "inputs": inputs,
        "value": y.tolist(),
        "grads": [g.tolist() for g in grads],
        "second": [s.tolist() for s in zeros],
    }


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    rows = [json.dumps(recorded(*case)) for case in cases()]
    text = f'{{"torch": "{torch.__version__}", "cases": [\n' + ",\n".join(rows) + "\n]}\n"
    HERE.joinpath("pytorch_structure.json").write_text(text)
