"""Claims about derivatives, beside the statements of a system: `df/dx = …`, `d2f/dx/dz = …`, `x.grad = …`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from gradcli.errors import Fix, InputError, Source, Span, nearest
from gradcli.graph.names import NAME, normal
from gradcli.lang.expressions import Expression, read_expression
from gradcli.lang.joined import as_call
from gradcli.lang.pieces import split
from gradcli.lang.statements import read_key
from gradcli.lang.system import read_system

_QUANTITY = rf"({NAME})\s*(\[[\d\s,]*\])?"
_PULLBACK = re.compile(rf"{_QUANTITY}\s*\.\s*grad\s*=(?P<twice>=?)")
_DERIVATIVE = re.compile(rf"d([0-9]*){_QUANTITY}((?:\s*/\s*d{_QUANTITY})+)\s*=(?P<twice>=?)")
_PRIMED = re.compile(rf"({NAME})\s*('{{1,4}})\s*(?:\(\s*({NAME})\s*\))?\s*==?")
_BY = re.compile(rf"/\s*d{_QUANTITY}")
_MAY_CLAIM = re.compile(r"\.\s*grad|/\s*[d∂]|'")  # most texts hold no claim, and need not be split
_MAX_ORDER = 4
_COTANGENT = re.compile(rf"({NAME})\.v\b")

Key = tuple[int, ...]


@dataclass(frozen=True)
class Quantity:
    """A name, or an element of what it names."""

    name: str
    key: Key | None = None


@dataclass(frozen=True)
class Claim:
    """A derivative that the user claims.

    `of` is what is differentiated (None in a pullback `x.grad`), `by` by what, in order.  `text` is the left side, and
    `span` its position.  Where several outputs have cotangents of their own, `aliases` are the names that mean
    `y.v` in the expression.
    """

    text: str
    of: Quantity | None
    by: tuple[Quantity, ...]
    expression: Expression
    span: Span
    aliases: dict[str, str]

    @property
    def said(self) -> str:
        """The right side, as the user wrote it, on one line."""
        whole = self.expression.span(self.expression.tree)
        return Span(self.span.source, whole.start, whole.end).line


def read_claims(sources: Iterable[Source]) -> tuple[list[Source], list[Claim]]:
    """Return the texts with their claims blanked out, all other characters at the same offsets, and the claims.

    Errors: `InputError`, with its position.

    >>> rest, [claim] = read_claims([Source("f = x**2; df/dx = 2*x")])
    >>> rest[0].text, claim.of.name, claim.by[0].name, claim.said
    ('f = x**2;            ', 'f', 'x', '2*x')
    """
    blanked: list[Source] = []
    claims: list[Claim] = []
    primed: list[tuple[Span, re.Match[str]]] = []
    for source in sources:
        text = source.text.replace("∂", "d")
        seen = Source(text, source.label)
        for piece, start in split(seen):
            end = start + len(piece)
            if match := _PULLBACK.match(piece) or _DERIVATIVE.match(piece):
                claims.append(_claim(source, seen, match, start, end))
            elif match := _PRIMED.match(piece):
                primed.append((Span(source, start, end), match))
            else:
                continue
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        blanked.append(Source(text, source.label))
    for span, match in primed:
        raise _primed(span, match, blanked)
    return blanked, claims


def _primed(span: Span, match: re.Match[str], rest: Sequence[Source]) -> InputError:
    """Return the error of a claim about y', which does not name the input; `rest` is the system."""
    y, primes, by = match.groups()
    try:
        leaves = [by] if by else read_system(rest).leaves()
    except InputError:
        leaves = []
    order = len(primes) if len(primes) > 1 else ""
    x = leaves[0] if leaves else "x"
    typed = f"d{order}{y}/d{x}{order} = {span.text[match.end() :].strip()}"
    message = f"`{y}{primes}` does not name the input to differentiate with respect to"
    if len(leaves) == 1:
        return InputError(message, span, fix=Fix(span, typed))
    return InputError(message, span, f"name it: `{typed}`")


def without_claims(source: Source) -> Source:
    """Return a text with its claims blanked out.

    >>> without_claims(Source("f = x**2\\ndf/dx = 2*x")).text.split()
    ['f', '=', 'x**2']
    """
    return read_claims([source])[0][0] if _MAY_CLAIM.search(source.text) else source


def restored(error: InputError, sources: Sequence[Source], blanked: Sequence[Source]) -> InputError:
    """Return an error with its position in the text that the user wrote."""
    for was, now in zip(sources, blanked, strict=True):
        if error.span is not None and error.span.source is now:
            error.span = Span(was, error.span.start, error.span.end)
        if error.fix is not None and error.fix.span.source is now:
            error.fix = Fix(Span(was, *error.fix.span[1:]), error.fix.text)
    return error


def _claim(source: Source, seen: Source, match: re.Match[str], start: int, end: int) -> Claim:
    left = match.group()
    span = Span(source, start, start + len(left.rstrip("= \t")))
    if match["twice"]:
        right = source.text[start + match.end() : end].strip()
        fix = Fix(Span(source, start, end), f"{span.text} = {right}")
        raise InputError("`==` is a comparison, not a claim", fix.span, fix=fix)
    if not source.text[start + match.end() : end].strip():
        raise InputError(f"`{span.text} =` is followed by nothing", span, "a claim is a derivative = EXPRESSION")
    try:
        expression, aliases = _right(seen, start + match.end(), end)
    except InputError as error:
        raise restored(error, [source], [seen]) from None
    text = re.sub(r"\s", "", span.text).replace("∂", "d")
    if match.re is _PULLBACK:
        return Claim(text, None, (_quantity(match[1], match[2], span),), expression, span, aliases)
    order = int(match[1][:2] or 1)  # int() refuses thousands of digits
    if not 1 <= order <= _MAX_ORDER or match[1] == "1":
        raise InputError(
            f"`{span.text}` is not a derivative that can be checked",
            span,
            f"those of the first order are df/dx, then come d2f/dx2 to d{_MAX_ORDER}f/dx{_MAX_ORDER}",
        )
    of, by = _quantity(match[2], match[3], span), _variables(match, order, span)
    return Claim(text, of, tuple(by), expression, span, aliases)


def _variables(match: re.Match[str], order: int, span: Span) -> list[Quantity]:
    """Return by what a derivative of an order is taken."""
    by = [_quantity(m[1], m[2], span) for m in _BY.finditer(match[4])]
    if len(by) < order:
        ways = [
            result
            for way in product(*map(_readings, by))
            if len(result := [q for pairs in way for q in pairs]) == order
        ]
        by = ways[0] if len(ways) == 1 else by
    if len(by) != order:
        what = f"of order {order}, and by {', '.join(q.name for q in by)}"
        raise InputError(f"`{span.text}` is {what}", span, "for example d2f/dx2, d2f/dx/dz, or d3f/dx2/dz")
    return by


def _readings(quantity: Quantity) -> list[list[Quantity]]:
    """Return the readings of a denominator: x2 is a name, or x twice."""
    name = quantity.name
    if quantity.key is not None or len(name) < 2 or name[-1] not in "234":
        return [[quantity]]
    return [[quantity], [Quantity(name[:-1])] * int(name[-1])]


def _right(source: Source, start: int, end: int) -> tuple[Expression, dict[str, str]]:
    """Return the expression of a claim; `y.v` in it becomes a name as long as that, which nothing else has."""
    aliases: dict[str, str] = {}
    text = source.text

    def alias(match: re.Match[str]) -> str:
        name = next(n for sign in ("_v", "ˑv", "vv", "_w", "ww") if (n := f"{match[1]}{sign}") and n not in text)
        return aliases.setdefault(f"{normal(match[1])}.v", name)

    right = _COTANGENT.sub(alias, text[start:end])
    if not aliases:
        return read_expression(source, start, end), {}
    changed = Source(text[:start] + right + text[end:], source.label)
    try:
        return read_expression(changed, start, end), aliases
    except InputError as error:
        raise restored(error, [source], [changed]) from None


def _quantity(name: str, key: str | None, span: Span) -> Quantity:
    whole = None if key is None else read_key(key, span, "named", "dy[0]/dx[1] = …")
    return Quantity(normal(name), whole)


def unknown(claim: Claim, name: str, known: Iterable[str], what: str) -> InputError:
    """Return the error of a claim about a name that the system does not have."""
    known = [*known]
    call = next((call for n in known if (call := as_call(n, [name]))), None)
    hint = f"call a function with brackets: `{call}`" if call else nearest(name, known, "names here")
    return InputError(f"`{name}` is not {what}", claim.span, hint)
