"""The user's own PyTorch: whether it is installed, and which scripts need it, by their text alone."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

LOWEST = (2, 6)
INSTALL = "python -m pip install torch"
_ELSEWHERE = {"torch", "functorch", "gradcli", "numpy"}  # what is no third package, or needs none


def version() -> str | None:
    """Return the version of PyTorch that is installed; None without one."""
    from importlib import metadata  # a third of a script's start: most import nothing that it is asked for

    with suppress(metadata.PackageNotFoundError):
        return metadata.version("torch")
    return None


def is_new_enough(installed: str) -> bool:
    """Return whether a version of PyTorch has what a recording takes.

    >>> [is_new_enough(v) for v in ("2.13.0+cpu", "2.6.0", "2.5.1", "1.13", "nightly")]
    [True, True, False, False, False]
    """
    numbers = re.match(r"(\d+)\.(\d+)", installed)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= LOWEST


def needing(source: str, folder: str | None) -> str:
    """Return the first import of a script that needs PyTorch itself; "" without one.

    A package counts if its requirements name torch, those of its extras too, or if a part of it that is imported is
    called torch.  What stands in the script's folder is the script's own.

    >>> needing("import numpy, torch.nn as nn", None)
    ''
    """
    for name in _imported(source):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in _ELSEWHERE or _is_beside(top, folder):
            continue
        if "torch" in name.split(".")[1:] or _requires_torch(top):
            return name
    return ""


def _imported(source: str) -> Iterator[str]:
    """Yield the modules that a program imports anywhere."""
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from (f"{node.module}.{each.name}" for each in node.names)


def _is_beside(top: str, folder: str | None) -> bool:
    path = os.path.join(folder or os.getcwd(), top)
    return os.path.isdir(path) or os.path.isfile(f"{path}.py")


def _requires_torch(top: str) -> bool:
    """Return whether an installed package requires PyTorch."""
    from importlib import metadata

    try:
        if importlib.util.find_spec(top) is None:
            return False
    except (ImportError, ValueError):
        return False
    for name in [top, *_distributions(top)]:
        with suppress(metadata.PackageNotFoundError):
            required = metadata.requires(name) or []
            return any(re.match(r"torch(?![\w.-])", each) for each in required)
    return False


def _distributions(top: str) -> list[str]:
    """Return the packages that a module is of, where that is not called so."""
    from importlib import metadata

    try:
        metadata.distribution(top)
    except metadata.PackageNotFoundError:
        return list(metadata.packages_distributions().get(top, ()))
    return []
