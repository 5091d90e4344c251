"""JavaScript: what each operation of numbers is there, and an ES module of functions on numbers and flat arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from gradcli.codegen.helpers import camel, helpers, needed
from gradcli.codegen.line_rules import STRUCTURAL
from gradcli.codegen.lines import each_alone, filled
from gradcli.codegen.loops import LoopWriter
from gradcli.codegen.number_language import NumberLanguage, rules
from gradcli.codegen.program import Function, Program, about_lines, pattern_lines, self_test
from gradcli.graph.array import Named
from gradcli.loops.rules import RULES as RULES_OF_LOOPS

HELPERS = helpers("helpers.js")
RULES = rules("javascript", lambda name: name if name in HELPERS else f"Math.{name}")
RULES |= {"eq": "{} === {}", "ne": "{} !== {}"}
_WORDS = """
abstract arguments await boolean break byte case catch char class const continue debugger default delete do double
else enum eval export extends false final finally float for function goto if implements import in instanceof int
interface let long native new null package private protected public return short static super switch synchronized
this throw throws transient true try typeof undefined var void volatile while with yield Math Infinity NaN
Float64Array process console wrong closeTo check started selfTest Array Number Object Promise fs url globalThis
"""
RESERVED = frozenset([*_WORDS.split(), *HELPERS])


def number(value: float) -> str:
    """Return a number with all its digits.

    >>> number(2.0), number(1e300), number(-float("inf"))
    ('2', '1e300', '-Infinity')
    """
    text = repr(float(value)).removesuffix(".0").replace("e+", "e")
    return text.replace("inf", "Infinity").replace("nan", "NaN")


LANGUAGE = NumberLanguage(
    name="javascript",
    rules=RULES,
    array="const {name} = new Float64Array({size});",
    large="const {name} = new Float64Array({size});",
    table="const {{name}} = [|];",
    constant="const {name} = {value};",
    variable="let {name} = {value};",
    loop="for (let {i} = 0; {i} < {n}; {i}++)",
    whole="{}",
    number=number,
    result="const {} = {{value}};".format,
    helper=camel,
    structural=RULES_OF_LOOPS | STRUCTURAL,
    zeroed=True,
    stack=10_000_000,
    indent="  ",
)
NUMBERS = True  # whether its functions have numbers and flat arrays alone


def source(program: Program) -> str:
    """Return the file."""
    names: set[str] = set()
    functions = [line for f in program.functions for line in _function(f, names)]
    called = [line for lines in needed(names, HELPERS) for line in ("", *lines)]
    head = ["// The system below and its derivatives in JavaScript, written by gradcli.", "//"]
    head += [f"//     {line}" for line in program.system]
    # It runs where the file is: names of files are compared, since a folder may have any letters, or be a link.
    tested = self_test("self_test.js", _tested, program)
    return "\n".join([*head, *called, *functions, *tested]) + "\n"


class Body(NamedTuple):
    """The statements of a function, and the tables that they read."""

    tables: Sequence[str]
    statements: Sequence[str]


def body(function: Function, called: set[str]) -> Body:
    """Return the body of a function; what it calls is added to `called`."""
    writer = LoopWriter(LANGUAGE, function, called=called)
    arrays = [f"  const {name} = new Float64Array({n.size});" for name, n in function.results.items() if n.shape]
    written = writer.write()
    results = list(function.results)
    end = f"  return {results[0]};"
    if len(results) == 1 and not function.results[results[0]].shape:
        end = f"  return {written.pop().partition(' = ')[2]}"
    returned = [end] if len(results) == 1 else each_alone("  return [", "];", results, "  ")
    return Body(writer.tables, [*arrays, *written, *returned])


def _function(function: Function, called: set[str]) -> list[str]:
    tables, statements = body(function, called)
    head = each_alone(f"export function {function.name}(", ") {", list(function.arguments), "  ")
    return [
        "",
        *pattern_lines(function, "// {}", "export const {name} = [|];", " × ", "  "),
        *([*tables, ""] if tables else []),
        *(f"// {line}".rstrip() for line in about_lines(function)),
        *head,
        *statements,
        "}",
    ]


def _tested(f: Function, arguments: Named, expected: Named) -> list[str]:
    lines = ["  {"]
    parameters = []
    for k, (name, n) in enumerate(f.arguments.items()):
        numbers = LANGUAGE.numbers(arguments[name])
        if n.shape:
            lines += filled(f"    const in{k} = [", "];", numbers, "  ")
        parameters.append(f"in{k}" if n.shape else numbers[0])
    several = len(f.results) > 1
    lines += filled(f"    const found = {f.name}(", ");", parameters, "  ")
    for k, name in enumerate(f.results):
        lines += filled(f"    const right{k} = [", "];", LANGUAGE.numbers(expected[name]), "  ")
        one = f"found[{k}]" if several else "found"
        lines.append(f"    check({json.dumps(f'{f.name}: {name}')}, {one}, right{k});")
    return [*lines, "  }"]
