"""After an error of autograd: the change that is suggested, applied to the script, fixes it, here and under PyTorch.

`python tests/script/record_fixes.py` has tried each of these changes under PyTorch.
"""

from __future__ import annotations

import contextlib
import io
import json
import traceback

import pytest
from broken import BROKEN, DETACHED, ERRORS, FIXES, IN_WORDS, SLIPS, shown
from causes import CAUSES
from conftest import some

from gradcli.guide.topics import topics
from gradcli.process.script import Script
from gradcli.pytorch.messages import Facts, facts_of
from gradcli.pytorch.messages import _table as messages
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.session import run
from gradcli.script.errors.source import changed
from gradcli.script.errors.why import _function, _rows
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


def is_fixed(text, told, end=""):
    """Return whether the lines that are shown fix a script; or, where the fix is a sentence, that there is one."""
    return error_of(changed(text, told.changes) + end) == "" if told.changes else told.fix != ""


def test_there_are_enough():
    assert len(BROKEN | SLIPS | DETACHED) >= 300
    assert sum(bool(lines) for lines in TRIED.values()) >= 350
    assert RECORDED.keys() == BROKEN.keys() | IN_WORDS.keys() | DETACHED.keys() | SLIPS.keys()
    assert TRIED.keys() == BROKEN.keys() | DETACHED.keys() | SLIPS.keys() | CAUSES.keys()


def test_what_the_table_of_answers_names_is_there():
    assert {*_rows("error")} <= {*messages()}
    known = [*_rows("error").values(), *_rows("text").values()]
    assert {row.topic for row in known} - {""} <= {*topics()}
    rows = [line for row in known for line in row.parts]
    assert {word for word, _ in rows} == {"why", "fix", "change", "edit", "resize", "tell"}
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
    assert shown(told.changes) == TRIED[name]
    assert is_fixed(text, told)
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
    assert is_fixed(text, told, f"assert {gradient} is not None\n")


@pytest.mark.parametrize("name", some(SLIPS))
def test_a_slip_is_mended(name):
    error = ending(SLIPS[name]).error
    assert line_of(error) == RECORDED[name]
    told = answer(error, Script(SLIPS[name], "script.py", None))
    assert shown(told.changes) == TRIED[name]
    assert is_fixed(SLIPS[name], told)


X = "import torch\nx = torch.ones(2, requires_grad=True)\n"
NET = (
    "import torch, copy, numpy as np\ntorch.manual_seed(0)\nnet = torch.nn.Linear(2, 3)\nout = net(torch.ones(4, 2))\n"
)


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        (
            f"{NET}def log_loss(p):\n    return -np.log(p.numpy())\nloss = log_loss(out)\nloss.backward()\n",
            "A backward starts from loss and needs the graph.",
            "compute loss with PyTorch's functions: torch.log(x) instead of np.log(x)",
        ),
        (
            f"{NET}best = out.argmax(dim=1)\nreward = torch.tensor([1., 2., 4.])[best]\nloss = -reward.mean()\n"
            "loss.backward()\n",
            "argmax has no gradient",
            "use a loss of out itself, not of out.argmax(dim=1): a step function has the derivative 0; cross_entropy "
            "takes the scores of classes",
        ),
        (
            f"{NET}torch.nn.functional.binary_cross_entropy(out, 0 * out + 2)\n",
            "takes probabilities, and some elements of the input",
            "use probabilities",
        ),
        (
            f"{NET}p = out.sigmoid().detach()\ntorch.nn.functional.binary_cross_entropy(p, p + 2)\n",
            "takes probabilities, and some elements of the target",
            "scale the target, or for several classes use torch.nn.CrossEntropyLoss",
        ),
        (
            f"{X}(g,) = torch.autograd.grad(x ** 2, x)\n",
            "needs a weight v for each",
            "pass v as grad_outputs; ones give the gradient of the sum of y",
        ),
        (
            f"{X}(x ** 2).sum().backward()\nx.grad.sum().backward()\n",
            "is computed from a gradient, and that is recorded only with create_graph=True",
            "record it where the gradient is taken",
        ),
        (
            f"{NET}net.last = out\ncopy.deepcopy(net)\n",
            "deepcopy copies the attributes of an object too",
            "set the attribute to None before the copy; copy a tensor alone by .detach().clone(), or by .clone(), "
            "which stays in the graph",
        ),
        (
            f"{X}opt = torch.optim.LBFGS([x])\n(x ** 2).sum().backward()\nopt.step()\n",
            "LBFGS computes the loss several times in a step",
            "pass a function to step: it calls zero_grad(), computes the loss, calls backward(), and returns the loss",
        ),
        (
            f"{X}h = x * 2\nh.register_hook(lambda g: g.sum())\nh.sum().backward()\n",
            "what a hook returns replaces the gradient",
            "return a gradient of that shape; or None, which leaves it as it is",
        ),
        (
            f"{NET}torch.optim.SGD(torch.nn.Tanh().parameters(), lr=0.1)\n",
            "parameters() returned none",
            "assign the parameters to the module: self.w = torch.nn.Parameter(…)",
        ),
        (
            "def f(x):\n    return f(x) + 1\nf(1.)\n",
            "line 2, `return f(x) + 1`, is in a function that calls itself again and again",
            "return before it calls itself, in the last case; in `forward`, call the layers, not the module itself",
        ),
        (
            f"{X}n = 3\nassert x.grad is not None and n == 4\n",
            "requires that `x.grad is not None and n == 4` holds, and it does not: x.grad is None and n is 3.",
            "correct what is compared where it is computed, or the condition",
        ),
    ],
)
def test_the_reason_names_the_cause(text, reason, fix):
    told = answer(ending(text).error, Script(text, "script.py", None))
    assert reason in told.reason
    assert told.fix == fix


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
            "print('p.requires_grad_(False)')\nx.requires_grad = False\n(x * 2).sum().backward()\n",
            {"x.requires_grad = True"},
        ),
        (
            "kinds = ('inplace=True', torch.nn.ReLU(inplace = True))\ny = x.exp()\nkinds[1](y)\ny.sum().backward()\n",
            {"kinds = ('inplace=True', torch.nn.ReLU(inplace = False))"},
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
