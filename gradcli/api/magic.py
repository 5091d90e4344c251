"""The cell magic `%%gradcli`: a cell of a notebook is the input of a command, whose page is the result of the cell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, repr=False)
class Result:
    """The output of a command, for a notebook to show; printed, it is the text."""

    text: str
    style: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        if self.style != "html":
            return None
        if self.text.startswith("<!doctype"):  # a document needs a frame
            look = 'width="100%" height="720" style="border:0" sandbox="allow-scripts"'
            return f'<iframe title="gradcli" {look} srcdoc="{escape(self.text)}"></iframe>'
        return self.text

    def _repr_markdown_(self) -> str | None:
        return self.text if self.style == "markdown" else None


def register(notebook: Any) -> None:
    """Add the magic to a notebook, the object that IPython passes to an extension."""
    notebook.register_magic_function(magic, "line_cell", "gradcli")


def magic(line: str, cell: str | None = None) -> Result | None:
    """Run a command with the cell as its input; notes and errors go to standard error.

    >>> print(magic('backward --at x=3 --only grad', "y = x**2"))
    x.grad = v·∂y/∂x = 1·(2*x) = 1·6 = 6
    """
    words = shlex.split(line)
    if cell is not None and words[:1] == ["run"]:
        if "ipykernel" in sys.modules and not _style(words):
            words += ["-f", "html"]
        words.append("-")  # the script
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", *words],
        input=cell or "",
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1"},
        check=False,
    )
    sys.stderr.write(done.stderr)
    return Result(done.stdout.rstrip("\n"), _style(words)) if done.stdout.strip() else None


def _style(words: list[str]) -> str:
    """Return the format in a command line; "" if there is none."""
    for k, word in enumerate(words):
        option, _, value = word.partition("=")
        if option in ("-f", "--format"):
            return value or "".join(words[k + 1 : k + 2])
    return ""
