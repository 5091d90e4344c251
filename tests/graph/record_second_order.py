"""Asks PyTorch for Hessians, H·u and J·u: `python record_second_order.py` writes them to `second_order.json`.

Each row has its question: a scalar of x and z that both read, their values, and whether these lie on a corner.  The
tangent of the k-th number of all inputs is 1 + k/4.  H is `torch.autograd.functional.hessian`, H·u the forward
derivative of the gradient and J·u forward-mode AD, both `torch.func.jvp`; `functional.hvp` is recorded beside them.
"""

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("second_order.json")


def functions():
    import torch
    from torch.nn import functional

    return {
        **vars(torch),
        **{name: f for name, f in vars(functional).items() if not name.startswith("_")},
        "inv": torch.linalg.inv,
        "solve": torch.linalg.solve,
        "norm": torch.linalg.vector_norm,
        "softmax": torch.softmax,
        "log_softmax": torch.log_softmax,
        "sort": lambda x: torch.sort(x)[0],
    }


def ask(row, known):
    import torch

    text = row["expression"]
    point = [torch.tensor(values) for values in row["inputs"]]
    sizes = [p.numel() for p in point]

    def f(*inputs):
        return eval(text, known | dict(zip("xz", inputs, strict=True)))

    def flat(inputs):
        parts = torch.split(inputs, sizes)
        return f(*(part.reshape(p.shape) for part, p in zip(parts, point, strict=True)))

    whole = torch.cat([p.reshape(-1) for p in point])
    u = 1 + torch.arange(len(whole)) / 4
    value, tangent = torch.func.jvp(flat, (whole,), (u,))
    forward = torch.func.jvp(torch.func.grad(flat), (whole,), (u,))[1]
    hessian = torch.autograd.functional.hessian(flat, whole)
    hvp = torch.autograd.functional.hvp(flat, whole, u)[1]
    return {
        **{key: row[key] for key in ("expression", "inputs", "corner")},
        "value": value.item(),
        "jvp": tangent.item(),
        "hessian": hessian.tolist(),
        "hvp": hvp.tolist(),
        "forward_over_reverse": forward.tolist(),
    }


def main():
    import torch

    torch.set_default_dtype(torch.float64)
    known = functions()
    rows = [json.dumps(ask(row, known)) for row in json.loads(RECORDED.read_text("utf-8"))]
    RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
