"""Claims about derivatives, beside the statements of a system: `df/dx = …`, `d2f/dx/dz = …`, `x.grad = …`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product

from gradcli.errors import Fix, InputError, Notes, Source, Span, nearest
from gradcli.graph.names import NAME, normal
from gradcli.lang.expressions import Expression, read_expression
from gradcli.lang.pieces import TARGET, split
from gradcli.lang.statements import for_at
from gradcli.lang.system import System, read_system
from gradcli.vocabulary import FUNCTIONS

# Functions that textbooks write without brackets. Others, such as gamma, sign and norm, are names of variables as well.
_TRIGONOMETRIC = [
    f"{prefix}{name}" for prefix in ("", "a", "arc") for name in ("sin", "cos", "tan", "cot", "sec", "csc")
]
_HYPERBOLIC = [f"{name}h" for name in _TRIGONOMETRIC]
WITH_BRACKETS = {*_TRIGONOMETRIC, *_HYPERBOLIC, "exp", "log", "ln", "log2", "log10", "sqrt", "abs"} & FUNCTIONS.keys()
_JOINED = re.compile(rf"({'|'.join(sorted(WITH_BRACKETS, key=len, reverse=True))})_?(\d*)({NAME})")
_LETTER = re.compile(r"[^\W\d_]\d*")


def as_call(name: str, arguments: Collection[str]) -> str | None:
    """Return the call of a function that a name may be, of one of the arguments or of a single letter.

    >>> as_call("sinx", []), as_call("cos2theta", ["theta"]), as_call("expected", []), as_call("cosh", ["h"])
    ('sin(x)', 'cos(2*theta)', None, None)
    """
    match = _JOINED.fullmatch(name)
    if match is None or name in FUNCTIONS:
        return None
    function, factor, argument = match.groups()
    if argument not in arguments and not _LETTER.fullmatch(argument):
        return None
    return f"{function}({factor}*{argument})" if factor else f"{function}({argument})"


def with_brackets(system: System, argument: str) -> Fix | None:
    """Return the correction of the first statement with inputs that may be calls of functions of an argument."""
    for statement in system.statements:
        result: dict[Span, str] = {}
        for tree in statement.expression.names:
            call = as_call(tree.id, [argument]) if tree.id in system.uses and tree.id not in system.defaults else None
            if call and f"{argument})" in call:
                result[statement.expression.span(tree)] = call
        if result:
            return _replaced(sorted(result.items(), key=lambda item: item[0].start))
    return None


def _replaced(calls: list[tuple[Span, str]]) -> Fix:
    """Return one correction for several in one text, in order."""
    text, end = "", calls[0][0].start
    for span, call in calls:
        text += span.source.text[end : span.start] + call
        end = span.end
    return Fix(Span(calls[0][0].source, calls[0][0].start, end), text)


def note_joined(system: System, supplied: Iterable[str], notes: Notes) -> None:
    """Add a note about each input without a value that may be a call of a function."""
    known = {*system.uses, *system.assigned}
    for name in sorted(system.uses.keys() - system.defaults.keys() - {*supplied}):
        if call := as_call(name, known):
            notes.add("note", f"`{name}` is read as a variable: the function is written `{call}`")
        elif name in WITH_BRACKETS:
            notes.add("note", f"`{name}` is read as a variable: the function is called with brackets, `{name}(x)`")


_INDEX = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
_QUANTITY = rf"({NAME})\s*({_INDEX})?"
_VARIABLE = rf"{_QUANTITY}(?:(?<=\])\s*([0-9]+))?"  # x2, or x[0]2
_PULLBACK = re.compile(rf"{_QUANTITY}\s*\.\s*grad\s*({_INDEX})?\s*=(?P<twice>=?)")
_DERIVATIVE = re.compile(rf"d([0-9]*){_QUANTITY}((?:\s*/\s*d{_VARIABLE})+)\s*=(?P<twice>=?)")
_PRIMED = re.compile(rf"({NAME})\s*('{{1,4}})\s*(?:\(\s*({NAME})\s*\))?\s*==?")
_BY = re.compile(rf"/\s*d{_VARIABLE}")
_MAY_CLAIM = re.compile(r"\.\s*grad|/\s*[d∂]|'")  # most texts hold no claim, and need not be split
_LIKE = re.compile(r"/\s*[dD∂δ]|\.\s*[gG]rad|(?<!\w)[gG]rad(?!\w)|∇|'")  # on the left of `=`, where no claim is read
_HIGHER = re.compile(r"(?:^|(?<=[;\n]))[^=;\n]*/\s*[d∂][^=;\n]*(?==)")  # the left side of a claim
_SUPERSCRIPTS = str.maketrans("²³⁴", "234")
_MAX_ORDER = 4
_LINE = 200  # characters of a correction
_LONGEST = 20  # characters of a name that is read as several
_COTANGENT = re.compile(rf"({NAME})\.v\b")


@dataclass(frozen=True)
class Quantity:
    """A name, or some elements of what it names: those of the subscript `key`, such as `x[i, 0]`."""

    name: str
    key: Expression | None = None


@dataclass(frozen=True)
class Claim:
    """A derivative that the user claims.

    `of` is what is differentiated (None in a pullback `x.grad`), `by` by what, in order.  `text` is the left side, and
    `span` its position.  Where several outputs have cotangents of their own, `aliases` are the names that mean
    `y.v` in the expression.  In `dy[i]/dx[i] = 2*x[i] for i in 0..2`, `loops` is the text that begins with `for`.
    """

    text: str
    of: Quantity | None
    by: tuple[Quantity, ...]
    expression: Expression
    span: Span
    aliases: dict[str, str]
    loops: Span | None = None

    @property
    def right(self) -> str:
        """The formula on the right side, as the user wrote it, on one line."""
        whole = self.expression.span(self.expression.tree)
        return Span(self.span.source, whole.start, whole.end).line

    @property
    def said(self) -> str:
        """The right side, as the user wrote it, on one line."""
        return self.right if self.loops is None else f"{self.right} {self.loops.line}"


def read_claims(sources: Iterable[Source]) -> tuple[list[Source], list[Claim]]:
    """Return the texts with their claims blanked out, all other characters at the same offsets, and the claims.

    Errors: `InputError`, with its position.

    >>> rest, [claim] = read_claims([Source("f = x**2; df/dx = 2*x")])
    >>> rest[0].text, claim.of.name, claim.by[0].name, claim.said
    ('f = x**2;            ', 'f', 'x', '2*x')
    """
    sources = list(sources)
    blanked: list[Source] = []
    claims: list[Claim] = []
    primed: list[tuple[Span, re.Match[str]]] = []
    for source in sources:
        text = _HIGHER.sub(lambda m: m.group().translate(_SUPERSCRIPTS), source.text.replace("∂", "d"))
        normalised = Source(text, source.label)
        try:
            for piece, start in split(normalised):
                end = start + len(piece)
                if match := _PULLBACK.match(piece) or _DERIVATIVE.match(piece):
                    try:
                        claims.append(_parse_claim(source, normalised, match, start, end))
                    except InputError as error:
                        others = (s.text if s is not source else s.text[:start] + s.text[end:] for s in sources)
                        raise _with_products(error, "\n".join(others)) from None
                elif match := _PRIMED.match(piece):
                    primed.append((Span(source, start, end), match))
                else:
                    _check_left(source, piece, start)
                    continue
                text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        except InputError as error:
            raise restore_span(error, [source], [normalised]) from None
        blanked.append(Source(text, source.label))
    for span, match in primed:
        raise _prime_error(span, match, blanked)
    return blanked, claims


def _with_products(error: InputError, others: str) -> InputError:
    """Return an error whose correction has no name that is a product of others, which a text has: 2*xz is 2*x*z."""
    known = set(re.findall(NAME, others))
    for name in re.findall(NAME, error.fix.text[:_LINE]) if error.fix is not None else ():
        if name not in known and (parts := _factors(name, known)) and error.fix is not None:
            error.fix = Fix(error.fix.span, error.fix.text.replace(name, "*".join(parts)))
            error.hint = error.hint and error.hint.replace(name, "*".join(parts))
    return error


def _factors(name: str, known: Collection[str]) -> list[str]:
    """Return the names that a name is made of, one behind the other; none where it is not.

    >>> _factors("xyz", {"xy", "z"}), _factors("xq", {"x"})
    (['xy', 'z'], [])
    """
    ends: dict[int, list[str]] = {0: []}  # the names up to there
    for end in range(1, min(len(name), _LONGEST) + 1):
        starts = [k for k in ends if name[k:end] in known]
        if starts:
            ends[end] = [*ends[starts[0]], name[starts[0] : end]]
    return ends.get(len(name), [])


def _check_left(source: Source, piece: str, start: int) -> None:
    """Check that what is not a claim does not look like one.

    Errors: `InputError`, with what may be meant.
    """
    left, sign, right = piece.partition("=")
    left = left.rstrip(": ")
    if sign and not TARGET.match(piece) and _DERIVATIVE.fullmatch(f"{right.strip()}="):
        whole = Span(source, start, start + len(piece))
        raise InputError(
            "a claim has the derivative on its left side", whole, fix=Fix(whole, f"{right.strip()} = {left}")
        )
    if not sign or not _LIKE.search(left):
        return
    span = Span(source, start, start + len(left))
    meant = _meant(left)
    if meant is None:
        hint = "a claim is dy/dx = …, d2y/dx2 = …, d2y/dx/dz = … or x.grad = …"
        raise InputError(f"`{span.line}` is not a derivative that can be checked", span, hint)
    equals = start + piece.index("=") + 1
    raise InputError(
        f"`{span.line}` is not how a claim is written", span, fix=Fix(Span(source, start, equals), f"{meant} =")
    )


def unfinished_error(sources: Iterable[Source]) -> InputError | None:
    """Return the error of a derivative without a formula, which may also be a quotient: dy/dx."""
    for source in sources:
        for piece, start in split(source):
            if _DERIVATIVE.fullmatch(f"{piece}=") or _PULLBACK.fullmatch(f"{piece}="):
                span = Span(source, start, start + len(piece))
                return InputError(f"`{span.line}` is not followed by a formula", span, f"a claim is `{piece} = …`")
    return None


def _meant(left: str) -> str | None:
    """Return the left side of a claim that is meant: without brackets, with other letters; None for what is none.

    >>> _meant("d(y)/d(x)"), _meant("d/dx y"), _meant("d^2y/dx^2"), _meant("Dy/Dx"), _meant("x.grad()"), _meant("y/2")
    ('dy/dx', 'dy/dx', 'd2y/dx2', 'dy/dx', 'x.grad', None)
    >>> _meant("d(dy/dx)/dx"), _meant("d(dy/dx)/dz")
    ('d2y/dx2', 'd2y/dx/dz')
    """
    text = re.sub(r"(?:(?<=/)|(?<![\w)\]]))(\s*\(?\s*)[D∂δ]", r"\1d", left).replace("**", "").replace("^", "")
    if match := re.fullmatch(rf"\s*d(\d?)\s*/\s*d\s*({NAME})\s*[\s(]\s*({NAME})[\s)]*", text):
        text = f"d{match[1]}{match[3]}/d{match[2]}"
    if match := re.fullmatch(rf"\s*d\s*\(\s*d\s*({NAME})\s*/\s*d\s*({NAME})\s*\)\s*/\s*d\s*({NAME})\s*", text):
        y, first, second = match.groups()
        text = f"d2{y}/d{first}2" if first == second else f"d2{y}/d{first}/d{second}"
    text = re.sub(r"\.\s*[gG]rad\w*(?:\(\s*\))?", ".grad", text)
    text = re.sub(rf"^(\s*d\d?\s*{NAME})\s*\([^()]*\)(?=\s*/)", r"\1", text)
    text = re.sub(r"\]\s*\[", ",", re.sub(r"[\s()]", "", text))
    is_claim = len(text) <= _LINE and (_DERIVATIVE.fullmatch(f"{text}=") or _PULLBACK.fullmatch(f"{text}="))
    return text if is_claim else None


def _prime_error(span: Span, match: re.Match[str], rest: Sequence[Source]) -> InputError:
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


def restore_span(error: InputError, sources: Sequence[Source], blanked: Sequence[Source]) -> InputError:
    """Return an error with its position in the text that the user wrote."""
    for was, now in zip(sources, blanked, strict=True):
        if error.span is not None and error.span.source is now:
            error.span = Span(was, error.span.start, error.span.end)
        if error.fix is not None and error.fix.span.source is now:
            error.fix = Fix(Span(was, *error.fix.span[1:]), error.fix.text)
    return error


def _parse_claim(source: Source, normalised: Source, match: re.Match[str], start: int, end: int) -> Claim:
    """Return the claim between two offsets of a source, whose left side has matched.

    `normalised` is the source with d for ∂, and digits for superscripts on left sides, each character at its offset:
    it is parsed, and positions in errors are those of `source`.

    Errors: `InputError` at its position.
    """
    left = match.group()
    span = Span(source, start, start + len(left.rstrip("= \t")))
    if match["twice"]:
        right = source.text[start + match.end() : end].strip()
        fix = Fix(Span(source, start, end), f"{span.text} = {right}")
        raise InputError("`==` is a comparison, not a claim", fix.span, fix=fix)
    if not source.text[start + match.end() : end].strip():
        raise InputError(f"`{span.text} =` is followed by nothing", span, "a claim is a derivative = EXPRESSION")
    text = re.sub(r"\s", "", normalised.text[span.start : span.end])
    first = start + match.end()
    last = first + for_at(normalised.text[first:end])
    if not source.text[first:last].strip():
        raise InputError("the claim is missing before `for`", span, f"`{text} = EXPRESSION {source.text[last:end]}`")
    expression, aliases = _right_side(normalised, first, last)
    of, by = _of_and_by(normalised, match, start, span)
    loops = Span(source, last, end) if last < end else None
    return Claim(text, of, tuple(by), expression, span, aliases, loops)


def _of_and_by(
    normalised: Source, match: re.Match[str], start: int, span: Span
) -> tuple[Quantity | None, list[Quantity]]:
    """Return what a claim differentiates, and by what in order; the match begins at `start` in the text."""
    if match.re is _PULLBACK:
        if match[2] and match[3]:
            raise InputError(f"`{span.text}` has two indices", span, f"for example {match[1]}{match[2]}.grad")
        return None, [_quantity(normalised, start, match, 1, 3 if match[3] else 2)]
    order = int(match[1][:2] or 1)  # int() refuses thousands of digits
    if not 1 <= order <= _MAX_ORDER or match[1] == "1":
        raise InputError(
            f"`{span.text}` is not a derivative that can be checked",
            span,
            f"those of the first order are df/dx, then come d2f/dx2 to d{_MAX_ORDER}f/dx{_MAX_ORDER}",
        )
    return _quantity(normalised, start, match, 2, 3), _variables(normalised, match, start, order, span)


def _variables(normalised: Source, match: re.Match[str], start: int, order: int, span: Span) -> list[Quantity]:
    """Return the variables that a derivative is taken by, as many as its order says: x, x of d2f/dx2.

    A name may hold several, as xdz of d2f/dxdz does: it is split where one reading alone has the right number.
    """
    by: list[Quantity] = []
    for m in _BY.finditer(match.string, *match.span(4)):
        by += [_quantity(normalised, start, m, 1, 2)] * min(int((m[3] or "1")[:2]), _MAX_ORDER + 1)
    if len(by) < order:
        readings = [variables for parts in product(*map(_readings, by)) if len(variables := [*chain(*parts)]) == order]
        by = readings[0] if len(readings) == 1 else by
    if len(by) != order:
        listed = ", ".join(q.name[:_LONGEST] for q in by[:_MAX_ORDER]) + ", …" * (len(by) > _MAX_ORDER)
        what = f"of order {order}, and by {listed}"
        raise InputError(f"`{span.text}` is {what}", span, "for example d2f/dx2, d2f/dx/dz, or d2f/dx[0]/dx[1]")
    return by


def _readings(quantity: Quantity) -> list[list[Quantity]]:
    """Return the readings of a denominator: x2 is a name, or x twice; and xdz, of `∂x∂z`, is a name, or x and z."""
    name = quantity.name
    if quantity.key is not None or len(name) < 2:
        return [[quantity]]
    result = [[quantity]]
    if name[-1] in "234":
        result.append([Quantity(name[:-1])] * int(name[-1]))
    for k in (m.start() for m in re.finditer("d", name) if len(name) <= _LONGEST):
        if 0 < k < len(name) - 1 and not name[k + 1].isdecimal():
            first, last = Quantity(name[:k]), Quantity(name[k + 1 :])
            result += [[*a, *b] for a in _readings(first)[:2] for b in _readings(last)]
    return result


def _right_side(source: Source, start: int, end: int) -> tuple[Expression, dict[str, str]]:
    """Return the expression on the right of a claim, and the names in it that stand for cotangents such as `y.v`.

    Such a name is new, and as long as `y.v`, so that positions in errors stay.
    """
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
        raise restore_span(error, [source], [changed]) from None


def _quantity(normalised: Source, start: int, match: re.Match[str], name: int, key: int) -> Quantity:
    """Return what two groups of a match are: a name, and a subscript or nothing; the match is at `start` in a text."""
    if not match[key]:
        return Quantity(normal(match[name]))
    first, end, bracket = (start + at for at in (match.start(name), match.end(key), match.start(key)))
    if not match[key][1:-1].strip():
        raise InputError("an index is missing", Span(normalised, bracket, end), f"for example {match[name]}[0]")
    blank = " " * (bracket - first - len(match[name]))  # of x.grad[0]
    changed = Source(f"{normalised.text[:first]}{match[name]}{blank}{normalised.text[bracket:]}", normalised.label)
    try:
        return Quantity(normal(match[name]), read_expression(changed, first, end))
    except InputError as error:
        raise restore_span(error, [normalised], [changed]) from None


def unknown_name_error(claim: Claim, name: str, known: Iterable[str], what: str) -> InputError:
    """Return the error of a claim about a name that the system does not have."""
    known = [*known]
    call = next((call for n in known if (call := as_call(n, [name]))), None)
    hint = f"call a function with brackets: `{call}`" if call else nearest(name, known, "names here")
    return InputError(f"`{name}` is not {what}", claim.span, hint)
