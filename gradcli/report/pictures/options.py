"""The options of a picture, beside its format."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """The options of a picture: drawn from left to right if `horizontal`; as text, in colour if `styled`."""

    horizontal: bool = False
    styled: bool = False


PLAIN = Options()
