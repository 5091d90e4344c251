"""A model's own names, where options name something: no formula can have `onnx::Gemm_0` or `input.1`.

They are known once a model has been read, and forgotten when another command begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_IDENTIFIERS: dict[str, str] = {}  # in formulas, by own names


def note_own_names(identifiers: Mapping[str, str]) -> None:
    """Remember the identifiers that a model's own names have in formulas."""
    _IDENTIFIERS.update(identifiers)


def forget_own_names() -> None:
    """Forget the names of models: another command begins."""
    _IDENTIFIERS.clear()


def with_identifiers(text: str) -> str:
    """Return the text of an option, in which each own name is an identifier where a name can stand.

    >>> note_own_names({"onnx::Gemm_0": "onnx__Gemm_0", "input.1": "input_1"})
    >>> with_identifiers("onnx::Gemm_0=[1,2], input.1[0]=3"), with_identifiers("onehot:input.1")
    ('onnx__Gemm_0=[1,2], input_1[0]=3', 'onehot:input_1')
    >>> forget_own_names()
    """
    named = sorted((name for name in _IDENTIFIERS if name in text), key=len, reverse=True)
    if not named:
        return text
    begin, end = r"(?:(?<=[,;:\s])|^)", r"(?=\s*(?:\[[\d\s,]*\])?\s*(?:=|,|;|$))"
    pattern = f"{begin}(?:{'|'.join(map(re.escape, named))}){end}"
    return re.sub(pattern, lambda match: _IDENTIFIERS[match[0]], text)
