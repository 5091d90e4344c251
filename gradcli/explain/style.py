"""The style of formulas."""

from __future__ import annotations

from typing import NamedTuple


class Style(NamedTuple):
    """The style of formulas: with decimals if the user wrote decimals; `taken` are the names of variables.

    `single` is the output and the input of a system that has one of each, both scalar: LaTeX writes dy/dx, not ∂y/∂x.
    """

    decimals: bool = False
    taken: frozenset[str] = frozenset()
    single: tuple[str, str] | None = None


PLAIN = Style()
