"""Text → statements: assignments, declarations and bare expressions."""

from __future__ import annotations

import ast
import keyword
import re
from pathlib import Path
from typing import NamedTuple

from gradcli.errors import Fix, InputError, Source, Span, nearest
from gradcli.graph.kinds import KINDS, one_kind
from gradcli.graph.names import NAME, normal
from gradcli.lang.expressions import Expression, read_expressions
from gradcli.lang.loops import Loop
from gradcli.lang.pieces import PAIRS, TARGET, split

_OF_A_KIND = re.compile(rf"input\s+({NAME})\s+({NAME}(?:\s+{NAME})*)\s*=(?!=)\s*")
_NO_VALUE = re.compile(rf"input\s+({NAME})\s*$")
_NO_NAMES = frozenset(["inf", "nan", *keyword.kwlist])
_FOR = re.compile(r"[()\[\]{}]|(?<!\w)for(?!\w)")
_UNREAD = Expression(ast.Constant(0), Source(""), 0)  # of a statement whose expression is parsed with the others'
_LOOP = "elements are assigned by `y[i] = 2*x[i] for i in 0..9`"


class Clauses(NamedTuple):
    """The spans of `[i]` and of `for i in 0..9` in `y[i] = EXPRESSION for i in 0..9`."""

    key: Span
    loops: Span


class Statement(NamedTuple):
    """`NAME = EXPRESSION`, `NAME[i, j] = EXPRESSION`, `input NAME [KIND] = VALUE`, or a bare expression (no name).

    In `NAME[i] = EXPRESSION for i in 0..9`, `clauses` are the spans of the loop's text, and `loop` is the loop itself.
    """

    name: str | None
    key: tuple[int, ...] | None
    declares: bool
    expression: Expression
    start: int  # of the name; of the whole where there is none
    end: int
    file: Path | None = None  # which has the value of an input
    kind: str | None = None  # that the input is declared to be of, such as `symmetric`
    clauses: Clauses | None = None
    loop: Loop | None = None

    @property
    def assembles(self) -> bool:
        """Whether it assigns elements, and not the whole."""
        return self.key is not None or self.clauses is not None

    @property
    def written(self) -> str:
        """The statement as the user wrote it, on one line."""
        right = self.expression.span(self.expression.tree).line
        if self.clauses is not None:
            return f"{self.span.line} = {right} {self.clauses.loops.line}"
        return f"{self.name if self.key is None else self.span.line} = {right}"

    @property
    def span(self) -> Span:
        """The span of the name, or of the whole where there is none."""
        return Span(self.expression.source, self.start, self.end)


def read_statements(source: Source) -> list[Statement]:
    """Return the statements of a text, separated by `;` or newlines; `#` starts a comment.

    Errors: `InputError`, with its position.

    >>> [s.name for s in read_statements(Source("a = 1; b = 2  # two"))]
    ['a', 'b']
    """
    heads = [_head(source, text, start) for text, start in split(source)]
    files = [
        file_named(text, Span(source, offset, offset + len(text))) if s.declares else None for s, text, offset in heads
    ]
    texts = [(text if file is None else "0", offset) for (_, text, offset), file in zip(heads, files, strict=True)]
    expressions = read_expressions(source, texts)
    return [
        Statement(s.name, s.key, s.declares, expression, s.start, s.end, file, s.kind, s.clauses)
        for (s, *_), file, expression in zip(heads, files, expressions, strict=True)
    ]


def file_named(value: str, span: Span) -> Path | None:
    """Return the file that a value names, or None for one that is typed.

    >>> str(file_named("@x.npy", Span(Source("@x.npy"), 0, 6)))
    'x.npy'
    """
    if not value.startswith("@"):
        return None
    if len(value) == 1 or "\0" in value:
        raise InputError("a file's name is missing", span, "for example @x.npy")
    return Path(value[1:])


def _head(source: Source, text: str, start: int) -> tuple[Statement, str, int]:
    """Return a statement before its expression is parsed, with the expression's text and offset."""
    match = TARGET.match(text)
    if not match:
        if declared := _OF_A_KIND.match(text):
            return _of_a_kind(source, text, start, declared)
        if declared := _NO_VALUE.match(text):
            whole = Span(source, start, start + len(text))
            span = Span(source, start + declared.start(1), start + declared.end(1))
            raise InputError("an input needs a value", span, fix=Fix(whole, f"input {declared[1]} = 1"))
        if (first := for_at(text)) < len(text) and first:
            span = Span(source, start + first, start + len(text))
            raise InputError("`for` assigns elements of a vector", span, _LOOP)
        return Statement(None, None, False, _UNREAD, start, start + len(text)), text, start
    declares, typed, subscript = match.groups()
    first, last = match.span(2)
    name, span = normal(typed), Span(source, start + first, start + (match.end(3) if subscript else last))
    if name in _NO_NAMES:
        check_name(name, span)
    behind = match.end()
    body = text[behind:]
    if not body:
        raise InputError(f"`{name} =` is followed by nothing", span, "a statement is NAME = EXPRESSION")
    first = for_at(body) if "for" in body else len(body)
    if first < len(body):
        loops = Span(source, start + behind + first, start + len(text))
        if not subscript or declares or not body[:first].strip():
            raise InputError("`for` assigns elements of a vector", loops, _LOOP)
        clauses = Clauses(Span(source, start + match.start(3), start + match.end(3)), loops)
        assigned = Statement(name, None, False, _UNREAD, span.start, span.end, clauses=clauses)
        return assigned, body[:first].rstrip(), start + behind
    key = read_key(subscript, span, "assigned", f"`{name}[0] = …`, or {_LOOP}") if subscript else None
    if declares and key is not None:
        raise InputError("an input must be declared as a whole", span, f"for example `input {name} = [1, 2]`")
    return Statement(name, key, bool(declares), _UNREAD, span.start, span.end), body, start + behind


def for_at(text: str, start: int = 0) -> int:
    """Return where the first `for` outside of brackets begins; the length of the text where there is none.

    >>> for_at("x[i] for i in 0..9"), for_at("[a for a in b]")
    (5, 14)
    """
    depth = 0
    for token in _FOR.finditer(text, start) if "for" in text else ():
        if token.group() == "for":
            if not depth:
                return token.start()
        else:
            depth += 1 if token.group() in PAIRS else -1
    return len(text)


def _of_a_kind(source: Source, text: str, start: int, match: re.Match[str]) -> tuple[Statement, str, int]:
    """Return what `_head` does, of a declaration such as `input P symmetric = [[2,1],[1,3]]`."""
    for word in re.finditer(NAME, match[2]):
        if word.group() not in KINDS:
            first = start + match.start(2) + word.start()
            span = Span(source, first, first + len(word.group()))
            raise InputError(f"`{word.group()}` is not a kind of input", span, nearest(word.group(), KINDS, "kinds"))
    span = Span(source, start + match.start(1), start + match.end(1))
    kind = one_kind(match[2].split())
    if kind is None:
        words = Span(source, start + match.start(2), start + match.end(2))
        raise InputError(f"`{match[2]}` is more than one kind of input", words, "declare one of them")
    value = text[match.end() :]
    declared, *_ = _head(source, f"input {match[1]} = {value}", start)  # checks the name and the value
    return declared._replace(start=span.start, end=span.end, kind=kind), value, start + match.end()


def check_name(name: str, span: Span) -> None:
    """Check that a name can be read where it is used."""
    if name in ("inf", "nan"):
        raise InputError(f"`{name}` is a constant", span, f"call it `{name}_`")
    if keyword.iskeyword(name):
        raise InputError(f"`{name}` is a word of Python's", span, f"call it `{name}_`")


def read_key(subscript: str, span: Span, done: str, example: str) -> tuple[int, ...]:
    """Return the indices of an element, `[0]` or `[1, 2]`, with which something is `done`.

    >>> read_key("[1, 2]", Span(Source("y[1, 2] = x"), 0, 7), "assigned", "`y[0] = …`")
    (1, 2)
    """
    parts = [part.strip() for part in subscript[1:-1].split(",")]
    if not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        raise InputError(f"an element is {done} by integers from 0", span, f"for example {example}")
    return tuple(map(int, parts))
