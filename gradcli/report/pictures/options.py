"""How a picture is drawn, beside its format."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """How a picture is drawn: from left to right if `horizontal`; as text, in colour if `styled`."""

    horizontal: bool = False
    styled: bool = False


PLAIN = Options()
