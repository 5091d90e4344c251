"""The examples in the README and the samples: where they stand, how they are run, and when two outputs are the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SAMPLES = ROOT / "samples"
EXPECTED = Path(__file__).parent / "expected"

_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<language>\w+)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
_LONG_NUMBER = re.compile(r"\d+\.\d{6,}(?:e[+-]\d+)?")


@dataclass(frozen=True)
class Printed:
    """What a command printed, standard output first, and how it ended."""

    text: str
    status: int


@dataclass(frozen=True)
class Example:
    """A command with the output that a document shows below it."""

    command: str
    shown: str


@dataclass(frozen=True)
class Script:
    """A run of a sample script; what it prints stands in `expected/NAME.out`."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    status: int = 0

    @property
    def command(self) -> list[str]:
        return ["sh", str(SAMPLES / self.script), *self.arguments]

    @property
    def expected(self) -> Path:
        return EXPECTED / f"{self.name}.out"


_HAND = ("x*sin(a*x)", "x")
_POINTS = ("x=0.5,a=2", "x=-1,a=3")
SCRIPTS = [
    Script("backprop_pipe", "backprop_pipe.sh"),
    Script("check_gradient_right", "check_gradient.sh", (*_HAND, "sin(a*x) + a*x*cos(a*x)", *_POINTS)),
    Script("check_gradient_wrong", "check_gradient.sh", (*_HAND, "sin(a*x) + x*cos(a*x)", *_POINTS), status=1),
    Script("check_gradient_mistake", "check_gradient.sh", ("x*sinn(x)", "x", "1", "x=2"), status=2),
    Script("cotangents", "cotangents.sh"),
    Script("gradient_descent", "gradient_descent.sh"),
    Script("handout", "handout.sh"),
    Script("jacobian_rows", "jacobian_rows.sh"),
    Script("jacobian_rows_assembled", "jacobian_rows.sh", (str(SAMPLES / "vector_to_vector_assembled.grad"),)),
    Script("slope_curve", "slope_curve.sh"),
]


def environment() -> dict[str, str]:
    """Return an environment in which `gradcli` is the one of this interpreter, on a terminal of 80 columns."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def execute(command: Sequence[str], directory: Path = ROOT) -> Printed:
    """Run a command as a process of its own."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Printed(done.stdout + done.stderr, done.returncode)


def execute_all(commands: Sequence[Sequence[str]], directory: Path = ROOT) -> list[Printed]:
    """Run commands two at a time; the results have their order."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda command: execute(command, directory), commands))


def shell(line: str) -> list[str]:
    """Return the command that runs a line of a document."""
    return ["sh", "-c", line]


def blocks(text: str, language: str) -> Iterator[re.Match[str]]:
    """Yield the fenced blocks of a language; group `body` is what stands in them."""
    return (m for m in _BLOCK.finditer(text) if m["language"] == language)


def console_examples(body: str) -> list[Example]:
    """Return the commands of a console block, each a line after `$ `, with what is shown below them."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
    assert not parts[0], f"a console block starts with a command, not with {parts[0]!r}"
    return [Example(command, shown) for command, shown in zip(parts[1::2], parts[2::2], strict=True)]


def promised_examples(text: str) -> list[Example]:
    """Return the commands in the comments of a `.grad` file (`# $ …`), with the lines promised below them (`#   …`)."""
    examples: list[Example] = []
    command, lines = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("#   ") and command:
            lines.append(line.removeprefix("#   "))
            continue
        if command:
            examples.append(Example(command, "\n".join(lines)))
        command, lines = (line.removeprefix("# $ "), []) if line.startswith("# $ ") else ("", [])
    return examples


def rounded(text: str) -> str:
    """Return a text with long numbers rounded: the last digit of a power depends on the processor and on NumPy.

    Columns are as wide as their numbers, so that runs of spaces count as one.
    """
    return re.sub(" +", " ", _LONG_NUMBER.sub(lambda m: f"{float(m.group()):.9g}", text))


def same(printed: str, shown: str) -> bool:
    """Tell whether two outputs are the same, up to the last digits of long numbers."""
    return printed.rstrip("\n") == shown.rstrip("\n") or (
        bool(_LONG_NUMBER.search(shown)) and rounded(printed).rstrip("\n") == rounded(shown).rstrip("\n")
    )
