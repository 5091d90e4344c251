"""The table of signatures agrees with the functions: those of the vocabulary by position, those in Python by name."""

from __future__ import annotations

import contextlib
import inspect
import re
from pathlib import Path

import pytest

from gradcli.pytorch import functions, torch
from gradcli.pytorch.functions import table
from gradcli.pytorch.messages import MissingError
from gradcli.pytorch.names import TORCH, pytorch_names
from gradcli.pytorch.nn import functional
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.signatures import find
from gradcli.pytorch.tables import lines as table_lines
from gradcli.pytorch.tensor import Tensor
from gradcli.vocabulary import FUNCTIONS

WRITTEN = {name: f for name, f in {**vars(functional), **vars(Tensor), **TORCH}.items() if inspect.isfunction(f)}
WRITTEN = {name: getattr(f, "as_function", f) for name, f in WRITTEN.items() if find(name)}
ROWS = {name: ELEMENTWISE.get(name) or FUNCTIONS.get(name) for name in sorted(pytorch_names()["torch"])}
ROWS = {name: build for name, build in ROWS.items() if build and name not in WRITTEN and name not in TORCH}

APART = ("args", "op", "how", "more", "memory_format")  # what no script names


# Functions of PyTorch that take no tensor: settings of the run, and new tensors of sizes or of Python's numbers.
WITHOUT_TENSORS = {
    *("as_tensor", "asarray", "can_cast", "from_numpy", "initial_seed", "is_tensor", "manual_seed", "promote_types"),
    *("range", "result_type", "seed", "storage", "symeig", "tril_indices", "triu_indices"),
    "use_deterministic_algorithms",
}
MODULES = {"cpu", "cuda"}  # methods of tensors here, modules to a script
STATES = ("get_", "set_", "is_anomaly_", "is_autocast_", "is_inference_mode_")


def listed(module, space):
    for name in sorted(pytorch_names()[module]):
        with contextlib.suppress(AttributeError, MissingError):  # what gradcli does not have
            value = getattr(space, name)
            if not isinstance(value, type) and callable(value) and name[-1] != "_" and name not in MODULES:
                yield name


def test_each_function_of_tensors_has_its_line():
    names = [*listed("torch", torch), *listed("torch.nn.functional", functional)]
    assert len(names) > 300
    without = {name for name in names if find(name) is None and not name.startswith(STATES)}
    assert without == WITHOUT_TENSORS | {"unfold"}  # a method of another signature has this name


def test_a_name_has_one_line_a_module_and_its_facts_are_known():
    lines = [line.partition("(")[0].partition(" ")[0] for line in table_lines("functions.txt")]
    starts = [i for i, line in enumerate(lines) if line in table().functions]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        assert len({*lines[start:end]}) == end - start
    text = Path(functions.__file__).with_name("functions.txt").read_text("utf-8")
    explained = set(re.findall(r"^#   (\w+)", text, re.M))
    assert explained == set(table().facts)


def parameters(function):
    return [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_function_of_the_vocabulary_has_a_signature_with_its_defaults(name):
    known = find(name)
    assert known is not None
    for argument, parameter in zip(known.known.values(), parameters(ROWS[name]), strict=False):
        if isinstance(argument.default, float):
            assert float(getattr(parameter.default, "value", parameter.default)) == argument.default


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_function_in_python_has_the_arguments_of_its_signature(name):
    known, own = find(name), parameters(WRITTEN[name])
    assert known is not None
    names = [p.name for p in own if p.name not in (*APART, "self") and not p.name.startswith("_")]
    assert set(names) - {"input"} <= set(known.known)
    ordered = [p.name for p in own if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    assert [a.name for a in known.ordered if a.name in ordered] == [n for n in ordered if n in known.known]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.mm(3), "mm(): argument 'mat2' (position 1) must be Tensor, not int"),
        (lambda x: torch.mm(x, 3), "mm(): argument 'mat2' (position 2) must be Tensor, not int"),
        (lambda x: x.maximum(3), "maximum(): argument 'other' (position 1) must be Tensor, not int"),
        (lambda x: torch.maximum(x, 3), "maximum(): argument 'other' (position 2) must be Tensor, not int"),
        (lambda x: torch.addcmul(x, 2, x), "addcmul(): argument 'tensor1' (position 2) must be Tensor, not int"),
    ],
)
def test_what_is_no_tensor_is_named_with_its_position(call, message):
    with pytest.raises(TypeError) as error:
        call(torch.ones(2, 2))
    assert str(error.value) == message
