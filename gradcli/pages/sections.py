"""The sections of a page, as data: they have names and are of few kinds; and the mathematics in them.

A page format renders each kind below and knows nothing else; a command puts its page together from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.names import element_name
from gradcli.graph.node import Node
from gradcli.pages.results import PLAIN, Style

# Mathematics: a format writes it in its own notation, and rounds its numbers.  A `str` is words, as they stand.


@dataclass(frozen=True)
class Name:
    """A quantity: a variable x0, an element M[0,1], an adjoint t̄1."""

    name: str


@dataclass(frozen=True)
class Grad:
    """A gradient by its name in PyTorch: x.grad of x, or an element or a row of it, x.grad[0,1]."""

    name: str
    key: tuple[int, ...] = ()


@dataclass(frozen=True)
class Partial:
    """A derivative: ∂y/∂x; without `of`, the operator ∂/∂x.  One of a higher order is by one variable.

    Several quantities are the sides of a Jacobian, ∂(y0, y1)/∂x.  A `local` derivative is that of an operation by its
    argument, whatever other paths there are.
    """

    of: str | tuple[str, ...]
    by: str | tuple[str, ...]
    order: int = 1
    local: bool = False


def gradient(name: str, key: tuple[int, ...], loss: str, returned: bool) -> Grad | Partial:
    """Return what a gradient, or an element or a row of it, is called: x.grad, or ∂y/∂x of one that is returned."""
    return Partial(loss, element_name(name, key) if key else name) if returned else Grad(name, key)


@dataclass(frozen=True)
class Value:
    """A number or a formula (a SymPy expression), or an array of them, summarised where it is large.

    With `signed_zero`, -0 shows its sign, as in a point, where 1/x reads it; in results it would distract.
    """

    array: Array
    signed_zero: bool = False

    @classmethod
    def of(cls, number: Any) -> Value:
        """Return a single number, or a single formula."""
        return cls(np.asarray(number))


@dataclass(frozen=True)
class Computed:
    """The expression of a node in named nodes; `written` is the user's own text, if that is to be shown.

    `implicit` leaves out what broadcasting does by itself, but at the end where the `whole` array is shown.
    """

    node: Node
    names: Mapping[Node, str]
    written: str = ""
    implicit: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Formula:
    """A formula that is written already in the language of gradcli, and what it is made of for other notations.

    `number` is what its right side is, where that is one number as it is typed.
    """

    text: str
    math: Math
    number: int | Decimal | None = None


@dataclass(frozen=True)
class Added:
    """Something that is added to a quantity: `x̄ += 2*t̄`."""

    to: Math
    what: Math


@dataclass(frozen=True)
class Words:
    """Words with mathematics between them."""

    parts: tuple[Math, ...]


@dataclass(frozen=True)
class Typed:
    """Code, in a shell or in Python: an option, a call, an attribute."""

    text: str


@dataclass(frozen=True)
class VectorProduct:
    """A matrix times a vector, J·u; where the vector is `first`, a row times the matrix, vᵀJ."""

    matrix: str
    vector: str
    first: bool = False


VJP, JVP, HVP = VectorProduct("J", "v", first=True), VectorProduct("J", "u"), VectorProduct("H", "u")


@dataclass(frozen=True)
class Product:
    """The product that a page is about, written with a raised dot: a cotangent or an adjoint times derivatives."""

    factors: tuple[Math, ...]


@dataclass(frozen=True)
class Sum:
    """A sum of at least one term."""

    terms: tuple[Math, ...]


@dataclass(frozen=True)
class Difference:
    """A quantity less a number that has no sign."""

    minuend: Math
    subtrahend: Math


@dataclass(frozen=True)
class Polynomial:
    """Σ c_k·x^k of the coefficients, from k = 0 on; those that are known exactly are fractions."""

    coefficients: tuple[Fraction | float, ...]
    variable: str


@dataclass(frozen=True)
class Listed:
    """An array written out: a list, of lists where it has several dimensions."""

    items: tuple[Math, ...]


@dataclass(frozen=True)
class Equal:
    """Sides joined by signs of equality; one that is written like the one before it is left out."""

    sides: tuple[Math, ...]


Math = (
    str
    | Name
    | Grad
    | Partial
    | Value
    | Computed
    | Formula
    | Added
    | Words
    | Typed
    | VectorProduct
    | Product
    | Sum
    | Difference
    | Polynomial
    | Listed
    | Equal
)


# Kinds of section


@dataclass(frozen=True)
class Text:
    """A paragraph, or a line of it: words, and mathematics between them."""

    parts: tuple[Math, ...]


@dataclass(frozen=True)
class Line:
    """One of several equations below each other, with a note behind it; a `strong` one is emphasised."""

    sides: tuple[Math, ...]
    note: tuple[Math, ...] = ()
    strong: bool = False


@dataclass(frozen=True)
class Equations:
    """Equations below each other, their signs of equality aligned."""

    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Matrix:
    """A matrix with headings: `cells` by row and column, 0 where there is none.

    `weights` is a column before it, a cell for each row, headed `v`, and `total` a row below it, headed `vᵀJ`.
    """

    name: str
    rows: tuple[Math, ...]
    columns: tuple[Math, ...]
    cells: Mapping[tuple[int, int], Math]
    weights: tuple[Math, ...] = ()
    total: tuple[Math, ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table: a title over each column, and rows of cells."""

    header: tuple[Math, ...]
    rows: tuple[tuple[Math, ...], ...]


@dataclass(frozen=True)
class Code:
    """Lines of a program below a caption; the lines of a `whole` program, which is to be copied, are not broken."""

    lines: tuple[str, ...]
    caption: str = ""
    language: str = "python"
    whole: bool = False


@dataclass(frozen=True)
class Panel:
    """An image below its title: numbers by row and column, and by colour where there is a third axis.

    A `signed` one has one colour for numbers above 0 and one for those below.
    """

    title: tuple[Math, ...]
    pixels: Array
    signed: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of its scale: the least and the largest number; of a signed one, the largest size on both sides."""
        finite = self.pixels[np.isfinite(self.pixels)]
        if self.signed:
            most = float(np.abs(finite).max(initial=0))
            return -most, most
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


@dataclass(frozen=True)
class Images:
    """Images beside each other."""

    panels: tuple[Panel, ...]


Block = Text | Equations | Matrix | Grid | Code | Images


@dataclass(frozen=True)
class Section:
    """A part of a page, known by its name to `--only`; it has a title where its blocks need one."""

    name: str
    blocks: tuple[Block, ...]
    title: tuple[Math, ...] = ()


@dataclass(frozen=True)
class Page:
    """Sections in the order in which they are read, and how formulas are written."""

    sections: tuple[Section, ...]
    style: Style = PLAIN

    def only(self, names: Collection[str]) -> Page:
        """Return the page of the sections of these names alone; the whole page where there are no names."""
        return replace(self, sections=tuple(s for s in self.sections if s.name in names)) if names else self

    def with_notes(self, notes: Iterable[str]) -> Page:
        """Return the page with notes at its end: a document holds what a terminal has on standard error."""
        texts = tuple(Text((" ".join(note.split()),)) for note in notes)
        return replace(self, sections=(*self.sections, Section("notes", texts))) if texts else self


def chosen(
    build: Mapping[str, Callable[[], Iterable[Section]]], only: Collection[str], unasked: Collection[str] = ()
) -> Iterator[Section]:
    """Yield the sections that are called `only` so, or all but those that are not shown `unasked`.

    Errors: `InputError` where there are none that are called so.
    """
    result = False
    for name, make in build.items():
        for section in make() if (name in only if only else name not in unasked) else ():
            result = True
            yield section
    if only and not result:
        raise InputError(
            f"--only: there is nothing to show in {', '.join(only)}",
            hint="omit it to show everything",
            options=("--only",),
            text=", ".join(only),
        )


_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def with_code(words: str, prose: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Return words as a format writes them: their code, which stands between backticks, by `code`, the rest by `prose`.

    >>> with_code("write `x.grad = None` before", str.upper, str)
    'WRITE x.grad = None BEFORE'
    """
    return "".join(code(part) if k % 2 else prose(part) for k, part in enumerate(_CODE.split(words)))


def sentence(words: str, *math: Math) -> tuple[Math, ...]:
    """Return words with mathematics, or with what is typed, in place of each `{}`.

    >>> sentence("adds {} to {}.", VJP, Typed(".grad"))
    ('adds ', VectorProduct(matrix='J', vector='v', first=True), ' to ', Typed(text='.grad'), '.')
    """
    pairs = zip(words.split("{}"), (*math, ""), strict=True)
    return tuple(part for pair in pairs for part in pair if not isinstance(part, str) or part)


def in_parts(math: Math) -> tuple[Math, ...]:
    """Return the parts of words with mathematics between them; anything else is one part."""
    return math.parts if isinstance(math, Words) else (math,)


def quantity(node: Node, names: Mapping[Node, str]) -> Math:
    """Return a node by its name, or what it computes where it has none."""
    return Name(names[node]) if node in names else Computed(node, names, implicit=True)


def assigned(lead: str, values: Iterable[tuple[str, Array]], signed_zero: bool = False) -> list[Math]:
    """Return behind the word that they begin with what has which value: at x0 = 1, x1 = 2."""
    parts: list[Math] = []
    for name, value in values:
        parts += [", " if parts else lead, Equal((Name(name), Value(value, signed_zero)))]
    return parts
