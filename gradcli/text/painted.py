"""The colours of a terminal, which have one meaning everywhere: cotangents orange, adjoints and gradients red.

What is right is green, what is wrong is bold on red; nan and infinity are bold.  Values are plain.  No colour says what
the words do not say.
"""

from __future__ import annotations

import re

_BOLD, ORANGE, RED, _GREEN, _WRONG, _END = (f"\x1b[{code}m" for code in ("1", "38;5;166", "31", "32", "1;37;41", "0"))
_NAME = r"[^\W\d]\w*(?:\.\w+)*"
# Each kind of word with its colour: a name with a bar, or with `.grad`, is an adjoint.
_KINDS = (
    (_BOLD, r"(?<!\w)(?:nan|inf)(?!\w)"),
    (RED, rf"{_NAME}\.grad(?:\[[\d, :]*\])?(?!\w)|vᵀJ|[^\W\d]\w*\u0304\w*|(?<!\w){_NAME}_bar(?!\w)"),
    (ORANGE, r"(?<![\w.])v(?![\w(.])"),
    (_GREEN, r"(?<=  )right(?=:)"),
    (_WRONG, r"(?<=  )wrong(?=:)|^error(?: in [^:]*)?(?=:)"),
)
_WORDS = re.compile("|".join(f"({pattern})" for _, pattern in _KINDS))


def painted(line: str, bold: bool = False, v: bool = True) -> str:
    """Return a line with the codes of its colours; one that has codes stays as it is.

    Without `v`, which is a name of the user's then, v is no cotangent.

    >>> painted("x.grad = v·2 = 6")
    '\\x1b[31mx.grad\\x1b[0m = \\x1b[38;5;166mv\\x1b[0m·2 = 6'
    >>> painted("y = x", bold=True)
    '\\x1b[1my = x\\x1b[0m'
    """
    if "\x1b" in line or not line:
        return line
    base = _BOLD if bold else ""

    def coloured(match: re.Match[str]) -> str:
        colour = _KINDS[(match.lastindex or 1) - 1][0]
        return match[0] if colour == ORANGE and not v else f"{colour}{match[0]}{_END}{base}"

    inner = _WORDS.sub(coloured, line)
    return f"{base}{inner}{_END}" if bold else inner


def of_cotangent(line: str) -> str:
    """Return a row of a table whose first word is a cotangent.

    >>> of_cotangent("10   y1")
    '\\x1b[38;5;166m10\\x1b[0m   y1'
    """
    return re.sub(r"^\S+", lambda m: f"{ORANGE}{m[0]}{_END}", line)


def is_not_finite(line: str) -> bool:
    """Return whether a line has a nan or an infinity.

    >>> is_not_finite("x.grad = 0·inf"), is_not_finite("info = 3")
    (True, False)
    """
    return re.search(_KINDS[0][1], line) is not None
