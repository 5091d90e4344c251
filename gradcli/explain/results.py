"""What a command shows, as plain data.  Arrays hold float64, or SymPy expressions where there is no point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep

if TYPE_CHECKING:
    from gradcli.algebra.jacobian import SymbolicJacobian
    from gradcli.explain.trace import Trace

Array = np.ndarray[Any, Any]
Named = dict[str, Array]


class Call(NamedTuple):
    """One `backward` call: its cotangent, its own vᵀJ, and what has accumulated in `.grad` after it."""

    v: Named
    own: Named
    grad: Named


@dataclass(frozen=True)
class BackwardPoint:
    """The gradients at one point; without a point, `at` and `value` are empty and the gradients are formulas."""

    at: Named
    value: Named
    intermediates: Named
    calls: tuple[Call, ...]
    retained: Named
    jacobian: Array | None
    trace: Trace | None
    adjoints: Named = field(default_factory=dict)  # of the retained, as formulas

    @property
    def grad(self) -> Named:
        """What has accumulated after the last call."""
        return self.calls[-1].grad


class JacobianPoint(NamedTuple):
    """The Jacobian at one point."""

    at: Named
    value: Named
    jacobian: Array
    trace: Trace | None = None  # of a call for each of the first rows


@dataclass(frozen=True)
class Shown:
    """What every result knows of its system.

    `decimals` tells that the user wrote decimals, so that formulas do, `taken` which names mean variables.
    """

    graph: Graph
    wrt: tuple[str, ...]
    symbolic: SymbolicJacobian | None
    decimals: bool
    taken: frozenset[str]

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""
        from gradcli.notation.formulas import code

        return code(expr, self.decimals, self.taken)

    @property
    def leaves(self) -> dict[str, Node]:
        """The leaves that gradients are taken by, in the order wanted."""
        return {name: self.graph.inputs[name] for name in self.wrt}


@dataclass(frozen=True)
class JacobianResult(Shown):
    """The result of `gradcli jacobian`; `trace` has the steps without a point."""

    points: tuple[JacobianPoint, ...] = ()
    trace: Trace | None = None


@dataclass(frozen=True)
class BackwardResult(Shown):
    """The result of `gradcli backward`.

    `implicit` tells that nobody gave the cotangent, `forgotten` of which intermediates PyTorch keeps no gradient.
    """

    swept: Sweep
    points: tuple[BackwardPoint, ...] = ()
    numeric: bool = True
    steps: bool = False
    retained: tuple[str, ...] = ()
    implicit: bool = False
    forgotten: tuple[str, ...] = ()
