"""`If`, `Loop` and `Scan` with known conditions and counts: the branch that is taken, and the rounds one by one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.names import identifier
from gradcli.graph.node import Node
from gradcli.onnx.files import array, initializers
from gradcli.onnx.values import KNOWN, Value, axis_of, gather, stack

MAX_ROUNDS = 10_000  # of a loop
MAX_ALL_ROUNDS = 30_000  # of all loops, within each other too

Values = Sequence[Value | None]


class Inner(NamedTuple):
    """The runner of a graph within a node, which may read the names around the node."""

    run: Callable[..., None]
    begin: Callable[[], None]  # counts a round
    folder: Path
    scope: MutableMapping[str, Value | None]
    opsets: Mapping[str, int]
    depth: int
    variables: MutableMapping[Node, str]  # the names of results within the node

    def results(self, graph: Any, inputs: Values) -> list[Value | None]:
        """Return the outputs of a graph for these inputs."""
        self.begin()
        values: dict[str, Value | None] = {name: array(t, self.folder) for name, t in initializers(graph).items()}
        values |= dict(zip((v.name for v in graph.input), inputs, strict=False))
        scope = ChainMap(values, self.scope)
        self.run(graph.node, scope, self.opsets, self.depth)
        for name, value in values.items():
            if isinstance(value, Node) and value.args and not any(value is x for x in inputs):
                self.variables.setdefault(value, identifier(name))
        missing = next((v.name for v in graph.output if v.name not in scope), None)
        if missing is not None:
            raise InputError("a graph within it does not compute its output", hint="the model is damaged")
        return [scope[v.name] for v in graph.output]


def _known(value: Value | None, what: str) -> Any:
    if isinstance(value, Node):
        raise InputError(f"its {what} depends on values of the model's inputs", hint=KNOWN)
    if value is None:
        return None
    if value.size != 1 or value.dtype.kind not in "biu":
        raise InputError(f"its {what} is not one {'condition' if what == 'condition' else 'integer'}")
    return value.item()


def _if(inner: Inner, inputs: Values, graphs: Mapping[str, Any], _: Mapping[str, Any]) -> list[Value | None]:
    branch = "then_branch" if _known(inputs[0], "condition") else "else_branch"
    return inner.results(graphs[branch], ())


def _loop(inner: Inner, inputs: Values, graphs: Mapping[str, Any], _: Mapping[str, Any]) -> list[Value | None]:
    count, going, state = _known(inputs[0], "number of rounds"), _known(inputs[1], "condition"), [*inputs[2:]]
    scanned: list[list[Value | None]] = [[] for _ in range(len(graphs["body"].output) - 1 - len(state))]
    k = 0
    while (count is None or k < count) and going is not False and going != 0:
        if k >= MAX_ROUNDS:
            raise InputError(f"a loop of more than {MAX_ROUNDS:,} rounds is not supported")
        first, *rest = inner.results(graphs["body"], [np.array(k, np.int64), np.array(True), *state])
        state = rest[: len(state)]
        for rows, value in zip(scanned, rest[len(state) :], strict=True):
            rows.append(value)
        going = _known(first, "condition") if first is not None else True
        k += 1
    return [*state, *(stack(rows, 0) if rows else np.zeros((0,)) for rows in scanned)]


def _scan(inner: Inner, inputs: Values, graphs: Mapping[str, Any], attributes: Mapping[str, Any]) -> list[Value | None]:
    if inner.opsets.get("", 1) < 9:
        raise InputError("`Scan` of opset 8 is not supported", hint="convert the model to a newer opset")
    count, body = attributes["num_scan_inputs"], graphs["body"]
    if not 1 <= count <= len(inputs):
        raise InputError(f"it scans {count} of {len(inputs)} inputs")
    state, sequences = [*inputs[: len(inputs) - count]], [v for v in inputs[len(inputs) - count :] if v is not None]
    outputs = len(body.output) - len(state)
    axes = [
        axis_of(a, len(x.shape)) for a, x in zip(attributes.get("scan_input_axes", [0] * count), sequences, strict=True)
    ]
    directions = attributes.get("scan_input_directions", [0] * count)
    rounds = sequences[0].shape[axes[0]]
    if rounds > MAX_ROUNDS:
        raise InputError(f"a scan of more than {MAX_ROUNDS:,} rounds is not supported")
    rows: list[list[Value | None]] = [[] for _ in range(outputs)]
    for k in range(rounds):
        steps = [np.array(rounds - 1 - k if backwards else k) for backwards in directions]
        at = [gather(x, axis, step) for x, axis, step in zip(sequences, axes, steps, strict=True)]
        results = inner.results(body, [*state, *at])
        state = results[: len(state)]
        for part, value in zip(rows, results[len(state) :], strict=True):
            part.append(value)
    ends = attributes.get("scan_output_axes", [0] * outputs)
    ways = attributes.get("scan_output_directions", [0] * outputs)
    return [*state, *(stack(part[::-1] if d else part, a) for part, a, d in zip(rows, ends, ways, strict=True))]


CONTROL = {"If": _if, "Loop": _loop, "Scan": _scan}
