"""Scripts with one fault each, with an error or without, of the kinds that people ask about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.comparison import titled

HERE = Path(__file__).parent
ERRORS = HERE / "broken.json"  # what PyTorch says to each, recorded by record_fixes.py
FIXES = HERE / "fixes.json"  # the lines of the fixes that were tried under PyTorch, by record_fixes.py
HEAD = "import numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


class Silent(NamedTuple):
    """A script without an error whose gradients are not what was meant, and the sentence of its page.

    The lines that end with `  # fix: …` are those to change, and their fixes; what stands behind `# right: ` holds of
    the fixed script alone.
    """

    text: str
    said: str
    right: str

    @property
    def fixed(self) -> str:
        """The script with its fixes."""
        return re.sub(r"^( *).*  # fix: (.*)$", r"\1\2", self.text, flags=re.MULTILINE)

    def checked(self) -> list[str]:
        """Return the script, and the fixed one, each with an assertion that only the fixed one fulfils."""
        return [f"{text}assert {self.right}\n" for text in (self.text, self.fixed)]


def shown(changes: Sequence[Any]) -> list[str]:
    """Return changes of a script as lines with their numbers."""
    return [f"{c.first}-{c.last}: {line}" for c in changes for line in c.lines or ("(removed)",)]


def _parts(name: str, head: str = HEAD) -> dict[str, str]:
    return {title: head + text for title, text in titled(HERE / name).items()}


def _silent(text: str) -> Silent:
    code, said, right = re.split(r"^# (?:said|right): ", text, flags=re.MULTILINE)
    return Silent(code, " ".join(said.split()).replace(" # ", " "), right.strip())


BROKEN = _parts("broken.txt", head="")
# Each with the gradient that its fixed form has in the end.
DETACHED = {title.split("; ")[0]: (text, title.split("; ")[1]) for title, text in _parts("detached.txt").items()}
SLIPS = _parts("slips.txt") | _parts("mistakes.txt") | _parts("sizes.txt")
IN_WORDS = _parts("words.txt") | _parts("in_words.txt", head="")  # whose fix is no change of a line
SILENT = {title: _silent(text) for title, text in _parts("silent.txt").items()}
QUIET = _parts("quiet.txt")  # scripts that mean what they compute, though they look like those
