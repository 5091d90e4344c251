"""What `gradcli run` says of a script under PyTorch and without it, compared but for last digits.

`python tests/realtorch/alike.py [NAME]...` prints the differences of all scripts, or of some.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]
sys.path.append(str(Path(__file__).parents[1] / "pytorch"))

WAYS = ("--torch", "--no-torch")
WARM = "import torch\nx = torch.ones(2, requires_grad=True)\n(x**2).sum().backward()\nx.grad = 1"
NEAR = 1e-4  # of a number; or a hundredth of that, of the largest one of the text: what is left where terms cancel
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf\b|nan\b)")


def said(text: str, way: str, form: str) -> tuple[str, str]:
    """Return the pages of a script, which is run in a process of its own, and what the command says beside them."""
    from collection import forked

    def run() -> list[str]:
        from tests.conftest import Command

        warnings.resetwarnings()  # those of a script are no errors
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            Path("script.py").write_text(text, "utf-8")
            err = Command()("run", way, "-f", form, "--output", "pages", "script.py").err
            return [Path("pages").read_text("utf-8") if Path("pages").exists() else "", err]

    pages, err = forked(run)
    return pages, err


def seeded(text: str) -> str:
    """Return a script whose random numbers are the same in both, with the same lines."""
    return text if "manual_seed" in text else text.replace("import torch\n", "import torch; torch.manual_seed(0)\n", 1)


def unlike(text: str) -> Iterator[tuple[str, str]]:
    """Return the first lines in which the pages, the notes and the JSON of a script are not the same."""
    for form in ("table", "json"):
        under, without = (said(seeded(text), way, form) for way in WAYS)
        pages = [_objects(p) if form == "json" else _lines(p) for p, _ in (under, without)]
        if not same(" ".join(pages[0]), " ".join(pages[1])):
            yield form, first_difference(*pages)
        notes = [_lines(_notes(err)) for _, err in (under, without)]
        if form == "table" and not same(" ".join(notes[0]), " ".join(notes[1])):
            yield "notes", first_difference(*notes)


def first_difference(under: list[str], without: list[str]) -> str:
    """Return the first line under PyTorch that is another without it, and the other."""
    pairs = [*zip([*under, ""], [*without, ""], strict=False)]
    k, (a, b) = next(((k, p) for k, p in enumerate(pairs) if not same(*p)), (0, ("longer", "")))
    heading = next((line for line in under[k::-1] if line.startswith("─")), "")
    return f"{heading}\n    {a}\n    {b}"


def _objects(text: str) -> list[str]:
    """Return the lines of JSON objects."""
    objects = [json.dumps(json.loads(o), indent=1, ensure_ascii=False) for o in text.splitlines()]
    return [line for o in objects for line in o.splitlines()]


def _lines(text: str) -> list[str]:
    return [" ".join(re.sub("─+", "─", re.sub(r"0x[0-9a-f]+", "0x…", line)).split()) for line in text.splitlines()]


def _notes(err: str) -> str:
    """Return what the command says, without warnings of Python's, tracebacks, and the size of the pages."""
    warning = r"^(?:\S+:\d+: )?\w*Warning: .*\n(?:Consider .*\n)?(?:  .*\n| +\(Trig.*\n|\n)*"
    err = re.sub(rf"{warning}|^wrote .*\n", "", err, flags=re.MULTILINE)
    before, _, error = err.partition("Traceback (most recent call last):")
    told = re.search(r"^(?:why|fix|more): ", error, re.MULTILINE)
    return before + (error[told.start() :] if told is not None else "")


def told(err: str) -> str:
    """Return the cause, the fix and the topic of an error, in one line."""
    found = re.search(r"^(?:why|fix|more): .*?(?=^line \d+.* more time|^wrote |\Z)", err, re.MULTILINE | re.DOTALL)
    return " ".join(found[0].split()) if found is not None else ""


def listed(name: str) -> set[str]:
    """Return the names in a file, below lines that say why each differs."""
    reasons = Path(__file__).with_name(name).read_text("utf-8").strip().split("\n\n")
    return {line.strip() for block in reasons for line in block.splitlines()[1:]}


def same(a: str, b: str) -> bool:
    """Return whether two texts are the same but for the last digits of numbers.

    >>> same("|x| = 0.33333", "|x| = 0.33334"), same("x = 3", "x = 4"), same("[1, 2e-7]", "[1, 0]")
    (True, False, True)
    """
    if a == b:
        return True
    mine, theirs = _NUMBER.findall(a), _NUMBER.findall(b)
    if len(mine) != len(theirs) or _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    numbers = [(float(x), float(y)) for x, y in zip(mine, theirs, strict=True)]
    largest = max((abs(x) for pair in numbers for x in pair if math.isfinite(x)), default=0.0)
    rounded = NEAR * min(largest, 100) / 100
    return all(x == y or math.isnan(x + y) or abs(x - y) <= max(rounded, NEAR * abs(x)) for x, y in numbers)


def texts() -> dict[str, str]:
    """Return the samples that need no PyTorch, and half of the scripts that are recorded."""
    from collection import scripts

    import samples

    chosen = Path(__file__).with_name("compared.txt").read_text("utf-8").splitlines()[1:]
    recorded = scripts()
    return {**samples.samples(), **{name: recorded[name] for name in chosen}}


def main() -> None:
    """Print the differences."""
    import torch

    from tests.conftest import Command

    for way in WAYS:  # what all import is imported once
        Command()("run", way, "-c", WARM)
    torch.set_num_threads(1)
    chosen = {name: text for name, text in texts().items() if not sys.argv[1:] or name in sys.argv[1:]}
    found = {name: list(unlike(text)) for name, text in chosen.items()}
    for name, differences in found.items():
        for part, lines in differences:
            print(f"--- {name}: {part} {lines}")
    print(sum(map(bool, found.values())), "of", len(found), "differ")


if __name__ == "__main__":
    main()
