"""The scripts that gradcli is compared with PyTorch on: many in a file, parted by lines `# --- name`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.comparison import titled

HERE = Path(__file__).parent
RECORDED = HERE / "outputs.json"
PRELUDE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
def told(*calls):
    for call in calls:
        try: print(call())
        except Exception as error: print(type(error).__name__, error)
"""


def scripts() -> dict[str, str]:
    """Return every script by its name: that of its file, and its own."""
    files = {path.stem: titled(path) for path in sorted((HERE / "scripts").glob("*.py"))}
    return {f"{stem}: {name}": PRELUDE + text for stem, texts in files.items() for name, text in texts.items()}


def recorded() -> dict[str, dict[str, str]]:
    """Return what PyTorch printed for each script, and the error that it ended with."""
    return json.loads(RECORDED.read_text("utf-8"))


def without_addresses(text: str) -> str:
    """Return what was printed without addresses in memory, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x…", text)


def first_lines(warnings: list[str]) -> str:
    """Return warnings without what depends on files: what triggered them, and tracebacks."""
    found = [w.partition(" (Triggered internally")[0].partition("\n")[0].strip() for w in warnings]
    return "\n".join(dict.fromkeys(w for w in found if "torch.jit.script" not in w))  # of an import of PyTorch's own


def forked(function: Callable[[], Any]) -> Any:
    """Return what a function returns in a process of its own."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        with os.fdopen(writer, "w") as pipe, open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            json.dump(function(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)
