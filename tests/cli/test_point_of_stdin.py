"""`--at @-`: the point is a JSON object on standard input, such as the answer of another command."""

import json

import pytest

ANSWER = json.dumps({"at": {"a": 2, "b": [3, 4]}, "value": {"y": 1}})


@pytest.mark.parametrize("text", [ANSWER, '{"a": 2, "b": [3, 4]}', '\n{"b": [3, 4],\n"a": 2.0}\n'])
def test_the_point_is_read_once_for_all_uses(cli, text):
    outcome = cli("backward", "y=a*sum(b)", "--at", "@-", "-f", "json", stdin=text)
    assert outcome.objects[0]["grad"] == {"a": 7.0, "b": [2.0, 2.0]}


def test_some_values_may_be_typed_beside_it(cli):
    outcome = cli("backward", "y=a*b*c", "--at", "@-, c=5", "-f", "json", stdin='{"a": 2, "b": 3}')
    assert outcome.objects[0]["grad"] == {"a": 15.0, "b": 10.0, "c": 6.0}


@pytest.mark.parametrize(
    ("arguments", "text", "says"),
    [
        (("y=a", "--at", "@-"), "", "standard input is empty"),
        (("y=a", "--at", "@-"), '{"a":', "standard input is not a JSON object"),
        (("y=a", "--at", "@-"), "[1]", "standard input has no values"),
        (("y=a", "--at", "@-", "--at", "@-"), '{"a": 1}', "put the point into a file: --at @point.json"),
        (("y=a", "--at", "@-", "--v", "-"), '{"a": 1}', "put the point into a file: --at @point.json"),
        (("-F", "-", "--at", "@-"), '{"a": 1}', "put the system into a file: -F system.grad"),
        (("--at", "@-"), '{"a": 1}', "no system is given: standard input is read for --at @-"),
    ],
)
def test_mistakes(cli, arguments, text, says):
    assert says in cli("backward", *arguments, stdin=text).refused()
