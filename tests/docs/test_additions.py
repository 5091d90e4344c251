"""What the guide says of additions holds: its files alone, in their places, add formats and a command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradcli

GUIDE = Path(gradcli.__file__).parent / "guide" / "development.md"
FILES = re.compile(r"<!-- (gradcli/\S+\.py) -->\n```python\n(.*?)```", re.DOTALL)
DIFFS = re.findall(r"```diff\n(.*?)\n```", GUIDE.read_text("utf-8"), re.DOTALL)
NEW = ("lua", "feather")  # what there is not yet
# Runs gradcli with files of a folder among those of its packages.
ADDED = """\
import sys
from importlib import import_module
folder = sys.argv.pop(1)
for room in ("report/documents", "report/data", "pages", "cli/commands"):
    package = import_module("gradcli." + room.replace("/", "."))
    package.__path__.append(f"{folder}/gradcli/{room}")
from gradcli.cli import main
main.COMMANDS += ("steepness",)
main.main()
"""


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    folder = tmp_path_factory.mktemp("added")
    for name, text in FILES.findall(GUIDE.read_text("utf-8")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def run(*arguments):
        command = [sys.executable, "-c", ADDED, str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


X = ("y=x**2+z**2", "--at", "x=3,z=4")
POINTS = GUIDE.parents[2] / "samples" / "points.csv"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("backward", *X, "-f", "asciidoc"), r"== system\n\n----\ny = x\*\*2\+z\*\*2 = 25   at x = 3, z = 4\n----\n"),
        (("backward", *X, "-f", "tsv"), r"^x\tz\ty\tx\.grad\tz\.grad\n3\.0\t4\.0\t25\.0\t6\.0\t8\.0\n$"),
        (("steepness", *X), r"^y = x\*\*2\+z\*\*2 = 25   at x = 3, z = 4\n\nsteepness = 10\n$"),
        (
            ("steepness", *X, "-f", "json"),
            r'^{"at": {"x": 3\.0, "z": 4\.0}, "value": {"y": 25\.0}, "steepness": 10\.0}$',
        ),
        (("steepness", *X, "-f", "csv"), r"^x,z,y,steepness\n3\.0,4\.0,25\.0,10\.0\n$"),
        (("steepness", "y=a**2", "--points", str(POINTS)), r"^steepness\n2\.0\n6\.0\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_files_of_the_guide_add_what_they_say(added, arguments, expected):
    assert re.search(expected, added(*arguments), re.MULTILINE)


@pytest.mark.parametrize("diff", DIFFS, ids=lambda diff: diff.split("\n")[0].strip("+ "))
def test_a_diff_of_the_guide_is_what_the_source_has(diff):
    """What an example added stands in one file as it is shown; beside what would be added stands what is there."""
    lines = [line[1:] for line in diff.split("\n") if not any(f'{name}"' in line for name in NEW)]
    shown = "\n".join(lines) + "\n"
    assert any(shown in path.read_text("utf-8") for path in GUIDE.parents[1].rglob("*.py")), shown


QUESTIONS = Path(__file__).with_name("where_to_change.txt").read_text("utf-8").split("\n\n")[1:]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.split("\n")[1])
def test_the_guide_names_the_file_that_a_question_asks_for(question):
    """It is there, or the guide shows the whole file."""
    _, answer = question.strip().split("\n")
    text = GUIDE.read_text("utf-8")
    assert answer in text
    assert (GUIDE.parents[2] / answer).exists() or answer in dict(FILES.findall(text))


def test_the_files_that_the_guide_names_are_there():
    """Or the guide shows the whole file; NAME stands for any."""
    text = GUIDE.read_text("utf-8")
    named = {*re.findall(r"`(gradcli/[\w./]+\.(?:py|txt|json))", text)} - {*dict(FILES.findall(text))}
    assert [name for name in sorted(named) if "NAME" not in name and not (GUIDE.parents[2] / name).exists()] == []


@pytest.mark.parametrize("page", sorted(GUIDE.parent.glob("*.md")), ids=lambda page: page.stem)
def test_each_block_of_code_ends(page):
    assert len(re.findall(r"^ *```", page.read_text("utf-8"), re.MULTILINE)) % 2 == 0
