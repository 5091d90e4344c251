"""How formulas are written."""

from __future__ import annotations

from typing import NamedTuple


class Style(NamedTuple):
    """How formulas are written: with decimals if the user wrote decimals; `taken` are the names that mean variables."""

    decimals: bool = False
    taken: frozenset[str] = frozenset()


PLAIN = Style()
