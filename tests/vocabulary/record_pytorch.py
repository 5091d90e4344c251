"""Asks PyTorch for the values and gradients of all cases: `python record_pytorch.py` writes them to `pytorch.json`.

The cotangent of the k-th element of a result is 1 + k/4.
"""

import ast
import json
from pathlib import Path

from pytorch_cases import CASES

RECORDED = Path(__file__).with_name("pytorch.json")


class Lists(ast.NodeTransformer):
    """Turns lists into calls of `tensor`."""

    def visit_List(self, node):
        return ast.Call(ast.Name("tensor", ast.Load()), [node], [])


def names():
    """Return the functions that expressions call, by name."""
    import torch
    from torch.nn import functional

    def classes(loss):
        def call(scores, target, *rest, **more):
            return loss(scores, target if torch.is_tensor(target) else torch.tensor(target), *rest, **more)

        return call

    return {
        **vars(torch),
        **{name: f for name, f in vars(functional).items() if not name.startswith("_")},
        "ndtr": torch.special.ndtr,
        "log": lambda x, base: (
            torch.log(x) / torch.log(torch.as_tensor(float(base) if not torch.is_tensor(base) else base))
        ),
        "lerp": torch.lerp,
        "cross_entropy": classes(functional.cross_entropy),
        "nll_loss": classes(functional.nll_loss),
        "None": None,
    }


def ask(text, point, known):
    """Return PyTorch's value of an expression, and the gradients of what is not whole numbers."""
    import torch

    leaves = {name: torch.tensor(value) for name, value in point.items()}
    for x in leaves.values():
        x.requires_grad_(x.is_floating_point())
    tree = ast.fix_missing_locations(Lists().visit(ast.parse(text, mode="eval")))
    y = eval(compile(tree, text, "eval"), known | leaves)
    if y.requires_grad:
        y.backward(1 + torch.arange(y.numel()).reshape(y.shape) / 4)
    grads = {
        n: (torch.zeros_like(x) if x.grad is None else x.grad).tolist() for n, x in leaves.items() if x.requires_grad
    }
    return {"expression": text, "at": point, "value": y.tolist(), "grad": grads}


def main():
    import torch

    torch.set_default_dtype(torch.float64)
    known = names()
    rows = [json.dumps(ask(text, point, known)) for text, point in CASES]
    RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
