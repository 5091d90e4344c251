"""Scripts with one fault each: those that cut a tensor off from the graph, and other slips."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
HEAD = "import numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def _parts(name: str) -> dict[str, str]:
    found = re.split(r"^# --- (.+)\n", (HERE / name).read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {title: HEAD + text for title, text in zip(found[::2], found[1::2], strict=True)}


# Each with the gradient that its fixed form has in the end.
DETACHED = {title.split("; ")[0]: (text, title.split("; ")[1]) for title, text in _parts("detached.txt").items()}
SLIPS = _parts("slips.txt") | _parts("mistakes.txt")
