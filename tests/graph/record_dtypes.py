"""Ask PyTorch which dtype results have: `python tests/graph/record_dtypes.py`, for each operation of `dtypes.json`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

RECORDED = Path(__file__).with_name("dtypes.json")
TORCH = {"mod": torch.remainder, "div": torch.true_divide, "lt": torch.lt, "eq": torch.eq}
VALUES = [[1, 2, 3], [2, 1, 3]]  # as in the test


def told(text: str) -> list[object]:
    """Return the dtype and the numbers of an operation on arrays of some dtypes, or on an array and a number."""
    op, *arguments = text.split()
    arrays = [
        torch.tensor(values).to(getattr(torch, word))
        if hasattr(torch, word)
        else float(word)
        if "." in word
        else int(word)
        for word, values in zip(arguments, VALUES, strict=False)
    ]
    value = (TORCH.get(op) or getattr(torch, op))(*arrays)
    numbers = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in value.reshape(-1).tolist()]
    return [str(value.dtype).removeprefix("torch."), numbers]


if __name__ == "__main__":
    rows = (f"{json.dumps(text)}: {json.dumps(told(text))}" for text in json.loads(RECORDED.read_text("utf-8")))
    RECORDED.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
