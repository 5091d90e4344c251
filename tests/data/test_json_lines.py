"""Points in JSON Lines: numbers that JSON has as strings, answers of commands, and mistakes with their lines."""

import json

import numpy as np
import pytest
from point_files import csv, read, refused

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.parametrize("name", ["p.jsonl", "p.json"])
def test_an_answer_of_a_command_is_a_point(name):
    answers = [{"at": {"x": x}, "value": {"y": 0}} for x in ([1, "NaN"], ["-Infinity", 2.5])]
    values, _ = read(csv("\n\n".join(map(json.dumps, answers)), name), ["x"])
    np.testing.assert_array_equal(values["x"], [[1, -np.inf], [np.nan, 2.5]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no points"),
        ('{"x": 1}\n{"x": ', 'line 2: `{"x":` is not a JSON object'),
        ("[1, 2]", "line 1: `[1, 2]` is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
        ('{"x": 1}\n\n{"y": 1}', "line 3 has no value for `x`"),
        ('{"x": 1}\n{"x": [1]}', "line 2: `x` has shape (1,), and () in the first point"),
        ('{"x": 1}\n{"x": "2"}', "line 2: the value of `x` is not a number or an array of numbers"),
        ('{"x": 1}\n{"x": true}', "line 2: the value of `x` is not a number or an array of numbers"),
        ('{"x": [[1], [2, 3]]}', "has no values for `x`"),
        ('{"x": 1}\n{"x": 1' + "0" * 400 + "}", "line 2: the value of `x` is not a number or an array of numbers"),
    ],
)
def test_mistakes(text, message):
    assert message in refused(csv(text, "p.jsonl"), ["x"])


@pytest.mark.parametrize(("policy", "grads"), [("skip", "2.0\n6.0\n"), ("nan", "2.0\nnan\n6.0\n")])
def test_missing_values(cli, policy, grads):
    csv('{"x": 1, "id": "a"}\n{"x": null}\n{"x": 3}\n', "p.jsonl")
    assert cli.done("backward", "y=x**2", "--points", "p.jsonl", "--missing", policy).out == "x.grad\n" + grads


def test_columns_are_renamed_and_copied(cli):
    csv('{"flow rate": 1, "id": "a,b"}\n{"flow rate": 2, "id": 7}\n', "p.jsonl")
    result = cli.done("backward", "y=x**2", "--points", "p.jsonl", "--columns", "x=flow rate", "--keep", "id")
    assert result.out == 'id,x.grad\n"a,b",2.0\n7,4.0\n'
