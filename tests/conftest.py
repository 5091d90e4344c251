"""Runs the command: in this process, which takes milliseconds, or as a process of its own."""

from __future__ import annotations

import gc
import inspect
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Thousands of systems pass through one process: what SymPy keeps of each is not to push out what it keeps of others.
os.environ.setdefault("SYMPY_CACHE_SIZE", "100000")
# What PyTorch printed was recorded in one thread.
os.environ["OMP_NUM_THREADS"] = "1"

from gradcli.cli.main import gradcli, run
from gradcli.process import platform

# The suite takes a few minutes: it leaves out what takes long, and most cases of tests that have many.
# GRADCLI_TESTS=all tries everything, which takes several times as long; with GRADCLI_SEED it tries a tenth of the cases
# of a test that has many, drawn by the seed.
EVERYTHING = os.environ.get("GRADCLI_TESTS") == "all"
SEED = os.environ.get("GRADCLI_SEED")
MANY = 6  # cases of a test
long = pytest.mark.skipif(not EVERYTHING, reason="takes long: GRADCLI_TESTS=all tries it")


def examples(count: int) -> int:
    """Return how many random examples of a law are tried: all of `count`, or a fifth."""
    return count if EVERYTHING else -(-count // 5)


def some(cases: Iterable[Any]) -> list[Any]:
    """Return which of many alike cases are tried: all, or each fifth."""
    cases = list(cases)
    return cases if EVERYTHING else cases[::5]


# No test is a matter of time: a machine may be busy. In CI the same examples every time: what is found by chance is
# found at a desk, and then kept as an example.
settings.register_profile("desk", deadline=None, max_examples=examples(50))
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Modules are compiled once, and not again for each of the hundreds of processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that has many cases try each third, unless everything is asked for, or tests by their names.

    With a seed it is a tenth that is drawn.  Tests marked `every_case` are tried whole: each case is a function of its
    own, and takes milliseconds.
    """
    if (EVERYTHING and not SEED) or any("::" in argument for argument in config.args):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("every_case"):
            continue
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {item for name, cases in tests.items() if len(cases) >= MANY for item in {*cases} - tried(name, cases)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=[*left_out])


def tried(name: str, cases: list[pytest.Item]) -> set[pytest.Item]:
    """Return which of the many cases of a test are tried."""
    if not SEED:
        return {*cases[::3]}
    return {*random.Random(f"{SEED} {name}").sample(cases, -(-len(cases) // 10))}


def pytest_collection_finish() -> None:
    """Leave ten thousand tests and what they import out of each garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test its cases as `parametrize` does, but in one: to begin a test takes longer than many a case.

    All cases are tried, with the same fixtures; those that fail are named.
    """
    named = (names,) if isinstance(names, str) else names
    given = [dict(zip(named, (case,) if isinstance(names, str) else case, strict=True)) for case in cases]
    assert given

    def of_all(test: Callable[..., None]) -> Callable[..., None]:
        def together(**fixtures: Any) -> None:
            failed = []
            for case in given:
                try:
                    test(**case, **fixtures)
                except Exception as error:
                    error.add_note(f"with {case}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(given)} cases", failed)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in named]
        together.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        together.__doc__ = test.__doc__
        return together

    return of_all


ENDINGS = ["csv", "npz", "parquet"]  # of files of points, and of results
HANG = 60  # seconds after which a command counts as hanging


GRADCLI = (sys.executable, "-m", "gradcli")


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it printed; `told` is standard error with its lines as they were broken."""

    status: int
    out: str
    err: str
    told: str = ""

    @property
    def notes(self) -> str:
        """What standard error has beside the line that says which file was written."""
        return re.sub(r"^wrote .*\n", "", self.err, flags=re.MULTILINE)

    @property
    def objects(self) -> list[Any]:
        """The JSON objects on standard output, one line each."""
        return [json.loads(line, parse_constant=_no_json) for line in self.out.splitlines()]

    def refused(self) -> str:
        """Check that this is a mistake told in a few plain lines, and return them."""
        assert self.status == 2, self
        assert self.out == ""
        assert self.err
        assert "Traceback" not in self.err
        assert "gradcli failed" not in self.err
        assert len(self.err.splitlines()) <= 8
        return self.err


def whole(err: str) -> str:
    """Return what was told as if lines had no end: those that go on have four spaces in front."""
    return re.sub(r"(?<=\S)\n {4}(?=[^\s^])", " ", err)


def said(err: str) -> str:
    """Return an error without its excerpt of what the user typed: a word found there has not been said by gradcli."""
    return re.sub(r"\n  .*\n *\^+(?=\n|$)", "", err)


def _no_json(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


class Command:
    """Runs gradcli in this process."""

    def __call__(self, *arguments: str, stdin: str | bytes = "", seconds: int = HANG) -> Outcome:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, at_most(seconds):
            patch.delenv("GRADCLI_TRACEBACK", raising=False)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = run(gradcli, list(arguments))
        told = err.buffer.getvalue().decode()
        return Outcome(status, out.buffer.getvalue().decode(), whole(told), told)

    def done(self, *arguments: str, stdin: str | bytes = "") -> Outcome:
        """Run a command that succeeds."""
        outcome = self(*arguments, stdin=stdin)
        assert outcome.status == 0, outcome.err
        return outcome

    def json(self, *arguments: str, stdin: str | bytes = "") -> Any:
        """Run a command that succeeds, and return the one JSON object that it prints."""
        (found,) = self.done(*arguments, "-f", "json", stdin=stdin).objects
        return found

    def refused(self, *arguments: str, stdin: str | bytes = "", seconds: int = HANG) -> str:
        """Run a command that is refused, and return what it says."""
        return self(*arguments, stdin=stdin, seconds=seconds).refused()


class HangError(BaseException):
    """Raised in the middle of what takes too long; no `except Exception` catches it."""


def _stop(*_: Any) -> None:
    raise HangError


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail instead of hanging."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    try:
        yield
    except HangError:
        pytest.fail(f"no answer within {seconds} seconds", pytrace=False)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process, without what would change what gradcli prints."""
    unwanted = {"GRADCLI_TRACEBACK", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONWARNINGS"}
    return {k: v for k, v in os.environ.items() if k not in unwanted} | more


def interruptible() -> None:
    """Hear the signals, in a process about to be: a shell's `&` ignores SIGINT, and `nohup` SIGHUP."""
    for number in platform.ENDING:
        signal.signal(number, signal.SIG_DFL)


def start(*arguments: str | Path, command: Sequence[str | Path] = GRADCLI, **options: Any) -> subprocess.Popen[bytes]:
    """Start gradcli; where no signal is sent and nothing limited, the `command` may be the one that is forked."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(TERM="xterm")}
    return subprocess.Popen([*command, *arguments], **(streams | options))


def run_process(
    *arguments: str, stdin: str = "", env: dict[str, str] | None = None, python: tuple[str, ...] = ()
) -> Outcome:
    """Run `python -m gradcli` as a process of its own."""
    done = subprocess.run(
        [sys.executable, *python, "-m", "gradcli", *arguments],
        input=stdin.encode(),
        capture_output=True,
        env=environment(**(env or {})),
        preexec_fn=interruptible if platform.FORKS else None,
        timeout=2 * HANG,
        check=False,
    )
    told = done.stderr.decode()
    return Outcome(done.returncode, done.stdout.decode(), whole(told), told)


def new_terminal() -> tuple[int, int]:
    """Return both sides of a terminal; skip the test where the system has none to give, as in some containers."""
    pty = pytest.importorskip("pty")
    try:
        reader, writer = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a terminal: {error}")
    return reader, writer


def needs(ending: str) -> None:
    """Skip the test of a kind of file whose library is not installed."""
    if ending in ("parquet", "folder"):
        pytest.importorskip("pyarrow")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def cli() -> Command:
    return Command()


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A command `gradcli` that is a process of its own, and quick to start."""
    if not platform.FORKS:
        pytest.skip("needs processes that fork")
    from forked import server

    with server(tmp_path_factory.mktemp("forked")) as command:
        yield command


@pytest.fixture
def quick(forked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shell scripts of documents find that command."""
    from documents import QUICK

    monkeypatch.setenv(QUICK, str(forked.parent))


@pytest.fixture(scope="session")
def process() -> Callable[..., Outcome]:
    return run_process


@pytest.fixture(name="run")
def run_script(cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a script, given as text, on pages of a width, with modules beside it, and return how it ended."""

    def run_text(text: str, *options: str, status: int | None = 0, columns: int = 120, **beside: str) -> Outcome:
        monkeypatch.setenv("COLUMNS", str(columns))
        for name, source in {"script": text, **beside}.items():
            (tmp_path / f"{name}.py").write_text(source, "utf-8")
        outcome = cli("run", *options, str(tmp_path / "script.py"))
        assert status in (None, outcome.status), outcome.err
        assert "fault of gradcli" not in outcome.out + outcome.err
        return outcome

    return run_text


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """The browser of all tests of live pages."""
    from live.pages import browser

    driver = browser()
    yield driver
    driver.quit()


@pytest.fixture
def opened(driver: Any, cli: Command, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a live page, and open it; in the end, the console has no error, and nothing was asked of the network."""
    from live.pages import errors, frame

    def open_page(*arguments: str) -> Any:
        file = tmp_path / "page.html"
        cli.done("graph", *arguments, "--output", str(file))
        driver.get("about:blank")
        driver.get(file.as_uri())
        frame(driver)
        return driver

    yield open_page
    assert errors(driver) == []
