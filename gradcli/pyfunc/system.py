"""A function of the user's as a part of a system: its parameters, its results, and the nodes between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from inspect import Parameter as Declared
from typing import Any

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.graph import subsystem
from gradcli.graph.array import Array, Named
from gradcli.graph.names import identifier, variable_name
from gradcli.graph.node import Node
from gradcli.graph.rewrite import substituted
from gradcli.graph.shapes import Shape
from gradcli.pyfunc.tape import Condition, span_of
from gradcli.pyfunc.trace import Trace, Unknown, parameters_of, trace
from gradcli.pyfunc.tracer import is_number, leaves, mapped

_LISTED = 3  # branches in a note

Known = Mapping[str, Array | Shape]


class FunctionSystem:
    """A function as a subsystem (see `graph.subsystem`), traced once, at the values and in the shapes that are known.

    `known` has the value of an input, or its shape alone; of others the defaults count, and without one they are
    scalars without a value.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        label: str,
        known: Known,
        running: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.label = label
        self.name = identifier(label.rpartition(":")[2].rpartition(".")[2])
        self._running = running  # what the function's file needs while it is called
        self._function = function
        self._known = known
        self.conditions: list[Condition] = []  # on the nodes that `build` returned last
        self.spans: Mapping[Node, Span] = {}
        self.parts: Mapping[Node, str] = {}
        self.variables: Mapping[Node, str] = {}

    @property
    def weights(self) -> Sequence[str]:
        """None: what a function reads beside its arguments is a constant."""
        return ()

    @cached_property
    def _arguments(self) -> dict[str, Any]:
        """The arguments of the function, by parameter."""
        result: dict[str, Any] = {}
        for p in parameters_of(self._function).values():
            if p.kind in (Declared.VAR_POSITIONAL, Declared.VAR_KEYWORD):
                continue
            if p.name in self._known or p.default is Declared.empty:
                known = self._known.get(p.name, ())
                result[p.name] = Unknown(known) if isinstance(known, tuple) else _as_declared(known, p.default)
            elif isinstance(p.default, list | tuple) and p.default and all(map(is_number, p.default)):
                result[p.name] = np.array(p.default)
            else:
                result[p.name] = mapped(p.default, p.name, self._at)
        return result

    def _at(self, name: str, default: Any) -> Any:
        """Return the value of an input that is a part of a default, such as a field of a dataclass."""
        known = self._known.get(name, default)
        return Unknown(known) if isinstance(known, tuple) else known

    @cached_property
    def _trace(self) -> Trace:
        with self._running():
            try:
                return trace(self._function, self._arguments, self.name)
            except (TypeError, IndexError, ValueError) as error:
                if not any(isinstance(x, Unknown) and not x.shape for x in self._arguments.values()):
                    raise
                scalars = [n for n, x in self._arguments.items() if isinstance(x, Unknown) and not x.shape]
                raise InputError(
                    f"`{self.name}` fails where {' and '.join(f'`{n}`' for n in scalars)} "
                    f"{'is a scalar' if len(scalars) == 1 else 'are scalars'}: {error}",
                    hint=f"give a point, --at {scalars[0]}=…, or shapes: --shape {scalars[0]}=3",
                ) from None

    @cached_property
    def parameters(self) -> Mapping[str, subsystem.Parameter]:
        """The inputs: the parameters that are numbers, with their defaults."""
        shapes = {name: node.shape for name, node in self._trace.graph.inputs.items()}
        return {name: subsystem.Parameter(shape, self._defaults.get(name)) for name, shape in shapes.items()}

    @cached_property
    def _defaults(self) -> dict[str, Array]:
        """The values of the inputs that the function declares."""
        result: dict[str, Array] = {}
        for p in parameters_of(self._function).values():
            if p.default is Declared.empty or p.default is None:
                continue
            if isinstance(p.default, list | tuple) and p.default and all(map(is_number, p.default)):
                result[p.name] = np.array(p.default, float)
            else:
                result |= {name: np.asarray(x, float) for name, x in leaves(p.default, p.name)}
        return result

    @property
    def names(self) -> Sequence[str]:
        """The computed values: local variables, then the results."""
        return list(self._trace.graph.names)

    @property
    def outputs(self) -> Sequence[str]:
        """The results."""
        return list(self._trace.graph.outputs)

    @property
    def notes(self) -> Sequence[str]:
        """Which branches were taken, a note a line."""
        lines: dict[tuple[str, int], list[Any]] = {}
        for c in self._trace.conditions:
            lines.setdefault((c.file, c.line), []).append(c.value)
        return [_note(*line, values) for line, values in lines.items()]

    def build(self, inputs: Mapping[str, Node], fixed: Named) -> Mapping[str, Node]:
        """Return the function's named nodes, computed from `inputs` instead of the leaves that it was traced with.

        Sets `conditions`, `spans` and `variables` to those of the new nodes. `fixed` is a part of the protocol, and is
        not read.

        Errors: `InputError` for inputs of other shapes than it was traced with.
        """
        graph = self._trace.graph
        for name, node in graph.inputs.items():
            if inputs[name].shape != node.shape:
                raise InputError(
                    f"`{self.name}` was traced with `{name}` of shape {node.shape}, not {inputs[name].shape}",
                    hint=f"say it: --shape {name}={'x'.join(map(str, inputs[name].shape)) or '1'}",
                )
        replacements = {node: inputs[name] for name, node in graph.inputs.items()}
        conditions = [c.node for c in self._trace.conditions]
        new = substituted([*graph.names.values(), *conditions, *graph.spans], replacements)
        count = len(graph.names)
        self.conditions = [
            c._replace(node=n)
            for c, n in zip(self._trace.conditions, new[count : count + len(conditions)], strict=True)
        ]
        self.spans = dict(zip(new[count + len(conditions) :], graph.spans.values(), strict=True))
        self.variables = {n: variable_name(name) for name, n in zip(graph.names, new[:count], strict=True)}
        return dict(zip(graph.names, new[:count], strict=True))


def _as_declared(value: Array, default: Any) -> Any:
    """Return a value as an integer where the default is one, as in `n=3`."""
    is_integer = isinstance(default, int | np.integer) and not isinstance(default, bool)
    return value.astype(int) if is_integer and (value == value.astype(int)).all() else value


def _note(file: str, line: int, values: Sequence[Any]) -> str:
    span = span_of(file, line)
    code = f"`{span.line.rstrip(':')}`" if span is not None else "a branch"
    where = f"line {line}: {code}"
    flags = [bool(v) for v in values if v.dtype.kind == "b" and not v.shape]
    if len(flags) < len(values):
        return f"{where} reads values to choose elements; the derivative holds where it chooses the same"
    if len(set(flags)) == 1:
        times = f" {len(flags)} times" if len(flags) > 1 else ""
        return f"{where} is {flags[0]} here{times}; the derivative is that of this branch"
    return f"{where} is True in {sum(flags)} of {len(flags)} cases here; the derivative is that of these branches"
