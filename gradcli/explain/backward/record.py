"""The record of `gradcli backward`: at each point what every call gives and leaves in `.grad`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.explain.results import Array, Named, Row, Shown, Wanted, defined, noted
from gradcli.graph.names import ElementName
from gradcli.graph.vjp import Sweep, differentiated

if TYPE_CHECKING:
    from gradcli.explain.sections import Text
    from gradcli.explain.trace import Trace


class Call(NamedTuple):
    """One `backward` call: its cotangent, its own vᵀJ, and what has accumulated in `.grad` after it."""

    v: Named
    vjp: Named
    grad: Named


@dataclass(frozen=True)
class BackwardPoint:
    """The gradients at one point; without a point, `at` and `value` are empty and the gradients are formulas."""

    at: Named
    value: Named
    intermediates: Named
    calls: tuple[Call, ...]
    retained: Named
    trace: Trace | None
    adjoints: Named = field(default_factory=dict)  # of the retained, as formulas
    jacobian: Array | None = None
    notes: tuple[
        str | Text, ...
    ] = ()  # on corners that the point lies on, and in JSON on gradients that are nan or None

    @property
    def grad(self) -> Named:
        """The gradients accumulated by all calls."""
        return self.calls[-1].grad


@dataclass(frozen=True)
class BackwardResult(Shown):
    """The result of `gradcli backward`; `numeric` is whether it is at points."""

    swept: Sweep
    wanted: Wanted
    points: tuple[BackwardPoint, ...]
    numeric: bool
    in_v: Named = field(default_factory=dict)  # the gradients as formulas in the cotangents

    @property
    def forgotten(self) -> list[str]:
        """The intermediates of which PyTorch keeps no gradient unless `retain_grad` is called."""
        graph = self.graph
        kept = {*graph.inputs.values(), *graph.outputs.values(), *(graph.names[name] for name in self.wanted.retain)}
        lost = differentiated(graph, self.wrt) - kept
        return [name for name, n in graph.names.items() if n in lost and not isinstance(name, ElementName)]

    @cached_property
    def unreached(self) -> list[str]:
        """The intermediates in `retain` that no gradient arrives at: PyTorch leaves their `.grad` None."""
        reached = differentiated(self.graph, self.wrt) if self.wanted.retain else set()
        return [name for name in self.wanted.retain if self.graph.names[name] not in reached]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; without a point, one whose gradients are formulas."""
        for p in self.points:
            result: dict[str, Any] = {"at": p.at, "value": p.value} if self.numeric else {}
            result |= {"calls": [{"v": call.v, "grad": call.grad} for call in p.calls], "grad": p.grad}
            result |= {"retained": p.retained} if p.retained else {}
            if self.wanted.steps and p.trace is not None:
                from gradcli.explain.backward.steps import steps_objects  # data start sooner without it

                result["steps"] = steps_objects(p.trace)
            result |= {"formulas": self.in_v} if self.in_v else {}
            result |= noted(p.notes)
            yield result if self.numeric else result | self.where_object

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: the point, the outputs, `x0.grad`, …; without a point formulas."""
        for p in self.points:
            grads = [(f"{name}.grad", grad) for name, grad in (*p.grad.items(), *p.retained.items())]
            yield [*p.at.items(), *p.value.items(), *grads, *(() if self.numeric else defined(self.where))]
