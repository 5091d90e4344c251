"""A call of a script that is explained: where it stands, and what was recorded before it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.errors import Notes

if TYPE_CHECKING:
    from gradcli.pytorch.record import Line
    from gradcli.pytorch.session import Script
    from gradcli.script.naming import Names
    from gradcli.script.trace import Recorded


@dataclass
class Told:
    """The call's line, what the script calls its tensors there, and the system; `trouble` says why there is none."""

    script: Script
    line: int
    names: Names
    recorded: Recorded | None = None
    trouble: str = ""
    steps: bool = False
    reached: dict[int, Line] = field(default_factory=dict)  # the backward that reached a leaf before, by its identity
    notes: Notes = field(default_factory=Notes)

    def name(self, x: Any) -> str:
        """Return what a tensor is called."""
        if self.recorded is not None:
            return self.recorded.name(x)
        return self.names.get(id(x)) or self.names.get(id(x._fn)) or "x"
