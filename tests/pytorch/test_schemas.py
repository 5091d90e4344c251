"""The schemas of functions agree with PyTorch's, as recorded by `record_schemas.py`, and with what computes them."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from ast import literal_eval
from pathlib import Path

import pytest

from gradcli.pytorch import functions, names, torch
from gradcli.pytorch.binding import Binder, Classes
from gradcli.pytorch.functions import find, table
from gradcli.pytorch.messages import MissingError
from gradcli.pytorch.nn import functional
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.schema import DEPRECATED, Overload
from gradcli.pytorch.tables import lines as table_lines
from gradcli.pytorch.tables import pytorch_names
from gradcli.vocabulary import FUNCTIONS

RECORDED = json.loads(Path(__file__).with_name("schemas.json").read_text("utf-8"))
BUILT_IN = [(m, name) for m, known in RECORDED.items() for name, record in known.items() if "aten" in record]
IN_PYTHON = [(m, name) for m, known in RECORDED.items() for name, record in known.items() if record.get("parameters")]
IN_PYTHON.remove(("torch", "einsum"))  # which takes all as they come

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
    known = [*listed("torch", torch), *listed("torch.nn.functional", functional)]
    assert len(known) > 300
    without = {name for name in known if find(name) is None and not name.startswith(STATES)}
    assert without == WITHOUT_TENSORS


def test_a_name_has_one_line_a_module_and_its_facts_are_known():
    heads = [line.partition("(")[:2] for line in table_lines("functions.txt")]
    is_schema = [bracket and "=" not in head for head, bracket in heads]  # and no chain of functions
    lines = [
        head.partition(".")[0].split() if schema else head.split()[:1]
        for (head, _), schema in zip(heads, is_schema, strict=True)
    ]
    starts = [i for i, line in enumerate(lines) if line[0] in table().functions]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        known = [name for line in lines[start:end] for name in line]
        assert len({*known}) == len(known)
    text = Path(functions.__file__).with_name("functions.txt").read_text("utf-8")
    explained = set(re.findall(r"^#   (\w+)", text, re.M))
    assert explained == set(table().facts)


# What Python calls otherwise than ATen: its binding is written by hand, or is older.
BY_HAND = {"copy_", "nonzero", "tensor", "to"}


@pytest.mark.parametrize(("module", "name"), BUILT_IN)
def test_a_function_in_c_lists_the_overloads_that_pytorch_lists(module, name):
    overloads = [o for o in find(name, module).overloads if o.name != DEPRECATED]
    if module == "Tensor":
        overloads = [method for o in overloads if (method := o.of_method()) is not None]
    expected = RECORDED[module][name]["listed"]
    assert not expected or [o.text for o in overloads] == expected


def as_aten(argument):
    """Return an argument of ours as ATen's schemas have it: its name, type and default."""
    default = argument.value if argument.default else None
    default = 0 if default == "contiguous_format" else default  # as ATen numbers it
    return argument.name, argument.type, default


def of_aten(text):
    """Return the overload of a schema, without what it writes into."""
    text = re.sub(r"\((?:[a-z]!?|\w -> \*)\)", "", text.removeprefix("aten::")).replace("SymInt", "int")
    head, _, returns = text.partition(" -> ")
    head = re.sub(r", (?:\*, )?Tensor (?:out|values, Tensor indices)\)$", ")", head)
    head = re.sub(r"=\[(\d+)(?:, \1)*\]", r"=\1", head)  # int[2] stride=[1, 1]
    head = re.sub(r"(\d), (?=\d)", r"\1,", head)
    return Overload.parse(f"{head} -> {returns}")


OPTIONS = ("dtype", "layout", "device", "pin_memory", "requires_grad", "out")


@pytest.mark.parametrize(("module", "name"), BUILT_IN)
def test_a_function_in_c_has_the_arguments_of_atens_schemas(module, name):
    expected = {o.name: o for o in map(of_aten, RECORDED[module][name]["aten"])}
    compared = 0
    for overload in find(name, module).overloads:
        if overload.name in expected and name not in BY_HAND:
            compared += 1
            known = [a for a in expected[overload.name].arguments if a.name not in OPTIONS]
            own = [a for a in overload.arguments if a.name not in OPTIONS]
            assert sorted(map(as_aten, own), key=str) == sorted(map(as_aten, known), key=str)
            assert [a.name for a in own if not a.by_name] == [a.name for a in known if not a.by_name]
    assert compared or not expected or name in BY_HAND


@pytest.mark.parametrize(("module", "name"), IN_PYTHON)
def test_a_function_in_python_has_pytorchs_parameters(module, name):
    (overload,) = find(name, module).overloads
    expected = RECORDED[module][name]["parameters"]
    own = [a for a in overload.arguments if module != "Tensor" or a.name not in ("input", "out")]
    assert [a.name for a in own] == [p[0] for p in expected]
    for argument, (_, default, kind) in zip(own, expected, strict=True):
        assert argument.is_required == (default is None)
        assert default is None or argument.value == literal_eval(default)
        assert argument.by_name == (kind == "KEYWORD_ONLY") or any(a.is_rest for a in own)
        assert argument.is_rest == (kind == "VAR_POSITIONAL")


COMPUTED = [(m, name) for m, known in names._IMPLEMENTATIONS.items() for name in known]
APART = {"op", "overload"}


@pytest.mark.parametrize(("module", "name"), COMPUTED)
def test_what_computes_a_function_has_parameters_of_its_schema(module, name):
    compute = names._IMPLEMENTATIONS[module][name]
    others = [n for n in names._IMPLEMENTATIONS[module] if names._IMPLEMENTATIONS[module][n] is compute]
    known = {argument for n in others for argument in find(n, module).arguments} | APART
    parameters = inspect.signature(compute).parameters.values()
    own = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.default is p.empty]
    assert {"input" if p.name == "self" else p.name for p in own} <= known | {"input"}
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_KEYWORD) for p in parameters)


ROWS = {name: ELEMENTWISE.get(name) or FUNCTIONS.get(name) for name in sorted(pytorch_names()["torch"])}
ROWS = {name: build for name, build in ROWS.items() if build and find(name)}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_function_of_the_vocabulary_has_the_defaults_of_its_schema(name):
    parameters = inspect.signature(ROWS[name]).parameters
    for argument in find(name).arguments.values():
        if argument.name in parameters and isinstance(argument.value, float):
            default = parameters[argument.name].default
            assert float(getattr(default, "value", default)) == argument.value


class Other:
    """A tensor of another library, which the binder may be told of."""

    def dim(self):
        return 0


def test_the_binder_takes_tensors_of_any_class():
    schema = find("topk")
    binder = Binder("topk", schema.overloads, Classes(Other, type, object, object))
    overload, places = binder.bind([Other()], {"k": 2, "axis": 0})
    assert overload is schema.overloads[0]
    assert places == {"input": 0, "k": "k", "dim": "axis"}
    with pytest.raises(TypeError, match=r"topk\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        binder.bind([1, 2], {})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.mm(3), "mm(): argument 'mat2' (position 1) must be Tensor, not int"),
        (lambda x: torch.mm(x, 3), "mm(): argument 'mat2' (position 2) must be Tensor, not int"),
        (lambda x: x.maximum(3), "maximum(): argument 'other' (position 1) must be Tensor, not int"),
        (lambda x: torch.maximum(x, 3), "maximum(): argument 'other' (position 2) must be Tensor, not int"),
        (lambda x: torch.addcmul(x, 2, x), "addcmul(): argument 'tensor1' (position 2) must be Tensor, not int"),
        (lambda x: x.topk(2, k=2), "topk() got multiple values for argument 'k'"),
        (lambda x: x.topk(2, size=2), "topk() got an unexpected keyword argument 'size'"),
        (lambda x: x.topk(), 'topk() missing 1 required positional arguments: "k"'),
        (lambda x: x.topk(1, 1, True, True, 1), "topk() takes from 1 to 4 positional arguments but 5 were given"),
    ],
)
def test_what_does_not_fit_is_named_as_by_pytorch(call, message):
    with pytest.raises(TypeError) as error:
        call(torch.ones(2, 2))
    assert str(error.value) == message
