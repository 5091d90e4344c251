"""The files of tables in this room: their lines, their paragraphs, and the names of PyTorch."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def lines(file: str) -> list[str]:
    """Return the lines of a file without comments; an indented line continues the one before.

    >>> lines("missing.txt")[:2]
    ['ConvTranspose3d: ConvTranspose2d', 'as_strided: view']
    """
    return [line for line in re.split(r"\n+(?! )", _text(file)) if line[0] != "#"]


def paragraphs(file: str) -> list[str]:
    """Return the paragraphs of a file.

    >>> paragraphs("nn/modules.txt")[0].partition(" ")[0]
    '#'
    """
    return _text(file).split("\n\n")


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """Return the names of PyTorch 2.13 by module, as recorded by tests/pytorch/record_names.py."""
    return {module.rstrip(":"): frozenset(names) for module, *names in map(str.split, paragraphs("names.txt"))}


def _text(file: str) -> str:
    return (Path(__file__).parent / file).read_text("utf-8").strip()
