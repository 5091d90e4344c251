"""Each message of PyTorch's that the table has is told somewhere, with a value for each of its places; each module of
the table of modules is there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gradcli.pytorch
from gradcli.pytorch import linalg, nn, torch
from gradcli.pytorch.messages import facts_of
from gradcli.pytorch.nn.table import rows

HERE = Path(gradcli.pytorch.__file__).parent
PARAGRAPHS = (HERE / "messages.txt").read_text("utf-8").rstrip().split("\n\n")
OWN = "own texts"  # errors that have PyTorch's class, and not its text
TEXTS = {
    name: text * (key != OWN)
    for key, text in ((head.rpartition(": ")[0], text) for head, _, text in (p.partition("\n") for p in PARAGRAPHS))
    for name in (text.replace("\n", " ").split("; ") if key == OWN else [key])
}


TELLING = {
    "torch_error": 0, "message": 0, "warn": 0, "warn_once": 0, "check_unmapped": 0, "raise_if": 1,
}  # where the name is  # fmt: skip


def names(node):
    if isinstance(node, ast.IfExp):
        return names(node.body) + names(node.orelse)
    if isinstance(node, ast.JoinedStr):
        pattern = "".join(re.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in node.values)
        return [name for name in TEXTS if re.fullmatch(pattern, name)]
    return [node.value]


def calls():
    for path in HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            at = TELLING.get(getattr(getattr(node, "func", None), "id", ""))
            if at is not None and not isinstance(node.args[at], ast.Name | ast.Attribute):
                several = any(isinstance(a, ast.Starred) for a in node.args)
                yield from ((name, 99 if several else len(node.args) - 1 - at) for name in names(node.args[at]))


def test_every_message_is_told_with_its_values():
    heads = [p.partition("\n")[0].rpartition(": ")[0] for p in PARAGRAPHS]
    own = [n for p in PARAGRAPHS if p.startswith(OWN) for n in p.partition("\n")[2].replace("\n", " ").split("; ")]
    assert len([h for h in heads if h != OWN]) + len(own) == len(TEXTS)  # no name is there twice
    told_with = dict(calls())
    assert sorted(told_with) == sorted(TEXTS)
    for name, count in told_with.items():
        text = TEXTS[name].replace("{{", "").replace("}}", "")
        places = re.findall(r"\{(\d*)", text)
        needed = len(places) if "" in places else max((int(p) + 1 for p in places), default=0)
        assert count >= needed, name


def test_every_module_of_the_table_is_there_where_pytorch_has_it():
    for name, row in rows().items():
        if not name.startswith("_"):
            assert getattr(nn, name).__module__ == f"torch.nn.modules.{row.home}"


# Errors that are no message of PyTorch's: what Python asks of `__getattr__`, what ends the run, and damaged files.
ELSEWHERE = {"AttributeError", "MissingError", "Damaged", "ModuleNotFoundError"}
# A text of several messages; an error that is caught at once; and one of Python's, with another name in it.
RAISED_AGAIN = {
    "generator.py": {"LookupError"},
    "testing.py": {"AssertionError"},
    "func.py": {"ValueError"},
    "modules.py": {"TypeError"},
}


def test_every_error_has_a_key_in_the_table():
    for path in sorted(HERE.rglob("*.py")):
        raised = {
            getattr(node.exc.func, "id", "")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        }
        errors = {name for name in raised if name[:1].isupper()}
        assert errors - ELSEWHERE <= RAISED_AGAIN.get(path.name, set()), path


def test_an_error_of_the_table_knows_its_values_in_a_class_of_its_own():
    with pytest.raises(linalg.LinAlgError) as error:
        linalg.inv(torch.zeros(2, 2))
    assert facts_of(error.value).key == "singular matrix in inv"
    assert facts_of(error.value).values == ("", 1)
    with pytest.raises(TypeError) as missing:
        torch.roll()
    assert facts_of(missing.value).key == "arguments that are missing"
    assert facts_of(missing.value).values[0] == "roll"
