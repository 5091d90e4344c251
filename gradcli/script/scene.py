"""What is said of an error in a script: the place where it arose, and what comes of that."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradcli.script.places import code_at, where
from gradcli.script.source import Change, Text

if TYPE_CHECKING:
    from gradcli.pytorch.session import Script
    from gradcli.script.naming import Names

BEFORE = ": requires_grad=True, or x.requires_grad_() before it is used"


@dataclass(frozen=True)
class Told:
    """What happened, in a sentence; what mends it, and the lines to change."""

    reason: str
    mend: str
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Scene:
    """Where an error arose: the script, the line, what the script calls its tensors there, and the message."""

    script: Script
    line: int
    frame: Any
    names: Names
    message: str

    def code(self, line: int) -> str:
        """Return a line with its number: line 3, `y = x.exp()`."""
        found = code_at(self.script, line)
        return f"{where(self.script, line)}, `{found}`," if found else where(self.script, line)

    def name(self, x: Any, otherwise: str = "it") -> str:
        """Return what the script calls a tensor, or the step that made one."""
        return self.names.get(id(x)) or self.names.get(id(getattr(x, "_fn", None))) or otherwise

    def value(self, node: ast.AST) -> Any:
        """Return the value of an expression that only looks something up; None of another one."""
        match node:
            case ast.Name():
                return self.frame.f_locals.get(node.id, self.frame.f_globals.get(node.id))
            case ast.Constant():
                return node.value
            case ast.Attribute():
                return getattr(self.value(node.value), node.attr, None)
            case ast.Subscript():
                try:
                    return self.value(node.value)[self.value(node.slice)]
                except Exception:  # a key that is not there, or no container
                    return None
        return None

    def text(self, line: int | None = None) -> Text:
        """Return the text of the file of a line: of the one where the error arose, if none is given."""
        file = getattr(self.line if line is None else line, "file", "") or self.script.name
        if file == self.script.name:
            return Text(file, self.script.source)
        import linecache

        return Text(file, "".join(linecache.getlines(file)))


def scene_of(error: BaseException, script: Script) -> Scene | None:
    """Return the place where an error arose: the innermost one in a file that is the user's."""
    from gradcli.pytorch.record import Line
    from gradcli.script.naming import names_of

    found = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        module = frame.f_globals.get("__name__", "")
        beside = script.folder is not None and file.startswith(script.folder) and "site-packages" not in file
        if file == script.name or (beside and not module.startswith("gradcli.")):
            found = frame, number, file
    if found is None:
        return None
    line = Line(found[1])
    line.file = found[2]
    return Scene(script, line, found[0], names_of(found[0]), str(error))
