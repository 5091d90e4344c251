"""Pages of scripts as they are at 60, 80 and 120 columns: the script and its output are in `pinned/`.

Last digits of float32 numbers, which depend on the processor and on NumPy, may differ.

`python -m tests.script.test_pinned_pages` writes the outputs of today; read the difference before you keep it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.comparison import difference
from tests.conftest import Command

FOLDER = Path(__file__).with_name("pinned")
SCRIPTS = sorted(FOLDER.glob("*.py"))
OPTIONS = {"optimizers": ("--round", "2")}
WIDTHS = (60, 80, 120)


def output(cli, script, columns, monkeypatch, **options):
    """Return what is printed, standard error behind standard output."""
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = cli("run", *OPTIONS.get(script.stem, ()), str(script), **options)
    assert outcome.status == 0, outcome.err
    return f"{outcome.out}--\n{outcome.err}"


def expected(script, columns):
    return script.with_suffix(f".{columns}.txt")


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_is_as_it_was(cli, script, columns, monkeypatch):
    text = output(cli, script, columns, monkeypatch)
    assert max(len(re.sub("[\u0304\u0302]", "", line)) for line in text.splitlines()) <= columns
    assert difference(text, expected(script, columns).read_text("utf-8")) == ""


def main():
    """Write the outputs of today."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for script in SCRIPTS:
            for columns in WIDTHS:
                text = output(Command(), script, columns, monkeypatch, seconds=600)
                expected(script, columns).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
