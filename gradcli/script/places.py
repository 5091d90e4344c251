"""Places in a script, in words: its lines, and those of the files that it imports."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from pathlib import Path

from gradcli.pytorch.session import Script, source_line
from gradcli.wrapping import in_words


def code_at(script: Script, line: int) -> str:
    """Return a line of the script, or of the file that the line knows, without the space around it."""
    file = getattr(line, "file", "") or script.name
    return source_line(script, line) if file == script.name else linecache.getline(file, line).strip()


def where(script: Script, line: int) -> str:
    """Return a place in words: line 5, or line 5 of helper.py."""
    file = getattr(line, "file", "") or script.name
    return f"line {int(line)}" + ("" if file == script.name else f" of {Path(file).name}")


def lines_in_words(script: Script, lines: Iterable[int]) -> str:
    """Return several places in words: lines 5 and 7."""
    own = sorted({(getattr(line, "file", ""), int(line)): line for line in lines}.items())
    if len(own) == 1 or len({file for (file, _), _ in own}) > 1:
        return " and ".join(where(script, line) for _, line in own)
    numbers = [str(number) for (_, number), _ in own]
    if len(numbers) > 2 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
        found = f"lines {numbers[0]} to {numbers[-1]}"
    else:
        found = f"lines {in_words(numbers)}"
    return found + where(script, own[0][1]).partition(str(int(own[0][1])))[2]
