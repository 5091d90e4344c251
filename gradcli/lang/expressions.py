"""Expressions of the language, parsed by `ast`, with their positions in the user's text and their syntax errors.

Nothing here knows shapes or values; see `builder.py` for what an expression means.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradcli.errors import InputError, Source, Span
from gradcli.lang.advice import FOREIGN, Advice, module_of, powered, product, spelling, unsupported
from gradcli.lang.characters import check_characters
from gradcli.lang.pieces import TARGET, clean, pieces

_OPERATOR = re.compile(r"\s*(\*\*|[-+*/@^])\s*$")  # that a text ends with
_WIDE = re.compile(r"[^\x00-\]_-\x7f]")  # characters that `ast` counts as several
_SHOWN = 40  # characters of an expression in advice
_LINES = 1000  # that `ast` parses at a time
_LISTED = (ast.NamedExpr, ast.Starred)  # expressions that `ast` parses in a list, but not alone


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


def read_expression(source: Source, start: int = 0, end: int | None = None) -> Expression:
    """Return one expression: the characters of a source from `start` to `end`."""
    text = clean(source)[start:end]
    check_characters(source, text, start)
    for _ in pieces(source, text, start):
        pass  # brackets are checked on the way
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = text.replace("\n", " ")
        return _parse(source, body.strip(), start + len(body) - len(body.lstrip()))


def read_expressions(source: Source, texts: Sequence[tuple[str, int]]) -> list[Expression]:
    """Return the expressions of texts, each with its offset in the source.

    Errors: `InputError`, with its position.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's advice about `3(x)` is not for our users
        trees = _trees([_python_text(text) for text, _ in texts])
        return [_parse(source, text, start, tree) for (text, start), tree in zip(texts, trees, strict=True)]


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


def _python_text(text: str) -> str:
    """Return a text as `ast` gets it: with `**` for `^`."""
    return text.replace("^", "**")


def _parse(source: Source, text: str, start: int, tree: ast.expr | None = None) -> Expression:
    wide = _wide(text) if "^" in text or not text.isascii() else ()
    try:
        tree = tree or ast.parse(_python_text(text), mode="eval").body
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
        span = Expression(tree, source, start, wide).span(called.tree)
        raise _called_number_error(span, source, start, text) from None


class _NumberCalled(Exception):
    """A call whose function is a number: 2(x + 1), or the 2(x) of sin^2(x)."""

    def __init__(self, tree: ast.Call) -> None:
        super().__init__()
        self.tree = tree


def _called_number_error(call: Span, source: Source, start: int, text: str) -> InputError:
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
            raise unsupported(node)
        elif not isinstance(node, ast.Constant):
            stack += ast.iter_child_nodes(node)
    return names


# Errors


def _error_span(error: SyntaxError, expression: Expression, text: str) -> Span:
    """Return where in the user's text Python complains."""
    python_text = _python_text(text)
    first = error.offset - 1 if error.offset else len(python_text) - 1  # 0 is the end
    ends = (first, max(first + 1, (error.end_offset or 0) - 1))
    column, end = (len(python_text[:k].encode()) for k in ends)  # Python counts characters here, and bytes elsewhere
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
    first, *lines = clean(expression.source)[end:].split("\n")
    more, length = "", len(text) + len(first)
    for line in lines:
        more = f"{more} {line.strip()}" if line.strip() else more
        length += 1 + len(line)
        if more and not _OPERATOR.search(more):
            break
    if first.strip() or not more or TARGET.match(more.strip()):
        hint = f"type what follows the `{operator[1]}`, or remove it: `{text[: operator.start()][-_SHOWN:]}`"
        return Advice(hint, operator.start(), len(text), "")
    whole = f"({text}{more})"
    hint = "put an expression of several lines in brackets" + (f": `{whole}`" if len(whole) <= _SHOWN else "")
    return Advice(hint, 0, length, whole)
