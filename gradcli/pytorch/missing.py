"""What PyTorch has and gradcli's does not: it ends the run at once, naming itself, its line and what comes nearest."""

from __future__ import annotations

from collections.abc import Iterable


class MissingError(BaseException):
    """Something of PyTorch's that gradcli's `torch` lacks; no `except Exception` of a script's catches it."""

    def __init__(self, name: str, hint: str | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.hint = hint


def missing(name: str, known: Iterable[str] = (), prefix: str = "") -> MissingError:
    """Return the error for a name, with the nearest names that there are."""
    from gradcli.errors import did_you_mean

    hint = did_you_mean(name, known)
    return MissingError(prefix + name, hint.replace("`", f"`{prefix}", 1) if hint and prefix else hint)
