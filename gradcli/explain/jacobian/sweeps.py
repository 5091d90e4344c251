"""The sentence of a page on the mode in which a Jacobian was computed, forward or reverse, and why."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.explain.jacobian.dense import JacobianResult
from gradcli.explain.sections import Math, Name, sentence
from gradcli.graph.jacobian import plan

_WHOLE = 36  # derivatives of one output that need no such sentence: they take one pass


def modes(result: JacobianResult) -> tuple[Math, ...]:
    """Return a sentence on the mode (forward or reverse) and the number of passes; nothing for a short gradient."""
    rows, columns = len(result.formulas.rows), len(result.formulas.columns)
    if rows == 1 and columns <= _WHOLE:
        return ()
    planned = plan(result.graph, result.wrt)
    forward = _Mode("forward", "column", "output", columns, planned.forward_sweeps)
    reverse = _Mode("reverse", "row", "input", rows, planned.reverse_sweeps)
    taken, other = (forward, reverse) if planned.forward else (reverse, forward)
    there = ""
    if other.sweeps > taken.sweeps:
        there = f", where {other.name} mode takes {other.sweeps:,}"
        there += f": {other.together}" * (other.sweeps < other.lines)
    each = f"one per {taken.line}" if taken.sweeps == taken.lines else taken.together
    passes = f"{taken.sweeps:,} pass{'es' * (taken.sweeps > 1)}"
    return sentence(f"gradcli computes {{}} in {taken.name} mode: {passes}, {each}{there}.", Name("J"))


class _Mode(NamedTuple):
    """A mode: what a pass gives (a row or a column), how many of these J has, and how many passes J takes."""

    name: str
    line: str
    shared: str
    lines: int
    sweeps: int

    @property
    def together(self) -> str:
        """Why there are fewer passes than lines."""
        return f"{self.line}s that share no {self.shared} go together"
