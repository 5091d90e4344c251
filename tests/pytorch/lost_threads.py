"""Scripts in which the thread from a result back to its leaves is lost, with the gradient that is to be there."""

from __future__ import annotations

import re
from pathlib import Path

HEAD = "import numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def lost() -> dict[str, tuple[str, str]]:
    """Return the scripts by name, each with the gradient that its mended form has in the end."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    parts = re.split(r"^# --- (.+); (.+)\n", text, flags=re.MULTILINE)[1:]
    return {n: (HEAD + own, gradient) for n, gradient, own in zip(*[iter(parts)] * 3, strict=True)}


LOST = lost()
