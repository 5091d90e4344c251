"""Pages of scripts as they are at 80 columns, and no wider at 60: the script and its output are in `pinned/`.

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


def output(cli, script, columns, monkeypatch, **options):
    """Return what is printed, standard error behind standard output."""
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = cli("run", *OPTIONS.get(script.stem, ()), str(script), **options)
    assert outcome.status == 0, outcome.err
    return f"{outcome.out}--\n{outcome.err}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_is_as_it_was(cli, script, monkeypatch):
    text = output(cli, script, 80, monkeypatch)
    assert difference(text, script.with_suffix(".txt").read_text("utf-8")) == ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_no_line_is_wider_than_the_page(cli, script, monkeypatch):
    lines = output(cli, script, 60, monkeypatch).splitlines()
    assert max(len(re.sub("[\u0304\u0302]", "", line)) for line in lines) <= 60


def main():
    """Write the outputs of today."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for script in SCRIPTS:
            script.with_suffix(".txt").write_text(output(Command(), script, 80, monkeypatch, seconds=600), "utf-8")


if __name__ == "__main__":
    main()
