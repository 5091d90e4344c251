"""Scripts print what PyTorch prints but for last digits, end with its errors, and warn as it does."""

from __future__ import annotations

import contextlib
import io
import re
import traceback
import warnings

import numpy as np
import pytest
from collection import first_lines, recorded, scripts, without_addresses
from comparison import difference
from conftest import some

import samples
from gradcli.process.script import Script
from gradcli.pytorch.session import run

SCRIPTS = scripts()
RECORDED = recorded()
SAMPLES = samples.samples()


def outcome(name, source):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ending = run(Script(source, name, None))
    error = "".join(traceback.format_exception_only(ending.error)).strip() if ending.error else ""
    error = error.partition(". Did you mean: ")[0]  # which Python adds here from 3.12 on, and PyTorch nowhere
    told = first_lines([str(w.message) for w in caught])
    return {"out": without_addresses(out.getvalue()), "error": error, "warnings": told}


OWN = "PyTorch does not allow this: "  # what errors say that people hardly meet, which have PyTorch's class


def with_own_texts(found, expected):
    """Return what PyTorch printed with gradcli's texts of errors, in the lines that agree before them."""
    pairs = zip(found.split("\n"), expected.split("\n"), strict=False)
    changed = [a if OWN in a and b.startswith(a.partition(OWN)[0]) else b for a, b in pairs]
    return "\n".join([*changed, *expected.split("\n")[len(changed) :]])


def assert_agrees(found, expected):
    found, expected = as_anywhere(found), as_anywhere(expected)
    expected = expected | {key: with_own_texts(found[key], expected[key]) for key in ("out", "error")}
    assert difference(found["out"], expected["out"]) == ""
    assert {**found, "out": ""} == {**expected, "out": ""}


def as_anywhere(outcome):
    """Return an outcome without what depends on the version of Python and NumPy.

    This is how an `OrderedDict` is written, which name an error of a call suggests, and where a warning of NumPy's says
    that there is more to read.
    """
    # From 3.13 on: got an unexpected keyword argument 'gradian'. Did you mean 'gradient'?
    out = re.sub(r"(unexpected keyword argument '\w+')\. Did you mean '\w+'\?", r"\1", outcome["out"])
    if "OrderedDict(" in out:  # ([('w', 1), ('b', 2)]) in Python 3.11, ({'w': 1, 'b': 2}) from 3.12 on
        out = re.sub(r"[\[\](){}]", "", out.replace("': ", "', "))
    return outcome | {"out": out, "warnings": outcome["warnings"].partition(" To learn more, ")[0]}


def test_every_script_is_recorded():
    assert list(SCRIPTS) == list(RECORDED)
    assert len(SCRIPTS) + len(SAMPLES) >= 280  # none stands in both


@pytest.mark.parametrize("name", some(SCRIPTS))
def test_a_script_prints_what_pytorch_prints(name):
    assert_agrees(outcome(name, SCRIPTS[name]), RECORDED[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_prints_what_pytorch_prints(name):
    assert_agrees(outcome(name, SAMPLES[name]), samples.recorded()[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_explained(name, cli):
    outcome = cli("run", str(samples.FOLDER / f"{name}.py"))
    failed = bool(samples.recorded()[name]["error"])
    assert outcome.status == int(failed)
    assert SAMPLES[name].startswith(("# ", '"""'))
    assert failed == ("why: " in outcome.err)
    assert "not explained" not in outcome.out or name == "own_function"
    assert failed or "── line " in outcome.out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", some(SCRIPTS))
def test_a_script_is_explained(name, cli):
    outcome = cli("run", "-c", SCRIPTS[name])
    assert "fault of gradcli" not in outcome.out + outcome.err
    # The formulas give the script's own gradients, but where a gradient of 4e-5 is what is left of terms of size 1.
    assert "rounds each operation" not in outcome.out or name == "layers: batch norm gradients"


@pytest.mark.parametrize(
    ("call", "exact"),
    [
        ("x.sum(0)", lambda x: x.sum(0)),
        ("x.mean(0)", lambda x: x.mean(0)),
        ("x.cumsum(0)[-1]", lambda x: x.sum(0)),
        ("x.var(0)", lambda x: x.var(0, ddof=1)),
        ("x.norm(dim=0)", lambda x: np.linalg.norm(x, axis=0)),
    ],
)
def test_long_sums_of_float32_are_accurate(call, exact):
    """PyTorch adds in a cascade; one number after the other, errors grow to 1e-5."""
    numbers = np.random.default_rng(0).random((100_000, 3)).astype(np.float32)
    text = "import numpy, torch\nx = torch.tensor(numpy.random.default_rng(0).random((100_000, 3)).astype('float32'))\n"
    found = outcome("long", f"{text}print(*({call}).tolist())")["out"]
    np.testing.assert_allclose([float(word) for word in found.split()], exact(numbers.astype(float)), rtol=1e-6)
