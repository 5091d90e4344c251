"""Small functions that exported C and JavaScript files bring along, written once: in C, from which JavaScript follows.

They stand in `helpers.c`, and those that JavaScript alone lacks in `absent.c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Helper:
    """A function: what it does, its type, name, parameters and lines, in C."""

    about: str
    kind: str
    name: str
    parameters: str
    body: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "\n".join(self.body)

    def c(self) -> list[str]:
        """Return the lines in C."""
        about = [f"/* {self.about} */"] if self.about else []
        return [*about, f"static inline {self.kind} {self.name}({self.parameters})", "{", *self.body, "}"]

    def javascript(self) -> list[str]:
        """Return the lines in JavaScript."""
        names = [p.split()[-1].lstrip("*") for p in self.parameters.split(",")]
        about = [f"// {self.about}"] if self.about else []
        head = f"function {camel(self.name)}({', '.join(map(camel, names))}) {{"
        return [*about, head, *_javascript(self.body), "}"]


_FUNCTION = re.compile(r"(?:^/\* (.*) \*/\n)?^(\w+) (\w+)\((.*)\)\n\{\n((?:.*\n)*?)\}$", re.MULTILINE)


def _read(name: str) -> dict[str, Helper]:
    """Return the functions in a file of this folder."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return {
        name: Helper(about, kind, name, parameters, tuple(body.splitlines()))
        for about, kind, name, parameters, body in _FUNCTION.findall(text)
    }


HELPERS = _read("helpers.c")
HELPERS_OF_JAVASCRIPT = {**_read("absent.c"), **HELPERS}


def needed(text: str, helpers: Mapping[str, Helper]) -> list[Helper]:
    """Return the helpers that a text calls, those first that others call.

    >>> [h.name for h in needed("y = softplus(x);", HELPERS)]
    ['larger', 'softplus']
    """
    found: dict[Helper, None] = {}

    def add(text: str) -> None:
        for helper in helpers.values():
            if helper not in found and re.search(rf"(?<!\w)({helper.name}|{camel(helper.name)})\(", text):
                found[helper] = None
                add(helper.text)
                found[helper] = found.pop(helper)  # behind those that it calls

    add(text)
    return list(found)


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


def _javascript(body: Iterable[str]) -> list[str]:
    text = "\n".join(body)
    for pattern, new in _TO_JAVASCRIPT:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    for pair in _MATH:
        name, _, own = pair.partition("=")
        text = re.sub(rf"(?<![\w.]){name}\(", f"Math.{own or name}(", text)
    text = re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", lambda m: camel(m[0]), text)
    return [line[: len(line) - len(line.lstrip())].replace("    ", "  ") + line.lstrip() for line in text.split("\n")]
