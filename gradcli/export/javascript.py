"""JavaScript: what each operation of numbers is there, and an ES module of functions on numbers and flat arrays."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from gradcli.export.loop_rules import STRUCTURAL
from gradcli.export.loops import LoopWriter, NumberLanguage
from gradcli.export.program import Function, Program, size_text

RULES: dict[str, str] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{}*{}",
    "div": "{}/{}",
    "neg": "-{}",
    "pow": "power({}, {})",
    "identity": "{}",
    "mod": "modulo({}, {})",
    "floor_divide": "floorDivide({}, {})",
    **{
        op: f"Math.{op}({{}})" for op in ("sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos")
    },
    **{
        op: f"Math.{op}({{}})"
        for op in ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
    },
    **{op: f"Math.{op}({{}})" for op in ("floor", "ceil", "abs")},
    **dict.fromkeys(("erf", "erfc", "gamma", "lgamma", "digamma", "polygamma"), "refused"),
    "round": "roundEven({})",
    "atan2": "Math.atan2({}, {})",
    "hypot": "Math.hypot({}, {})",
    "softplus": "softplus({})",
    "where": "{} ? {} : {}",
    "maximum": "Math.max({}, {})",
    "minimum": "Math.min({}, {})",
    "clamp": "Math.min(Math.max({}, {}), {})",
    "heaviside": "heaviside({}, {})",
    "sign": "sign({})",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "eq": "{} === {}",
    "ne": "{} !== {}",
    "and": "{} && {}",
    "or": "{} || {}",
    "not": "!{}",
}
HELPERS = {
    "power": "(a, b) => Math.abs(a) === 1 && (b !== b || Math.abs(b) === Infinity) && a === 1 ? 1 : a ** b",
    "modulo": "(a, b) => { const r = a % b; return r !== 0 && r < 0 !== b < 0 ? r + b : r; }",
    "floorDivide": "(a, b) => Math.round((a - modulo(a, b))/b)",
    "roundEven": "(x) => { const r = Math.round(x); return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r; }",
    "softplus": "(x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))",
    "heaviside": "(x, h) => x < 0 ? 0 : x > 0 ? 1 : x === 0 ? h : x",
    "sign": "(x) => (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0)",
}
_WORDS = """
abstract arguments await boolean break byte case catch char class const continue debugger default delete do double
else enum eval export extends false final finally float for function goto if implements import in instanceof int
interface let long native new null package private protected public return short static super switch synchronized
this throw throws transient true try typeof undefined var void volatile while with yield Math Infinity NaN
Float64Array process console wrong closeTo started
"""
RESERVED = frozenset(_WORDS.split()) | frozenset(HELPERS)


def number(value: float) -> str:
    """Return a number with all its digits.

    >>> number(2.0), number(1e300), number(-math.inf)
    ('2', '1e+300', '-Infinity')
    """
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if math.isnan(value) else repr(float(value)).removesuffix(".0")


LANGUAGE = NumberLanguage(
    name="javascript",
    rules=RULES,
    array="const {name} = new Float64Array({size});",
    table="const {name} = [{numbers}];",
    places="const {name} = [{numbers}];",
    scalar="const {name} = {value};",
    variable="let {name} = {value};",
    loop="for (let {i} = 0; {i} < {n}; {i}++)",
    number=number,
    helpers=HELPERS,
    starred=lambda name: f"const {name}",
    structural=STRUCTURAL,
)


def source(program: Program) -> str:
    """Return the file."""
    functions = [_function(f) for f in program.functions]
    text = "\n".join(line for lines in functions for line in lines)
    text += "modulo(" * ("floorDivide(" in text)
    helpers = [f"const {name} = {HELPERS[name]};" for name in HELPERS if f"{name}(" in text]
    head = ["// The system below and its derivatives in JavaScript, written by gradcli.", "//"]
    head += [*(f"//     {line}" for line in program.system), *([""] if helpers else []), *helpers]
    return "\n".join([*head, *(line for lines in functions for line in ["", *lines]), *_self_test(program)]) + "\n"


def _function(function: Function) -> list[str]:
    writer = LoopWriter(LANGUAGE, function)
    arrays = [f"const {name} = new Float64Array({n.size});" for name, n in function.results.items() if n.shape]
    written = writer.write()
    shapes = [
        f"{name}: {size_text(n.shape)}" for name, n in {**function.arguments, **function.results}.items() if n.shape
    ]
    about = f"// {function.about[:1].upper()}{function.about[1:]}."
    results = list(function.results)
    returned = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    return [
        *writer.tables,
        about + (f" Row after row, {', '.join(shapes)}." if shapes else ""),
        f"export function {function.name}({', '.join(function.arguments)}) {{",
        *(f"    {line}" for line in arrays),
        *written,
        f"    return {returned};",
        "}",
    ]


def _self_test(program: Program) -> list[str]:
    """Return a test that runs where the file itself is run."""
    if any(f.test is None for f in program.functions):
        return []
    lines = [
        "",
        'const started = typeof process !== "undefined" && process.argv[1];',
        "if (started && import.meta.url === new URL(`file://${started}`).href) {",
        "    let wrong = 0;",
        "    const closeTo = (name, found, expected) => {",
        "        const close = (a, b) => Object.is(a, b) || a === b || Math.abs(a - b) <= 1e-12 + 1e-9*Math.abs(b);",
        '        const flat = typeof found === "number" ? [found] : Array.from(found);',
        "        if (flat.length === expected.length && flat.every((a, i) => close(a, expected[i]))) return;",
        "        wrong = 1;",
        "        console.log(`${name} is ${flat} where gradcli has ${expected}`);",
        "    };",
    ]
    for f in program.functions:
        assert f.test is not None
        arguments, expected = f.test
        given = ", ".join(_literal(arguments[name], bool(n.shape)) for name, n in f.arguments.items())
        names = [f"{f.name}: {name}" for name in f.results]
        call = f"{f.name}({given})" if len(names) > 1 else f"[{f.name}({given})]"
        right = ", ".join(_literal(expected[name], True) for name in f.results)
        lines.append(f"    {call}.forEach((found, k) => closeTo({json.dumps(names)}[k], found, [{right}][k]));")
    return [*lines, '    console.log(wrong ? "wrong" : "as gradcli has it");', "    process.exitCode = wrong;", "}"]


def _literal(values: Any, listed: bool) -> str:
    numbers = [number(float(v)) for v in np.asarray(values).reshape(-1)]
    return f"[{', '.join(numbers)}]" if listed else numbers[0]
