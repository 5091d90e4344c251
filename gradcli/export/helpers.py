"""Small functions that exported C and JavaScript files bring along, written once: in C, from which JavaScript follows.

They stand in `helpers.c`, and those that JavaScript alone lacks in `absent.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_FUNCTION = re.compile(r"(?:^/\* (.*) \*/\n)?^(\w+) (\w+)\((.*)\)\n\{\n((?:.*\n)*?)\}$", re.MULTILINE)


def in_c() -> dict[str, list[str]]:
    """Return the lines of each function in C."""
    result = {}
    for about, kind, name, parameters, body in _functions("helpers.c"):
        comment = [f"/* {about} */"] if about else []
        result[name] = [*comment, f"static inline {kind} {name}({parameters})", "{", *body.splitlines(), "}"]
    return result


def in_javascript() -> dict[str, list[str]]:
    """Return the lines of each function in JavaScript."""
    result = {}
    for about, _, name, parameters, body in [*_functions("absent.c"), *_functions("helpers.c")]:
        comment = [f"// {about}"] if about else []
        names = ", ".join(camel(p.split()[-1].lstrip("*")) for p in parameters.split(","))
        result[camel(name)] = [*comment, f"function {camel(name)}({names}) {{", *_javascript(body), "}"]
    return result


def _functions(file: str) -> list[tuple[str, str, str, str, str]]:
    """Return the functions in a file of this folder: what each does, its type, name, parameters and body."""
    return _FUNCTION.findall(Path(__file__).with_name(file).read_text("utf-8"))


def needed(text: str, helpers: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the lines of the functions that a text calls, those first that others call.

    >>> [lines[1] for lines in needed("y = softplus(x);", in_c())]
    ['static inline double larger(double a, double b)', 'static inline double softplus(double x)']
    """
    result: dict[str, list[str]] = {}

    def add(text: str) -> None:
        for name, lines in helpers.items():
            if name not in result and re.search(rf"(?<!\w){name}\(", text):
                result[name] = lines
                add("\n".join(line for line in lines if not line.startswith(("/*", "//"))))
                result[name] = result.pop(name)  # behind those that it calls

    add(text)
    return list(result.values())


def camel(name: str) -> str:
    """Return a name as JavaScript has it.

    >>> camel("put_in_order")
    'putInOrder'
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_MATH = ("fabs=abs", "log", "exp", "log1p", "sin", "cos", "tan", "pow", "floor")
_TO_JAVASCRIPT: list[tuple[str, str]] = [
    (r"\(int\)order\b(?!\[)", "order"),
    (r"\(int\)", ""),
    (r"double (\w+)\[(\d+)\],", r"const \1 = new Float64Array(\2);\n  let"),
    (r"const double (\w+)\[\d+\] = \{", r"const \1 = ["),
    (r"^    \};$", "    ];"),
    (r"(?<!\w)(?:double|int) (\w+)", r"let \1"),
    (r"fmod\((rint\(\w+\)|\w+), (\w+)\)", r"\1 % \2"),
    (r"rint\(", "roundEven("),
    (r"\bPI\b", "Math.PI"),
    (r"INFINITY", "Infinity"),
    (r"NAN", "NaN"),
    (r"(\d)\.0\b", r"\1"),
    (r"(?<![=!<>])==(?!=)", "==="),
    (r"!=(?!=)", "!=="),
]


def _javascript(text: str) -> list[str]:
    for pattern, new in _TO_JAVASCRIPT:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    for pair in _MATH:
        name, _, own = pair.partition("=")
        text = re.sub(rf"(?<![\w.]){name}\(", f"Math.{own or name}(", text)
    text = re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", lambda m: camel(m[0]), text)
    return [line[: len(line) - len(line.lstrip())].replace("    ", "  ") + line.lstrip() for line in text.splitlines()]
