"""Record the bits of PyTorch's results, in one thread: `python tests/kernels/record_digits.py`.

Those of MKL's products depend on the processor: on Intel's it is their own cases that are recorded, the others stay.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import torch
from digit_cases import CASES, HEAD, ON_INTEL

from gradcli.kernels.processor import IS_INTEL

RECORDED = Path(__file__).with_name("digits.json")


def printed(code: str) -> str:
    """Return what a script prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "case", "exec"), {"__name__": "__main__"})
    return out.getvalue()


if __name__ == "__main__":
    torch.set_num_threads(1)
    cases = ON_INTEL if IS_INTEL else CASES
    found = json.loads(RECORDED.read_text()) | {n: printed(HEAD + code).splitlines() for n, code in cases.items()}
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
