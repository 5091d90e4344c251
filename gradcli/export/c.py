"""C99: what each operation of numbers is there, and the file of functions: numbers in, pointers out, no allocation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.export.loop_rules import STRUCTURAL
from gradcli.export.loops import LoopWriter, NumberLanguage
from gradcli.export.program import Function, Program, size_text
from gradcli.graph.node import Node

RULES: dict[str, str] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{}*{}",
    "div": "{}/{}",
    "neg": "-{}",
    "pow": "pow({}, {})",
    "identity": "{}",
    "mod": "gradcli_mod({}, {})",
    "floor_divide": "gradcli_floor_divide({}, {})",
    **{
        op: f"{op}({{}})"
        for op in ("sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan")
    },
    **{op: f"{op}({{}})" for op in ("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{op: f"{op}({{}})" for op in ("erf", "erfc", "lgamma", "floor", "ceil")},
    "gamma": "tgamma({})",
    "digamma": "refused",
    "polygamma": "refused",
    "round": "rint({})",
    "abs": "fabs({})",
    "atan2": "atan2({}, {})",
    "hypot": "hypot({}, {})",
    "softplus": "gradcli_softplus({})",
    "where": "{} ? {} : {}",
    "maximum": "gradcli_maximum({}, {})",
    "minimum": "gradcli_minimum({}, {})",
    "clamp": "gradcli_minimum(gradcli_maximum({}, {}), {})",
    "heaviside": "gradcli_heaviside({}, {})",
    "sign": "gradcli_sign({})",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "and": "{} && {}",
    "or": "{} || {}",
    "not": "!{}",
}
HELPERS = {
    "gradcli_mod": "(double a, double b) { double r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }",
    "gradcli_floor_divide": "(double a, double b) { double r = fmod(a, b);\n"
    "    return rint((a - (r != 0 && (r < 0) != (b < 0) ? r + b : r))/b); }",
    "gradcli_softplus": "(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) + 0*x; }",
    "gradcli_maximum": "(double a, double b) { return a > b || a != a ? a : b; }",
    "gradcli_minimum": "(double a, double b) { return a < b || a != a ? a : b; }",
    "gradcli_heaviside": "(double x, double h) { return x < 0 ? 0 : x > 0 ? 1 : x == 0 ? h : x; }",
    "gradcli_sign": "(double x) { return (double)(x > 0) - (double)(x < 0); }",
}
# What a function's names must not be: words of C's, of its library, and what the file uses.
_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main printf
j0 j1 jn y0 y1 yn gamma signgam exp log sin cos tan pow sqrt fabs floor ceil div abs remainder index time
NAN INFINITY NULL wrong close_to erf erfc lgamma tgamma hypot cbrt fmod rint round
"""
RESERVED = frozenset(_WORDS.split()) | frozenset(HELPERS)


def number(value: float) -> str:
    """Return a double with all its digits.

    >>> number(2.0), number(0.1), number(math.inf)
    ('2.0', '0.1', 'INFINITY')
    """
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return "NAN" if math.isnan(value) else repr(float(value))


LANGUAGE = NumberLanguage(
    name="c",
    rules=RULES,
    array="double {name}[{size}];",
    table="static const double {name}[{size}] = {{{numbers}}};",
    places="static const int {name}[{size}] = {{{numbers}}};",
    scalar="const double {name} = {value};",
    variable="double {name} = {value};",
    loop="for (int {i} = 0; {i} < {n}; {i}++)",
    number=number,
    helpers=HELPERS,
    starred=lambda name: f"*{name}",
    structural=STRUCTURAL,
)


def source(program: Program) -> str:
    """Return the file."""
    functions = [_function(f) for f in program.functions]
    text = "\n".join(line for lines in functions for line in lines)
    used = [name for name in HELPERS if f"{name}(" in text]
    head = ["/* The system below and its derivatives in C, written by gradcli.", ""]
    head += [*(f"       {line.replace('*/', '* /')}" for line in program.system), "*/", "", "#include <math.h>"]
    tested = _self_test(program)
    head += ["#include <stdio.h>"] if tested else []
    helpers = [f"static double {name}{HELPERS[name]}" for name in used]
    return (
        "\n".join(
            [
                *head,
                *([""] if helpers else []),
                *helpers,
                *(line for lines in functions for line in ["", *lines]),
                *tested,
            ]
        )
        + "\n"
    )


def _function(function: Function) -> list[str]:
    writer = LoopWriter(LANGUAGE, function)
    written = writer.write()
    unused = [name for name, n in function.arguments.items() if n not in function.nodes]
    lines = [f"/* {function.about[:1].upper()}{function.about[1:]}."]
    shapes = [
        f"{name}: {size_text(n.shape)}" for name, n in {**function.arguments, **function.results}.items() if n.shape
    ]
    lines[0] += f" Row after row, {', '.join(shapes)}. */" if shapes else " */"
    head = [*(_argument(name, n) for name, n in function.arguments.items())]
    head += [f"double *{name}" for name in function.results]
    lines += [*writer.tables, f"void {function.name}({', '.join(head)})", "{"]
    return [*lines, *(f"    (void){name};" for name in unused), *written, "}"]


def _argument(name: str, node: Node) -> str:
    return f"const double *{name}" if node.shape else f"double {name}"


def _self_test(program: Program) -> list[str]:
    """Return a main function that compares with gradcli's numbers, compiled with -DNAME_TEST."""
    if any(f.test is None for f in program.functions):
        return []
    macro = f"{program.name.upper()}_TEST"
    lines = [
        "", f"#ifdef {macro}",
        "static int close_to(const char *name, const double *found, const double *expected, int n)",
        "{",
        "    for (int i = 0; i < n; i++) {",
        "        double a = found[i], b = expected[i];",
        "        if (a == b || (a != a && b != b) || fabs(a - b) <= 1e-12 + 1e-9*fabs(b)) continue;",
        '        printf("%s[%d] is %.17g where gradcli has %.17g\\n", name, i, a, b);',
        "        return 0;",
        "    }",
        "    return 1;",
        "}",
        "",
        "int main(void)",
        "{",
        "    int wrong = 0;",
    ]  # fmt: skip
    for f in program.functions:
        lines += _tested(f)
    return [*lines, '    printf(wrong ? "wrong\\n" : "as gradcli has it\\n");', "    return wrong;", "}", "#endif"]


def _tested(f: Function) -> list[str]:
    assert f.test is not None
    arguments, expected = f.test
    lines = ["    {"]
    given = []
    for k, (name, node) in enumerate(f.arguments.items()):
        if node.shape:
            lines.append(f"        const double in{k}[{node.size}] = {_braced(arguments[name])};")
        given.append(f"in{k}" if node.shape else number(float(arguments[name])))
    for k, (name, node) in enumerate(f.results.items()):
        lines.append(
            f"        double out{k}[{node.size}]; const double right{k}[{node.size}] = {_braced(expected[name])};"
        )
        given.append(f"out{k}")
    lines.append(f"        {f.name}({', '.join(given)});")
    for k, (name, node) in enumerate(f.results.items()):
        lines.append(f'        wrong |= !close_to("{f.name}: {name}", out{k}, right{k}, {node.size});')
    return [*lines, "    }"]


def _braced(values: Any) -> str:
    return "{" + ", ".join(number(float(v)) for v in np.asarray(values).reshape(-1)) + "}"
