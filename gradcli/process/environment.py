"""Variables of the environment that gradcli sets for the libraries that it uses, and that a script does not see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ADDED: set[str] = set()


def add(name: str, value: str) -> None:
    """Set a variable, unless the user has."""
    if name not in os.environ:
        os.environ[name] = value
        _ADDED.add(name)


@contextmanager
def as_the_user_has_it() -> Iterator[None]:
    """Restore the user's environment variables while a script runs."""
    added = {name: os.environ.pop(name) for name in sorted(_ADDED) if name in os.environ}
    try:
        yield
    finally:
        for name, value in added.items():
            os.environ.setdefault(name, value)
