"""The lines of a program that call `backward`, by its text: those whose pages end the recording."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Collection
from contextlib import suppress

from gradcli.realtorch.sites import is_installed

Call = tuple[str, int, int]  # a file, the first and the last line


class Lines:
    """The calls of `backward` and `grad` in a program's own files, of some lines alone or of all.

    Without `main`, a block of a program is recorded: its calls may be anywhere, unless they are those of some lines.
    """

    def __init__(self, main: str | None, only: Collection[int] = (), round: int = 0) -> None:
        self.main, self.only, self.round = main, frozenset(only), round
        self._calls: dict[str, list[Call]] = {}

    def are_explained(self, sites: Collection[tuple[str, int, int]]) -> bool:
        """Return whether each of the calls is at one of these sites; a file that is imported later may have more."""
        if self.main is None:
            return bool(self.only) and self.only <= {line for _, line, _ in sites}
        for call in self._every(self.main):
            if not any(file == call[0] and call[1] <= line <= call[2] for file, line, _ in sites):
                return False
        return True

    def _every(self, program: str) -> list[Call]:
        files = {program}
        for module in [*sys.modules.values()]:
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.endswith(".py") and not is_installed(file):
                files.add(file)
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        if main != program:
            files.discard(main)  # the same file by its whole path
        result: list[Call] = []
        for file in files:
            if file not in self._calls:
                self._calls[file] = _calls("".join(linecache.getlines(file)), file)
            result += self._calls[file]
        if self.only:
            result = [c for c in result if any(c[1] <= n <= c[2] for n in self.only)]
        return result


def _calls(source: str, file: str) -> list[Call]:
    """Return the calls of `backward` and `autograd.grad` in a text.

    >>> _calls("from torch.autograd import grad\\nl.backward()\\ng, = grad(\\n y, x)\\ntorch.autograd.grad(y, x)", "")
    [('', 2, 2), ('', 3, 4), ('', 5, 5)]
    """
    result: list[Call] = []
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                words = ast.unparse(node.func).split(".")
                if words[-1] == "backward" or words[-2:] == ["autograd", "grad"] or words == ["grad"]:
                    result.append((file, node.lineno, node.end_lineno or node.lineno))
    return sorted(result)
