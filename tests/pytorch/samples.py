"""The scripts in samples/, and what PyTorch prints for them, recorded in samples.json by record_outputs.py."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "samples"
RECORDED = HERE / "samples.json"


def samples() -> dict[str, str]:
    """Return the text of every sample by its name, but for those that only PyTorch itself runs."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
    return {name: text for name, text in texts.items() if "--torch" not in text.partition("\n")[0]}


def recorded() -> dict[str, dict[str, str]]:
    """Return what PyTorch printed for each sample, and the error that it ended with."""
    return json.loads(RECORDED.read_text("utf-8"))
