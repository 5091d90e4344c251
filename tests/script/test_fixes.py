"""After an error of autograd: the change that is suggested, applied to the script, fixes it, here and under PyTorch.

`python tests/script/record_fixes.py` has tried each of these changes under PyTorch.
"""

from __future__ import annotations

import contextlib
import io
import json
import traceback

import pytest
from broken import BROKEN, ERRORS, IN_WORDS
from causes import CAUSES
from conftest import some
from detached import DETACHED, FIXES, SLIPS, shown

from gradcli.guide.topics import topics
from gradcli.process.script import Script
from gradcli.pytorch.messages import Facts, facts_of
from gradcli.pytorch.messages import _table as messages
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.session import run
from gradcli.script.errors.source import changed
from gradcli.script.errors.why import _answers, _function, _of_python
from gradcli.script.errors.why import answer as answer_known
from gradcli.script.errors.why import why as why_known
from gradcli.script.explainer import knows

RECORDED = json.loads(ERRORS.read_text("utf-8"))
TRIED = json.loads(FIXES.read_text("utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def explains(monkeypatch):
    monkeypatch.setattr(Recorder, "explains", True)
    monkeypatch.setenv("COLUMNS", "100")


def answer(error, script):
    return answer_known(error, script, knows)


def why(error, script):
    return why_known(error, script, knows)


def ending(text, name="script.py", folder=None):
    with contextlib.redirect_stdout(io.StringIO()):
        return run(Script(text, name, folder))


def error_of(text):
    return line_of(ending(text).error)


def line_of(error):
    text = "" if error is None else "".join(traceback.format_exception_only(error)).strip()
    return text.partition(". Did you mean")[0]  # which later versions of Python say of more errors


def test_there_are_enough():
    assert len(BROKEN | SLIPS | DETACHED) >= 300
    assert RECORDED.keys() == BROKEN.keys() | IN_WORDS.keys() | DETACHED.keys() | SLIPS.keys()
    assert TRIED.keys() == BROKEN.keys() | DETACHED.keys() | SLIPS.keys() | CAUSES.keys()


def test_what_the_table_of_answers_names_is_there():
    assert {*_answers()} <= {*messages()}
    known = [*_answers().values(), *_of_python().values()]
    assert {row.topic for row in known} - {""} <= {*topics()}
    rows = [line for row in known for line in row.parts]
    assert {word for word, _ in rows} == {"why", "fix", "change", "tell"}
    assert all(callable(_function(text.partition(" ")[0])) for word, text in rows if word in ("change", "tell"))


def test_an_error_of_the_script_itself_has_no_facts_whatever_its_text_is():
    text = "a leaf Variable that requires grad is being used in an in-place operation."
    assert answer(ending(f"raise RuntimeError({text!r})\n").error, Script("", "script.py", None)) is None
    error = ending("import torch\nx = torch.ones(2, requires_grad=True)\nx += 1\n").error
    assert str(error) == text
    assert facts_of(error) == Facts("leaf changed in place")


@pytest.mark.parametrize("name", BROKEN)
def test_the_change_mends_the_script(name):
    text = BROKEN[name]
    error = ending(text).error
    assert "".join(traceback.format_exception_only(error)).strip() == RECORDED[name]
    script = Script(text, "script.py", None)
    told, explained = answer(error, script), why(error, script)
    fixed = changed(text, told.changes)
    assert shown(told.changes) == TRIED[name]
    assert error_of(fixed) == ""
    for change in told.changes:
        assert all(line.strip() in explained for line in change.lines)


@pytest.mark.parametrize("name", IN_WORDS)
def test_what_no_line_mends_is_said_in_words(name):
    error = ending(IN_WORDS[name]).error
    assert "".join(traceback.format_exception_only(error)).strip() == RECORDED[name]
    told = answer(error, Script(IN_WORDS[name], "script.py", None))
    assert not told.changes
    assert told.reason
    assert told.fix


@pytest.mark.parametrize("name", DETACHED)
def test_what_is_detached_stays_in_the_graph(name):
    text, gradient = DETACHED[name]
    error = ending(text).error
    assert line_of(error) == RECORDED[name]
    told = answer(error, Script(text, "script.py", None))
    assert shown(told.changes) == TRIED[name]
    fixed = changed(text, told.changes)
    assert error_of(f"{fixed}assert {gradient} is not None\n") == ""


@pytest.mark.parametrize("name", some(SLIPS))
def test_a_slip_is_mended(name):
    error = ending(SLIPS[name]).error
    assert line_of(error) == RECORDED[name]
    changes = answer(error, Script(SLIPS[name], "script.py", None)).changes
    assert shown(changes) == TRIED[name]
    assert error_of(changed(SLIPS[name], changes)) == ""


X = "import torch\nx = torch.ones(2, requires_grad=True)\n"


@pytest.mark.parametrize("v", ["Weights.first", "weights[0]", "2.0"])
def test_a_number_as_v_becomes_a_tensor_of_the_shape_of_y_wherever_the_number_is(v):
    text = f"{X}class Weights:\n    first = 2.0\nweights = [2.0]\ny = x ** 2\ny.backward({v})\n"
    fixed = changed(text, answer(ending(text).error, Script(text, "script.py", None)).changes)
    assert fixed.endswith(f"y.backward(torch.full_like(y, {v}))\n")
    assert error_of(fixed) == ""


def test_a_count_that_has_nothing_to_do_with_a_function_has_no_answer():
    for text in ("a, b = [1]\n", "def forward(ctx, x): ...\nforward(1)\n", "for i in 3.0: ...\n"):
        assert why(ending(text).error, Script(text, "script.py", None)) == ""


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        (
            "'''\n    with torch.inference_mode(): keeps nothing\n'''\n"
            "with torch.inference_mode():\n    w = torch.ones(2)\ny = x * w\n",
            {"with torch.no_grad():"},
        ),
        (
            "print('@inference_mode')\n@torch.inference_mode()\ndef weights():\n    return torch.ones(2)\n"
            "y = x * weights()\n",
            {"@torch.no_grad()"},
        ),
        (
            "print('p.requires_grad_(False)')\nx.requires_grad = False\n(x * 2).sum().backward()\n",
            {"x.requires_grad = True"},
        ),
        (
            "kinds = ('inplace=True', torch.nn.ReLU(inplace = True))\ny = x.exp()\nkinds[1](y)\ny.sum().backward()\n",
            {"kinds = ('inplace=True', torch.nn.ReLU(inplace = False))"},
        ),
        (
            "y = torch.ones(2)\ntorch.add(x, 1,  # , out=y\n    out = y)\n",
            {"y = torch.add(x, 1)"},
        ),
    ],
)
def test_strings_and_comments_are_not_edited(text, fixed):
    text = X + text
    changes = answer(ending(text).error, Script(text, "script.py", None)).changes
    assert {line.strip() for change in changes for line in change.lines} == fixed
    assert error_of(changed(text, changes)) == ""


def test_the_script_runs_once_whatever_is_said_of_its_error(cli):
    code = f"print('once')\n{SLIPS['a gradient penalty before the loop']}"
    assert cli("run", "-c", code).out.count("once") == 1


def said(text):
    return " ".join(why(ending(text).error, Script(text, "script.py", None)).split())


def test_lines_are_those_of_the_file_where_they_stand(tmp_path, cli):
    (tmp_path / "layers_of_mine.py").write_text(
        "def shift(h):\n    # changes what it is given\n    h += 1\n    return h\n\n"
        "def go(y):\n    y.sum().backward()\n"
    )
    path = tmp_path / "main.py"
    path.write_text(
        "import torch\nfrom layers_of_mine import shift, go\nx = torch.ones(2, requires_grad=True)\n"
        "y = x.exp()\nshift(y)\ngo(y)\n"
    )
    outcome = cli("run", str(path))
    assert outcome.status == 1
    flat = " ".join(outcome.err.split())
    assert "line 3 of layers_of_mine.py, `h += 1`, changes y in place" in flat
    assert "ExpBackward0 of line 4, `y = x.exp()`, needs the old values for its backward" in flat
    assert "exp's derivative is its own result" in flat
    assert "line 3 of layers_of_mine.py: h = h + 1" in flat
