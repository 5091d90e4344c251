"""Points, shapes and cotangents as the user types them: `x=[1,2],M=@m.npy`, `x=3,M=2x2`, `1,10,100`, `onehot:y1`.

Values are read as constant nodes, or as files that are loaded later.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from gradcli.errors import Fix, InputError, Source, Span
from gradcli.files import printable, read_path, read_text, standard_input
from gradcli.graph.array import json_array
from gradcli.graph.names import NAME, normal
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import Shape, check_size
from gradcli.lang.builder import build
from gradcli.lang.characters import check_characters
from gradcli.lang.expressions import read_expression
from gradcli.lang.own_names import with_identifiers
from gradcli.lang.statements import check_name, file_named, read_key
from gradcli.vocabulary import CONSTANTS

Value = Node | Path

MAX_JSON_BYTES = 2**28  # of a file that holds a point
STANDARD_POINT = "@-"  # the point that standard input holds

_NAME = re.compile(rf"\s*({NAME})\s*(\[[\d\s,]*\])?\s*=(?!=)", re.ASCII)
_SHAPE = re.compile(rf"\s*({NAME})\s*=\s*(scalar|\d{{1,18}}(?:[x×]\d{{1,18}})*)\s*", re.ASCII)
_SPACED = re.compile(
    rf"[\s;]+(?={NAME}\s*(?:\[[\d\s,]*\])?\s*=(?!=))", re.ASCII
)  # parts two assignments, as a comma should
_NUMBERS = re.compile(rf"({NAME})\s*=\s*([-+]?\d+(?:\s*,\s*[-+]?[\d.]+(?:e[-+]?\d+)?)+)(?=\s*(?:,|\Z))", re.ASCII)
_DECIMAL = re.compile(r"([-+]?\d+),(\d+(?:e[-+]?\d+)?)", re.ASCII)
_JSON_POINT = re.compile(r"\s*@(?:-\s*$|.*\.json\s*$)", re.ASCII | re.IGNORECASE)
_STEM = re.compile(rf"\s*({NAME})", re.ASCII)
_ITEM = re.compile(rf"({NAME})(\[[\d,\s]+\])?", re.ASCII)


class Assignment(NamedTuple):
    """`NAME=VALUE` or `NAME[i,j]=VALUE` in an option.

    One of a JSON object is `optional`: it is left out where the system has no such name, as a column of a file of
    points is; its value may be the error of one that is not a number.
    """

    name: str
    key: tuple[int, ...] | None
    value: Value | InputError
    span: Span
    optional: bool = False


class Cotangent(NamedTuple):
    """A value of `--v`: a keyword (`ones`, `onehot`, `stdin`), values in order, or values by name."""

    source: Source
    keyword: str | None = None
    target: str = ""  # of onehot
    values: tuple[Value, ...] = ()
    named: tuple[Assignment, ...] = ()

    @property
    def span(self) -> Span:
        """The whole option."""
        return Span(self.source, 0, len(self.source.text))


def read_point(text: str, option: str = "--at") -> list[Assignment]:
    """Return the assignments of one `--at`, or of another option that gives values to names.

    Errors: `InputError`, with its position in the option.

    >>> [(a.name, a.value.shape) for a in read_point("x0=1, M=[[1,2],[3,4]]")]
    [('x0', ()), ('M', (2, 2))]
    """
    source = Source(with_identifiers(text), option)
    hint = "repeat --at for another point" if option == "--at" else "each name is given once"
    return _once([a for start, end in _parts(source) for a in _assignments(source, start, end)], hint)


def _assignments(source: Source, start: int, end: int) -> list[Assignment]:
    """Return the assignments of one part of a point: `NAME=VALUE`, or all those of `@point.json`, or of `@-`."""
    stripped = source.text[start:end].strip()
    span = Span(source, start, end)
    path = file_named(stripped, span)
    if path is None:
        return [_assignment(source, start, end)]
    if stripped == STANDARD_POINT:
        values = _json_point(read_text(standard_input(), "standard input", MAX_JSON_BYTES), "standard input", span)
    elif path.suffix.lower() == ".json":
        values = _json_point(read_path(str(path), MAX_JSON_BYTES), f"`{printable(path.name)}`", span)
    else:
        hint = f"an array is NAME=@FILE, a point @point.json, and many points are `--points {stripped[1:]}`"
        raise InputError("a point is NAME=VALUE, or a .json file", span, hint)
    named = {with_identifiers(name): value for name, value in values.items()}
    return [_json_assignment(name, value, span) for name, value in named.items() if _ITEM.fullmatch(name)]


def _json_point(text: str, label: str, span: Span) -> dict[str, Any]:
    """Return the values in a text of JSON: an object of them, or the answer of a command, whose `at` has them.

    Errors: `InputError` for anything else.
    """
    import json

    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        if not text.strip():
            raise InputError(f"{label} is empty", span, 'a point is an object such as {"x": 1}') from None
        lines = text.count("\n", 0, len(text.rstrip()))
        hint = "it has several lines, and a point is one object: `head -n 1` takes the first" if lines else None
        raise InputError(f"{label} is not a JSON object", span, hint) from None
    if isinstance(result, dict) and isinstance(result.get("at"), dict):
        result = result["at"]
    if not isinstance(result, dict) or not result:
        raise InputError(f"{label} has no values", span, 'it is an object such as {"x": 1, "M": [[1, 2], [3, 4]]}')
    return result


def _json_assignment(name: str, value: Any, span: Span) -> Assignment:
    """Return the assignment of an item in a JSON object: a number, or nested lists of numbers."""
    match = _ITEM.fullmatch(name)
    assert match is not None
    key = None if match[2] is None else read_key(match[2], span, "given", "x[0]")
    return Assignment(normal(match[1]), key, _json_value(name, value, span), span, optional=True)


def _json_value(name: str, value: Any, span: Span) -> Value | InputError:
    """Return a number or an array as a constant.

    The error of what is neither is returned, not raised: it counts only where the system has such a name.
    """
    array = json_array(value)
    if array is None:
        what = "empty" if value == [] else "not a number or an array of numbers"
        return InputError(f"the value of `{name}` is {what}", span)
    return const(tuple(array.reshape(-1).tolist()), check_size(array.shape))


def read_shapes(text: str) -> dict[str, Shape]:
    """Return the shapes of one `--shape`.

    >>> read_shapes("x=3,M=2x2,c=scalar")
    {'x': (3,), 'M': (2, 2), 'c': ()}
    """
    source = Source(with_identifiers(text), "--shape")
    shapes: dict[str, Shape] = {}
    for start, end in _parts(source):
        part = source.text[start:end]
        span = Span(source, start, max(end, start + 1))
        match = _SHAPE.fullmatch(part)
        if not match:
            name = result[1] if (result := _STEM.match(part)) else "x"
            hint = f"for example --shape {name}=3, or --shape {name}=2x2"
            raise InputError("a shape is NAME=SIZE or NAME=ROWSxCOLUMNS", span, hint)
        name, sizes = _name(source, start + match.start(1), match[1]), match[2]
        if name in shapes:
            raise InputError(f"`{name}` is given two shapes", span)
        shape = () if sizes == "scalar" else tuple(map(int, re.split("[x×]", sizes)))
        if 0 in shape:
            raise InputError(f"`{name}` would be empty", span, "sizes are counted from 1")
        try:
            shapes[name] = check_size(shape)
        except InputError as error:
            raise error.at(span) from None
    return shapes


def read_in_order(text: str, option: str) -> tuple[Value, ...] | None:
    """Return the values of an option that gives them without names; None where it has names, or is a point of JSON.

    >>> [value.shape for value in read_in_order("1, [2, 3]", "--u")], read_in_order("x=1", "--u")
    ([(), (2,)], None)
    """
    text = with_identifiers(text)
    source = Source(text, option)
    parts = _parts(source)
    if any(_NAME.match(text, start, end) or _JSON_POINT.match(text, start, end) for start, end in parts):
        return None
    return tuple(_value(source, start, end) for start, end in parts)


def read_cotangent(text: str) -> Cotangent:
    """Return the value of one `--v`.

    >>> read_cotangent("onehot:y1").target
    'y1'
    """
    text = with_identifiers(text)
    source = Source(text, "--v")
    stripped = text.strip()
    if stripped == "-":
        return Cotangent(source, "stdin")
    if stripped == "ones":
        return Cotangent(source, "ones")
    if re.match(r"onehot\s*(:|$)", stripped):
        target = stripped.removeprefix("onehot").removeprefix(":").strip()
        if not target:
            raise InputError(
                "`onehot` needs an output",
                Span(source, 0, len(text)),
                "for example onehot:1, onehot:y1 or onehot:y[0,1]",
            )
        return Cotangent(source, "onehot", target)
    parts = _parts(source)
    if any(_NAME.match(text, start, end) for start, end in parts):
        named = [_assignment(source, start, end) for start, end in parts]
        return Cotangent(source, named=tuple(_once(named, "repeat --v for another call of backward")))
    return Cotangent(source, values=tuple(_value(source, start, end) for start, end in parts))


def read_names(text: str, option: str) -> list[str]:
    """Return the names in a list such as `x1,x0`.

    >>> read_names("x1, x0", "--wrt")
    ['x1', 'x0']
    """
    text = with_identifiers(text)
    source = Source(text, option)
    names: dict[str, None] = {}  # in order, and looked up at once: there may be 100,000
    for start, end in _parts(source):
        item = text[start:end].strip()
        span = Span(source, start, max(end, start + 1))
        match = _ITEM.fullmatch(item)
        if not match:
            raise InputError("a name is needed here", span, f"for example {option} x0,x1")
        name = _name(source, text.index(item, start), match[1]) + (match[2] or "")
        if name in names:
            raise InputError(f"`{name}` is named twice", span)
        names[name] = None
    return [*names]


def _parts(source: Source) -> list[tuple[int, int]]:
    """Return start and end of each part between commas outside of brackets."""
    depth, start, parts = 0, 0, []
    for token in re.finditer(r"[\[\](),]", source.text):
        if token.group() in "[(":
            depth += 1
        elif token.group() in "])":
            depth -= 1
        elif depth <= 0:
            parts.append((start, token.start()))
            start = token.end()
    parts.append((start, len(source.text)))
    for first, end in parts:
        if not source.text[first:end].strip():
            index = min(first, max(0, len(source.text) - 1))
            raise InputError(
                "something is missing here", Span(source, index, index + 1), "separate values with one comma"
            )
    return parts


def _assignment(source: Source, start: int, end: int) -> Assignment:
    match = _NAME.match(source.text, start, end)
    if not match:
        span = Span(source, start, end)
        text = span.text.strip()
        name, equals, _ = text.partition("=")
        if name and equals and not re.fullmatch(NAME, name.strip()):
            raise InputError(f"`{name.strip()[:40]}` is not a name", span, "write NAME=VALUE")
        if name and equals:
            sign = Span(source, start + text.index("="), end)
            raise InputError("`==` compares two values", sign, f"write {name.strip()}=VALUE with one `=`")
        if re.fullmatch(NAME, text):
            raise InputError(f"`{text}` has no value", span, f"write {text}=1, or a vector {text}=[1,2]")
        raise _without_name(span)
    span = Span(source, match.start(1), match.end(1) if match[2] is None else match.end(2))
    name = _name(source, match.start(1), match[1])
    check_name(name, span)
    written = source.text[match.end() : end].strip()
    key = None if match[2] is None else read_key(match[2], span, "given", f"{name}[0]={written[:40]}")
    if not written:
        raise InputError(f"`{name}=` is followed by nothing", span, "write NAME=VALUE")
    if spaced := _SPACED.search(source.text, match.end(), end):
        sign = Span(source, *spaced.span())
        fix = Fix(Span(source, start, end), _SPACED.sub(",", source.text[start:end].strip()))
        raise InputError("values are separated by commas", sign, fix=fix)
    return Assignment(name, key, _value(source, match.end(), end), span)


def _without_name(span: Span) -> InputError:
    """Return the error of a value without a name: digits after a decimal comma, or an element of a list."""
    hint = "write NAME=VALUE; a vector is written x=[1,2]"
    if span.source.text.strip() == "-":
        hint = f"write {STANDARD_POINT} for a JSON object on standard input, or NAME=VALUE"
    for numbers in _NUMBERS.finditer(span.source.text):
        if numbers.start() <= span.start < numbers.end():
            name, typed = numbers.groups()
            decimal = _DECIMAL.fullmatch(typed)
            vector = f"{name}=[{typed}]"
            text = f"{name}={decimal[1]}.{decimal[2]}" if decimal else vector
            hint = f"write `{text}`" + (f"; a vector is written `{vector}`" if decimal else "")
            return InputError("a name is missing", span, hint, fix=Fix(Span(span.source, *numbers.span()), text))
    return InputError("a name is missing", span, hint)


def _name(source: Source, start: int, typed: str) -> str:
    """Return a name in the form in which names are compared."""
    check_characters(source, typed, start)
    return normal(typed)


def _once(assignments: list[Assignment], hint: str) -> list[Assignment]:
    """Return the assignments.

    Errors: `InputError` where a name, or an element, has two values.
    """
    seen: dict[str, set[tuple[int, ...] | None]] = {}
    for a in assignments:
        before = seen.setdefault(a.name, set())
        if before and (a.key is None or None in before or a.key in before):
            raise InputError(f"`{a.span.text}` is given twice", a.span, hint)
        before.add(a.key)
    return assignments


def _value(source: Source, start: int, end: int) -> Value:
    text = source.text[start:end].strip()
    if file := file_named(text, Span(source, start, end)):
        return file
    expression = read_expression(source, start, end)
    free = next((n for n in expression.names if n.id not in CONSTANTS), None)
    if free is not None:
        hint = "a value is a number, or a list such as [1, 2]"
        raise InputError(f"`{free.id}` is not a number", expression.span(free), hint)
    return build(expression, {})
