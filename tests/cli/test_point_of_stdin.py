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


def test_a_dash_alone_is_told_how_to_read_standard_input(cli):
    assert "write @- for a JSON object on standard input" in cli("backward", "y=a", "--at", "-").refused()


def test_a_misspelled_name_is_not_only_an_input_without_a_value(cli):
    message = cli("backward", "loss=x**2; y=los*2", "--at", "x=2").refused()
    assert "did you mean `loss`? else add it: --at x=2,los=1" in message
    assert "did you mean" not in cli("backward", "x1=a**2; y=x1*x2", "--at", "a=2").refused()


def test_what_the_system_does_not_use_is_left_out_as_columns_are(cli):
    point = '{"x": 2, "comment": "hot", "two words": 3, "z": null, "y": 7}'
    assert cli.json("backward", "y=x**2", "--at", "@-", stdin=point)["grad"] == {"x": 4}
    assert cli.json("jvp", "y=x**2", "--at", "x=3", "--u", "@-", stdin=point)["jvp"] == {"y": 12}
    assert "the value of `x` is not a number" in cli.refused("backward", "y=x", "--at", "@-", stdin='{"x": "2"}')
