"""What a call of the vocabulary was given, of which kernels are made."""

from __future__ import annotations

from typing import Any


def given(settings: Any) -> tuple[list[Any], dict[str, Any]] | None:
    """Return what a call was given behind its first operand, and by name: numbers, and the places of operands.

    None for a node of a gradient, whose settings are others.

    >>> given(((("operand", 0), ("operand", 1), ("setting", None)), (("stride", ("list", (("setting", 2),))),)))
    ([1, None], {'stride': (2,)})
    """
    if len(settings) not in (0, 2):
        return None
    places, named = settings or ((), ())
    return [_value(e) for e in places[1:]], {k: _value(e) for k, e in named}


def _value(encoded: Any) -> Any:
    return tuple(_value(e) for e in encoded[1]) if encoded[0] == "list" else encoded[-1]
