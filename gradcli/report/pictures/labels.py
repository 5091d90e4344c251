"""The texts in a picture's boxes and at its arrows, in the notation of a writer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcli.pages.picture.boxes import Box, Picture, Rounds
from gradcli.pages.sections import Equal, Math, Name, Partial, Product, Words
from gradcli.report.text_math import TextWriter
from gradcli.text.bars import curve
from gradcli.text.wrapping import TIED, broken, cells

_NAME = re.compile(r"∂[\w\u0304]+/∂\w+|[\w\u0304]+")
_PATHS = 4  # that are shown of a box
_BARS = 24  # of a loop's rounds: a line
_BESIDE = 12  # letters beside a long name
LEAF, INTERMEDIATE, OUTPUT = "leaf", "intermediate", "output"


class Labels:
    """Writes what the boxes of a picture say: in text, unless another writer is given."""

    def __init__(self, picture: Picture, digits: int | None, writer: TextWriter | None = None) -> None:
        self.picture = picture
        self.writer = writer or TextWriter(picture.style, digits)

    def equation(self, box: Box) -> list[str]:
        """Return the sides of a value's equation: its name, its formula, its number."""
        return self.writer.sides(tuple(box.equation()))

    def reverse(self, box: Box) -> list[str]:
        """Return the sides of the adjoint's equation; none without an adjoint."""
        return self.writer.sides(tuple(box.reverse()))

    def value_lines(self, box: Box, letters: int) -> list[str]:
        """Return the statements of a loop, and the equation of a value, in lines of at most so many letters."""
        statements = [line for s in box.statements for line in _sides(self.writer.sides(s), letters * 3 // 2)]
        return [*statements, *_sides(self.equation(box), letters)]

    def adjoint_lines(self, box: Box, letters: int) -> list[str]:
        """Return the equation of the adjoint in lines of so many letters, and what is said of each round."""
        return [*_sides(self.reverse(box), letters), *map(self.rounds_line, box.shown_rounds)]

    def rounds_line(self, rounds: Rounds) -> str:
        """Return what a loop says of a quantity in each round: bars between the first and the last number."""
        said = "".join(map(self.writer.write, rounds.math()))
        return said.replace("…", curve([*rounds.sizes.values()], _BARS), 1)

    def locals(self, box: Box) -> list[str]:
        """Return the label of each arrow into the box; none where no adjoint goes along the arrow."""
        return ["" if a.local is None else self.writer.write(a.local) for a in box.arrows]

    def paths(self, box: Box) -> list[str]:
        """Return the contribution to the box along each path, the largest first, if there are several."""
        shown = [self.writer.write(path.math()) for path in box.paths[:_PATHS]]
        return [*shown, f"… {len(box.paths) - _PATHS:,} more"] if len(box.paths) > _PATHS else shown

    def _meaning_of_adjoints(self) -> list[str]:
        """Return the lines that define the notation of adjoints; none without adjoints.

        They are x̄ = ∂L/∂x, for the first variable whose adjoint is written with a bar, and L = …, where L is no output.
        """
        scalar, loss = self.picture.scalar, self.picture.loss
        boxes = [box for box in self.picture.boxes if not isinstance(box.adjoint, str)]
        shown = [box for box in boxes if box.adjoint is not None] or boxes  # or in the rules alone
        names = [(box.ends or (box.name,))[0] for box in shown if box.name != scalar]
        if not scalar or not names:
            return []
        bar = self.picture.adjoint(names[0])
        meaning = Equal((Name(bar), Partial(scalar, bar.by))) if bar.barred else None
        return [self.writer.write(math) for math in (meaning, loss) if math is not None]

    def foot(self) -> list[str]:
        """Return the meaning of adjoints, and that of the first path shown."""
        path = self._path()
        return [*self._meaning_of_adjoints(), *([] if path is None else [self.writer.write(path)])]

    def _path(self) -> Math | None:
        """Return the sentence that explains the first shown path; None where no path is shown."""
        bar_of = self.picture.adjoint
        for box in self.picture.boxes:
            for path in box.paths[:_PATHS]:
                if path.source != "v":
                    bar, part = Name(bar_of(box.name)), Partial(path.source, box.name, local=True)
                    product = Product((Name(bar_of(path.source)), part))
                    said = " is " if path.product else " is the norm of "
                    return Words((path.math(), said, product, ", the part of ", bar, " from ", Name(path.source)))
        return None


def _sides(sides: Sequence[str], letters: int) -> list[str]:
    """Return an equation on one line, or with its last side on lines of its own."""
    whole = " = ".join(sides)
    if cells(whole) <= letters or len(sides) < 2:
        return lines_of(whole, letters) if whole else []
    first = " = ".join([*sides[:-1], ""]).rstrip()
    return [*lines_of(first, letters), *("  " + line for line in lines_of(sides[-1], letters - 2))]


def lines_of(text: str, letters: int) -> list[str]:
    """Return a formula in lines of about so many letters: twice as many at most, for long names; longer lines are cut.

    >>> lines_of("first(x) + second(x)", 12)
    ['first(x) +', '  second(x)']
    >>> lines_of("∂y/∂weight = 2*weight = 5", 12)
    ['∂y/∂weight = 2*weight', '  = 5']
    """
    longest = max(map(cells, _NAME.findall(text)), default=0)
    lines = broken(text.replace(TIED, " "), max(letters, min(longest + _BESIDE, 2 * letters)))
    return [line if cells(line) <= 2 * letters else line[: 2 * letters - 1] + "…" for line in lines]
