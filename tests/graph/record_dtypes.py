"""Ask PyTorch which dtype results have: `python tests/graph/record_dtypes.py > tests/graph/dtypes.json`."""

from __future__ import annotations

import json
import math

import torch
from dtype_cases import BINARY, DTYPES, NUMBERS, REDUCTIONS, REFUSED, UNARY, VALUES

TORCH = {"mod": torch.remainder, "div": torch.true_divide, "lt": torch.lt, "eq": torch.eq}


def told(value: torch.Tensor) -> list[object]:
    numbers = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in value.reshape(-1).tolist()]
    return [str(value.dtype).removeprefix("torch."), numbers]


def tensor(dtype: str, values: list[float]) -> torch.Tensor:
    return torch.tensor(values).to(getattr(torch, dtype))


def main() -> None:
    found: dict[str, list[object]] = {}
    for a in DTYPES:
        x = tensor(a, VALUES[0])
        for op in UNARY:
            if f"{op} {a}" not in REFUSED:
                found[f"{op} {a}"] = told(getattr(torch, op)(x))
        for op in REDUCTIONS:
            found[f"{op} {a}"] = told(getattr(torch, op)(x))
        for op in BINARY:
            function = TORCH.get(op) or getattr(torch, op)
            for b in DTYPES:
                if f"{op} {a} {b}" not in REFUSED:
                    found[f"{op} {a} {b}"] = told(function(x, tensor(b, VALUES[1])))
            for number in NUMBERS:
                if not (op == "maximum" or a == "bool"):
                    found[f"{op} {a} {number}"] = told(function(x, number))
    print("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}")


if __name__ == "__main__":
    main()
