"""Text → statements: assignments, declarations and bare expressions, each expression parsed by `ast`.

Nothing here knows shapes or values; see `builder.py` for what an expression means.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gradcli.errors import Fix, InputError, Source, Span, nearest
from gradcli.graph.kinds import KINDS, one_kind
from gradcli.graph.names import NAME, normal
from gradcli.lang.advice import FOREIGN, Advice, module_of, powered, product, refused, spelling
from gradcli.lang.characters import check_characters
from gradcli.lang.loops import Loop

_TOKEN = re.compile(r"[()\[\]{};\n]")
_PLAIN = re.compile(
    r"[^()\[\]{};\n]*+(?:\([^()\[\]{};\n]*+\)[^()\[\]{};\n]*+)*+(?=[;\n]|\Z)"
)  # no brackets in brackets
_COMMENT = re.compile(r"#[^\n]*")
_CONTINUED = re.compile(r"\\ *\n")
_OF_A_KIND = re.compile(rf"input\s+({NAME})\s+({NAME}(?:\s+{NAME})*)\s*=(?!=)\s*")
_NO_VALUE = re.compile(rf"input\s+({NAME})\s*$")
_OPERATOR = re.compile(r"\s*(\*\*|[-+*/@^])\s*$")  # that a text ends with
_TARGET = re.compile(rf"(input\s+)?({NAME})\s*(\[[^\]=]*\])?\s*=(?!=)\s*", re.ASCII)
_WIDE = re.compile(r"[^\x00-\]_-\x7f]")  # characters that `ast` counts as several
_NO_NAMES = frozenset(["inf", "nan", *keyword.kwlist])
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_SHOWN = 40  # characters of an expression in advice
_FOR = re.compile(r"[()\[\]{}]|(?<!\w)for(?!\w)")
_LINES = 1000  # that `ast` reads at a time
_LOOP = "elements are assigned by `y[i] = 2*x[i] for i in 0..9`"
_LISTED = (ast.NamedExpr, ast.Starred)  # expressions that `ast` parses in a list, but not alone
_MAX_DEPTH = 150  # Python's own parser stops at 200 brackets


class Expression(NamedTuple):
    """An expression parsed by `ast`, with the offsets that map its columns back to the user's text."""

    tree: ast.expr
    source: Source
    start: int
    wide: tuple[tuple[int, int], ...] = ()  # where `ast` counts characters as several, and how many more up to there
    names: tuple[ast.Name, ...] = ()  # the variables that it reads

    def span(self, tree: ast.expr) -> Span:
        """Return the position of a part of the expression in the user's text."""
        start, end = tree.col_offset, tree.end_col_offset or 0
        if self.wide:
            start, end = start - self._more(start), end - self._more(end)
        return Span(self.source, self.start + start, self.start + end)

    def _more(self, column: int) -> int:
        """Return how many characters too many `ast` has counted up to a column."""
        before = bisect_left(self.wide, (column,))
        return self.wide[before - 1][1] if before else 0


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


class _Head(NamedTuple):
    """A statement whose expression is not parsed yet: `text`, which begins at `offset`.  Other fields: `Statement`."""

    text: str
    offset: int
    name: str | None
    key: tuple[int, ...] | None
    declares: bool
    start: int
    end: int
    kind: str | None = None
    clauses: Clauses | None = None


def read_statements(source: Source) -> list[Statement]:
    """Return the statements of a text, separated by `;` or newlines; `#` starts a comment.

    Errors: `InputError`, with its position.

    >>> [s.name for s in read_statements(Source("a = 1; b = 2  # two"))]
    ['a', 'b']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's advice about `3(x)` is not for our users
        heads = [_head(source, text, start) for text, start in split(source)]
        files = [_file(source, head) if head.declares else None for head in heads]
        texts = [head.text if file is None else "0" for head, file in zip(heads, files, strict=True)]
        trees = _trees(list(map(_seen, texts)))
        return [
            Statement(
                h.name, h.key, h.declares, _parse(source, text, h.offset, tree), h.start, h.end, file, h.kind, h.clauses
            )
            for h, file, text, tree in zip(heads, files, texts, trees, strict=True)
        ]


def _file(source: Source, head: _Head) -> Path | None:
    return file_named(head.text, Span(source, head.offset, head.offset + len(head.text)))


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


def read_expression(source: Source, start: int = 0, end: int | None = None) -> Expression:
    """Return one expression: the characters of a source from `start` to `end`."""
    text = _clean(source)[start:end]
    check_characters(source, text, start)
    for _ in _pieces(source, text, start):
        pass  # brackets are checked on the way
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = text.replace("\n", " ")
        return _parse(source, body.strip(), start + len(body) - len(body.lstrip()))


@lru_cache(maxsize=1)  # a point may have thousands of values, each of which is read by itself
def _clean(source: Source) -> str:
    """Return the text with comments and unusual white space blanked, all other characters at the same offsets.

    `·` is the product sign of gradcli's own tables: what is printed can be typed.
    """
    text = source.text
    if "#" in text:
        text = _COMMENT.sub(lambda m: " " * len(m.group()), text)
    text = text.translate({ord("\r"): " ", ord("\t"): " ", ord("·"): "*", 0xFEFF: " "})
    # A backslash at the end of a line continues it, as in Python.
    return _CONTINUED.sub(lambda m: " " * len(m.group()), text) if "\\" in text else text


def split(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the text and the offset of each non-empty statement; `;` and newlines separate them."""
    text = _clean(source)
    check_characters(source, text, 0)
    for start, end in _pieces(source, text, 0):
        piece = text[start:end]
        stripped = piece.lstrip()
        if stripped:
            yield stripped.rstrip().replace("\n", " "), start + len(piece) - len(stripped)


def _pieces(source: Source, text: str, offset: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece between `;` and newlines outside of brackets, and check the brackets."""
    end = -1
    while end < len(text):
        start = end + 1
        plain = _PLAIN.match(text, start)
        end = plain.end() if plain else _end(source, text, start, offset)
        yield start, end


def _end(source: Source, text: str, start: int, offset: int) -> int:
    """Return where a piece ends, with its brackets checked one by one."""
    opened: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        if sign in _PAIRS:
            opened.append(token)
            if len(opened) > _MAX_DEPTH:
                raise InputError(
                    f"brackets are nested more than {_MAX_DEPTH} deep",
                    _at(source, offset, token),
                    "give the inner part a name of its own",
                )
        elif sign in ")]}":
            if not opened:
                raise InputError(f"unmatched `{sign}`", _at(source, offset, token), "remove it, or open it before")
            wanted = _PAIRS[opened.pop().group()]
            if wanted != sign:
                span = _at(source, offset, token)
                raise InputError(f"`{sign}` closes a bracket that needs `{wanted}`", span, f"type `{wanted}`")
        elif sign == ";" and opened:
            break
        elif not opened:
            return token.start()
    if opened:
        sign = opened[-1].group()
        raise InputError(f"`{sign}` is never closed", _at(source, offset, opened[-1]), f"add a `{_PAIRS[sign]}`")
    return len(text)


def _at(source: Source, offset: int, match: re.Match[str]) -> Span:
    return Span(source, offset + match.start(), offset + match.end())


def _head(source: Source, text: str, start: int) -> _Head:
    """Return a statement's expression as text, with its offset, and all else that a `Statement` has."""
    match = _TARGET.match(text)
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
        return _Head(text, start, None, None, False, start, start + len(text))
    declares, typed, subscript = match.groups()
    name, span = normal(typed), Span(source, start + match.start(2), start + match.end(3 if subscript else 2))
    if name in _NO_NAMES:
        check_name(name, span)
    body = text[match.end() :]
    if not body:
        raise InputError(f"`{name} =` is followed by nothing", span, "a statement is NAME = EXPRESSION")
    first = for_at(body) if "for" in body else len(body)
    if first < len(body):
        loops = Span(source, start + match.end() + first, start + len(text))
        if not subscript or declares or not body[:first].strip():
            raise InputError("`for` assigns elements of a vector", loops, _LOOP)
        clauses = Clauses(Span(source, start + match.start(3), start + match.end(3)), loops)
        expression = body[:first].rstrip()
        return _Head(expression, start + match.end(), name, None, False, span.start, span.end, None, clauses)
    key = read_key(subscript, span, "assigned", f"`{name}[0] = …`, or {_LOOP}") if subscript else None
    if declares and key is not None:
        raise InputError("an input must be declared as a whole", span, f"for example `input {name} = [1, 2]`")
    return _Head(body, start + match.end(), name, key, bool(declares), span.start, span.end)


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
            depth += 1 if token.group() in _PAIRS else -1
    return len(text)


def _of_a_kind(source: Source, text: str, start: int, match: re.Match[str]) -> _Head:
    """Return `input NAME KIND = VALUE`."""
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
    rest = _head(source, f"input {match[1]} = {text[match.end() :]}", start)  # checks the name and the value
    return rest._replace(offset=start + match.end(), start=span.start, end=span.end, kind=kind)


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


def _trees(texts: Sequence[str]) -> Iterator[ast.expr | None]:
    """Yield the tree of each text, or None for a text that has to be parsed alone.

    `ast` parses many texts as one list, an element a line, several times as fast as one after the other.
    """
    for start in range(0, len(texts), _LINES):
        lines = texts[start : start + _LINES]
        try:
            whole: ast.expr | None = ast.parse("[\n" + ",\n".join(lines) + "]", mode="eval").body
        except (SyntaxError, RecursionError, MemoryError):
            whole = None
        elements = whole.elts if isinstance(whole, ast.List) else []
        result = [
            e for line, e in enumerate(elements, 2) if e.lineno == e.end_lineno == line and type(e) not in _LISTED
        ]
        yield from result if len(result) == len(lines) == len(elements) else [None] * len(lines)


def _seen(text: str) -> str:
    """Return a text as `ast` gets it: with `**` for `^`."""
    return text.replace("^", "**")


def _parse(source: Source, text: str, start: int, tree: ast.expr | None = None) -> Expression:
    wide = _wide(text) if "^" in text or not text.isascii() else ()
    try:
        tree = tree or ast.parse(_seen(text), mode="eval").body
    except SyntaxError as error:
        raise _syntax_error(error, Expression(ast.Constant(0), source, start, wide), text) from None
    except (RecursionError, MemoryError):
        raise InputError(
            "this expression is nested too deeply",
            Span(source, start, start + len(text)),
            "give parts of it names of their own: t1 = …; y = t1 + …",
        ) from None
    try:
        return Expression(tree, source, start, wide, tuple(_names_in(tree)))
    except InputError as error:
        raise error.at(Expression(tree, source, start, wide).span(error.about)) from None
    except _NumberCalled as called:
        raise _called(Expression(tree, source, start, wide).span(called.tree), source, start, text) from None


class _NumberCalled(Exception):
    """A call whose function is a number: 2(x + 1), or the 2(x) of sin^2(x)."""

    def __init__(self, tree: ast.Call) -> None:
        super().__init__()
        self.tree = tree


def _called(call: Span, source: Source, start: int, text: str) -> InputError:
    """Return the error of a number that is called; `text` is the expression, which begins at `start`."""
    whole = Span(source, start, start + len(text))
    for advice in powered(text):
        if advice.start < call.start - start < advice.end and (fix := advice.fix(whole)):
            return InputError(f"`{fix.span.text}` is not part of the language", fix.span, advice.hint, fix=fix)
    advice = product(call.text, 0)
    return InputError("only functions can be called", call, advice.hint, fix=advice.fix(call))


def _wide(text: str) -> tuple[tuple[int, int], ...]:
    """Return the columns at which `ast` counts a character as several, and how many more it has counted with it.

    It counts in bytes of UTF-8, and sees `**` for `^`.
    """
    more = 0
    result = []
    for match in _WIDE.finditer(text):
        column = match.start() + more
        more += 1 if match.group() == "^" else len(match.group().encode()) - 1
        result.append((column, more))
    return tuple(result)


def _names_in(tree: ast.expr) -> list[ast.Name]:
    """Return the variables that an expression reads; a name that is called is a function, and `np` a module.

    Errors: `InputError` about a piece of syntax that has variables of its own.
    """
    names: list[ast.Name] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            names.append(node)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Constant):
                raise _NumberCalled(node)
            if isinstance(node.func, ast.Attribute) and not module_of(node.func, node):
                stack.append(node.func.value)
            stack += node.args
            if node.keywords:
                stack += [k.value for k in node.keywords]
        elif isinstance(node, ast.BinOp):
            stack += (node.left, node.right)
        elif isinstance(node, ast.Attribute) and module_of(node):
            continue
        elif type(node) in FOREIGN:
            raise refused(node)
        elif not isinstance(node, ast.Constant):
            stack += ast.iter_child_nodes(node)
    return names


def _error_span(error: SyntaxError, expression: Expression, text: str) -> Span:
    """Return where in the user's text Python complains."""
    seen = _seen(text)
    first = error.offset - 1 if error.offset else len(seen) - 1  # 0 is the end
    ends = (first, max(first + 1, (error.end_offset or 0) - 1))
    column, end = (len(seen[:k].encode()) for k in ends)  # Python counts characters here, and bytes elsewhere
    span = expression.span(ast.Constant(0, col_offset=column, end_col_offset=end))
    last = expression.start + len(text)
    return Span(span.source, min(span.start, max(expression.start, last - 1)), min(span.end, last))


def _syntax_error(error: SyntaxError, expression: Expression, text: str) -> InputError:
    """Return the error of a text that Python cannot parse, with its position; `text` is the expression's."""
    message = (error.msg or "").partition(". ")[0]
    if "integer string conversion" in message:
        whole = Span(expression.source, expression.start, expression.start + len(text))
        return InputError("this number has too many digits", whole, "float64 ends near 1.8e308")
    span = _error_span(error, expression, text)
    index = span.start - expression.start
    advice = spelling(text, index if error.offset else len(text)) or _unfinished(expression, text)
    whole = Span(expression.source, expression.start, expression.start + len(text))
    hint, fix = (advice.hint, advice.fix(whole)) if advice else (None, None)
    if text.startswith("=", index) and not text.startswith("==", index):
        typed = 'a statement, or a point, with spaces needs quotes: "y = x**2"'
        hint = (hint or "a statement is NAME = EXPRESSION; compare with `==`") if index else typed
        return InputError("`=` is inside an expression", span, hint, fix=fix if index else None)
    if message.startswith("invalid") and "literal" in message:
        return InputError("this is not a number", span, hint or "a product is written with `*`: 3*x", fix=fix)
    if "string literal" in message:
        return InputError("a quote is opened and never closed", span, "strings are not supported")
    if not message or message.startswith(("invalid syntax", "f-string", "invalid character", "unexpected character")):
        message = "this cannot be read as an expression"
    if "assign" in message:
        return InputError("only a name, or an element such as `y[0]`, can be assigned", span, "write NAME = EXPRESSION")
    hint = hint or "an operator, a number, a name or a comma is missing or extra here"
    return InputError(message[0].lower() + message[1:], span, hint, fix=fix)


def _unfinished(expression: Expression, text: str) -> Advice | None:
    """Return the advice on an expression that ends with an operator: brackets continue it on the next line."""
    operator = _OPERATOR.search(text)
    if operator is None or operator.start() == 0:
        return None
    end = expression.start + len(text)
    first, *lines = _clean(expression.source)[end:].split("\n")
    more, length = "", len(text) + len(first)
    for line in lines:
        more = f"{more} {line.strip()}" if line.strip() else more
        length += 1 + len(line)
        if more and not _OPERATOR.search(more):
            break
    if first.strip() or not more or _TARGET.match(more.strip()):
        hint = f"type what follows the `{operator[1]}`, or remove it: `{text[: operator.start()][-_SHOWN:]}`"
        return Advice(hint, operator.start(), len(text), "")
    whole = f"({text}{more})"
    hint = "put an expression of several lines in brackets" + (f": `{whole}`" if len(whole) <= _SHOWN else "")
    return Advice(hint, 0, length, whole)
