"""The examples in the README and the samples: where they stand, how they are run, and when two outputs are the same."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradcli.guide.topics import PARTS, topics
from tests.comparison import difference

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
INDEX = ROOT / "gradcli" / "guide" / "README.md"
GUIDE = sorted(path for path in INDEX.parent.glob("*.md") if path != INDEX)
HELP = ROOT / "gradcli" / "cli" / "help.md"  # the examples with which the help of commands begins
PINNED = sorted((Path(__file__).parent / "pinned").glob("*.md"))  # commands and what they print, for no reader
SAMPLES = ROOT / "samples"
PICTURE = SAMPLES / "vector_to_vector.svg"
PICTURED = ["graph", "-F", str(SAMPLES / "vector_to_vector.grad"), "--v", "1,10,100", "-f", "svg"]
MOVING = SAMPLES / "vector_to_vector_moving.svg"
# Live pages, by the commands that write them: the README's example, and a network of two layers.
LIVE = {
    SAMPLES / "vector_to_vector.html": [
        "graph", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100", "-f", "html",
    ],
    SAMPLES / "two_layers.html": [
        "graph", "h=tanh(x@W + b)", "p=softmax(h@V + c)", "loss=-log(p[1])",
        "--at", "x=[1,-0.5],W=[[0.5,-0.8,0.3],[0.2,0.6,-0.4]],b=[0,0.1,-0.1],V=[[0.7,-0.3],[-0.5,0.4],[1,0]],c=[0,0]",
        "-f", "html",
    ],
}  # fmt: skip
EXPECTED = Path(__file__).parent / "expected"
QUICK = "QUICK_GRADCLI"  # the environment's variable that names the folder of such a command

_BLOCK = re.compile(
    r"(?:^<!-- needs (?P<needs>\w+(?:, \w+)*) -->\n)?"
    r"^(?P<fence>`{3,})(?P<language>\w+)\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_SIZE = re.compile(r"\b\d+ kB\b")
_MARKS = re.compile(r"^ *\^*~[~^]*\n", re.MULTILINE)
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
class Session:
    """A console block: commands that run one after the other in a folder of their own, in which `samples` stands.

    `needs` are the packages without which it cannot run.
    """

    examples: tuple[Example, ...]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


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
_POINTS = ("--at", "x=0.5,a=2", "--at", "x=-1,a=3")
SCRIPTS = [
    Script("backprop_pipe", "backprop_pipe.sh"),
    Script("check_gradient_right", "check_gradient.sh", (*_HAND, "sin(a*x) + a*x*cos(a*x)", *_POINTS)),
    Script("check_gradient_wrong", "check_gradient.sh", (*_HAND, "sin(a*x) + x*cos(a*x)", *_POINTS), status=1),
    Script("check_gradient_mistake", "check_gradient.sh", ("x*sinn(x)", "x", "1"), status=2),
    Script("check_function", "check_function.sh"),
    Script("check_model", "check_model.sh"),
    Script("compiled_gradient", "compiled_gradient.sh"),
    Script("cotangents", "cotangents.sh"),
    Script("gradient_descent", "gradient_descent.sh"),
    Script("handout", "handout.sh"),
    Script("jacobian_rows", "jacobian_rows.sh"),
    Script("jacobian_rows_assembled", "jacobian_rows.sh", (str(SAMPLES / "vector_to_vector_assembled.grad"),)),
    Script("many_points", "many_points.sh"),
    Script("newton", "newton.sh"),
    Script("sensitivity", "sensitivity.sh"),
    Script("slope_curve", "slope_curve.sh"),
]


def environment() -> dict[str, str]:
    """Return an environment with this interpreter's `gradcli`; pages fit where `gradcli explain` indents them.

    Where there is a server that is quick to start one, it is the server's.
    """
    folders = [os.environ.get(QUICK, ""), os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    path = os.pathsep.join(filter(None, folders))
    return {**os.environ, "PATH": path, "COLUMNS": "78", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def execute(command: Sequence[str], directory: Path = ROOT, given: str = "") -> Printed:
    """Run a command as a process of its own; `given` is its standard input."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment(),
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Printed(done.stdout + done.stderr, done.returncode)


def execute_all(commands: Sequence[Sequence[str]]) -> list[Printed]:
    """Run commands two at a time, each in a folder of its own; the results have their order."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(execute_elsewhere, commands))


def execute_elsewhere(command: Sequence[str]) -> Printed:
    """Run a command in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return execute(command, Path(folder))


_QUOTED = re.compile(r"""\"[^"$`\\]*\"|'[^']*'""")


def pipeline(command: str) -> tuple[list[list[str]], str]:
    """Return the plain calls of gradcli that a pipe begins with, each as its arguments, and the rest of the pipe.

    A call is plain if all that the shell does for it is to take its words apart.

    >>> pipeline("gradcli jacobian 'y = x | z' | gradcli backward y=x | tail -n 1 | wc")
    ([['jacobian', 'y = x | z'], ['backward', 'y=x']], 'tail -n 1 | wc')
    >>> pipeline("gradcli backward y=x --at x=@x.npy > out.txt")
    ([], 'gradcli backward y=x --at x=@x.npy > out.txt')
    """
    calls: list[list[str]] = []
    while command:
        bare = _QUOTED.sub(lambda m: "_" * len(m.group()), command)
        end = bare.find(" | ") if " | " in bare else len(bare)
        if not bare.startswith("gradcli ") or re.search(r"[^\w @.,:=+/*()\[\]-]", bare[:end]) or "*" in bare[:end]:
            break
        calls.append(shlex.split(command[:end])[1:])
        command = command[end + len(" | ") :]
    return calls, command


@contextmanager
def folder() -> Iterator[Path]:
    """Stand in a folder of a session, in which `samples` is; the width is that of a process in a test."""
    before, kept = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / SAMPLES.name).symlink_to(SAMPLES)
        os.chdir(name)
        os.environ.update({key: environment()[key] for key in ("COLUMNS", "NO_COLOR")})
        try:
            yield Path(name)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(kept)


def executed(cli: Callable[..., Any], command: str, place: Path) -> Printed:
    """Run a pipe: its plain calls of gradcli in this process, which takes milliseconds, what remains by the shell."""
    calls, rest = pipeline(command)
    out, err, status = "", "", 0
    for arguments in calls:
        with warnings.catch_warnings():  # a script's warnings are its own
            warnings.simplefilter("default")
            outcome = cli(*arguments, stdin=out)
        out, err, status = outcome.out, err + outcome.told, outcome.status
    if not rest:
        return Printed(out + err, status)
    done = execute(["sh", "-c", rest], place, out)
    return Printed(done.text + err, done.status)


def executed_session(cli: Callable[..., Any], session: Session) -> list[Printed]:
    """Run the commands of a session one after the other, in a folder of their own."""
    with folder() as place:
        return [executed(cli, example.command, place) for example in session.examples]


def ended_well(example: Example, now: Printed) -> bool:
    """Tell whether a command ended as what is shown below it says; a pipe ends with the status of its last command."""
    piped = " | " in _QUOTED.sub("", example.command)
    refused = re.search("^error: ", now.text, re.MULTILINE) and not piped
    denied = re.search(
        r"^gradcli (?:check|run --check).*(?:wrong|undecided)|^gradcli run.*^\w*Error: ",
        f"{example.command}\n{now.text}",
        re.M | re.S,
    )
    return now.status == (2 if refused else 1 if denied else 0)


def blocks(text: str, language: str) -> Iterator[re.Match[str]]:
    """Yield the fenced blocks of a language; group `body` is what stands in them."""
    return (m for m in _BLOCK.finditer(text) if m["language"] == language)


def console_session(block: re.Match[str]) -> Session:
    """Return the commands of a console block, each after `$ `, its further lines after `> `, and what they print."""
    parts = re.split(r"^\$ (.*\n(?:> .*\n)*)", block["body"], flags=re.MULTILINE)
    assert not parts[0], f"a console block starts with a command, not with {parts[0]!r}"
    commands = [lines.rstrip("\n").replace("\n> ", "\n") for lines in parts[1::2]]
    examples = tuple(Example(command, shown) for command, shown in zip(commands, parts[2::2], strict=True))
    return Session(examples, tuple(block["needs"].split(", ")) if block["needs"] else ())


def index() -> str:
    """Return the list of the guide's pages, in its order, each with what it answers."""
    lines = [
        "# The guide",
        "",
        "`gradcli explain TOPIC` shows one of these pages in a terminal.",
        '`gradcli explain "TEXT"` explains a message of PyTorch\'s.',
    ]
    for part, title in PARTS.items():
        lines += ["", f"## {title}", ""]
        lines += [f"- [{t.title}]({t.name}.md): {t.summary}" for t in topics().values() if t.part == part]
    return "\n".join(lines) + "\n"


def typed(command: str) -> str:
    """Return the lines of a console block in which a command is typed."""
    return "$ " + command.replace("\n", "\n> ") + "\n"


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
    """Tell whether two outputs are the same, but for last digits, sizes of files, and marks in Python's tracebacks.

    Last digits are those of long numbers, and of a script's float32; a size changes with each change of a page's style.
    """
    # Under a call, Python 3.13 writes `~~~~^^`, where 3.11 writes nothing.
    printed, shown = (_SIZE.sub("kB", _MARKS.sub("", text)).rstrip("\n") for text in (printed, shown))
    if printed == shown or (_LONG_NUMBER.search(shown) and rounded(printed) == rounded(shown)):
        return True
    return "── line " in shown and difference(printed, shown) == ""
