"""Random programs, and what PyTorch prints for them, recorded in random.json by record_random.py."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).parent / "random.json"
HEAD = "import torch\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"


def recorded() -> list[dict[str, str]]:
    """Return each program with what it printed, the error that it ended with, and warnings."""
    return json.loads(RECORDED.read_text("utf-8"))
