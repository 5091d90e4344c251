"""The numbers that the record of a call has, for the nodes and the names of the system behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph.names import adjoint_name
from gradcli.graph.node import Node
from gradcli.pages.backward.loss import loss_name
from gradcli.pages.results import Hook, Measured
from gradcli.record import record as records
from gradcli.record.numbers import Numbers, decimal
from gradcli.record.record import Operation
from gradcli.script.system import Recorded

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-3  # of the largest number: above it, float32 has lost more than digits
HOOKED = "BackwardHookFunctionBackward"  # what a module with hooks passes its inputs and outputs through


def measured(recorded: Recorded) -> Measured:
    """Return the numbers of a call, which are converted once, for its page and its picture."""
    if recorded.measured is None:
        recorded.measured = _measured(recorded)
    return recorded.measured


def _measured(recorded: Recorded) -> Measured:
    """Return the values of a call, its adjoints and contributions, and what hooks passed on in the place of adjoints.

    Nothing is returned of what comes behind a hook whose work is no adjoint of the system.
    """
    hooks, altered = _hooks(recorded), behind_hooks(recorded)
    arrived = {q: a for q, a in adjoints(recorded).items() if q not in altered}
    gradients = {name: arrived[q] for q, name in recorded.names.items() if q in arrived}
    of_nodes = {recorded.graph.inputs[n]: gradients[n] for n in recorded.graph.inputs if n in gradients}
    contributions: dict[tuple[Node, int], Array] = {}
    for node, q in recorded.results.items():
        if q in arrived:
            of_nodes[node] = arrived[q]
            contributions |= _contributions(recorded, recorded.record.producers[q], q)
    of_nodes |= {n: hook.before for n, hook in hooks.items()}
    if hooks:
        gradients |= {name: hooks[n].after for q, name in recorded.names.items() if (n := recorded.node(q)) in hooks}
    known = {n: recorded.record.quantities[q] for n, q in recorded.results.items()}
    known = {n: q for n, q in known.items() if q.numbers.whole is not None and q.shape == n.shape and n.dtype != "bool"}
    values = {n: numbers(q.numbers) for n, q in known.items()}
    return Measured(gradients, of_nodes, contributions, values, hooks=hooks)


def adjoints(recorded: Recorded) -> dict[int, Array]:
    """Return the gradient of each quantity before its hooks, as the call had it."""
    call, operations = recorded.call, recorded.record.operations
    result = {operations[o].results[k]: g for (o, k), g in call.received.items()}
    result |= {c.quantity: c.added for c in (*call.leaves, *call.retained)}
    for hook in reversed(call.hooks):
        if hook.operation is None:
            result[hook.quantity] = hook.before
    return {q: numbers(g) for q, g in result.items()}


def _contributions(recorded: Recorded, o: Operation, q: int) -> dict[tuple[Node, int], Array]:
    """Return what an operation sends to its operands, by the node that reads the operand, where one alone does.

    Of one of several results it is not recorded alone.
    """
    if q not in recorded.copies or len(o.results) > 1:
        return {}
    (definition,), nodes = o.definitions, recorded.copies[q]
    readers: dict[int, list[tuple[int, int]]] = {}
    for k, step in enumerate(definition.steps, definition.operands):
        for i, position in enumerate(step.args):
            readers.setdefault(position, []).append((k, i))
    result: dict[tuple[Node, int], Array] = {}
    for position, ((k, i), *others) in readers.items():
        sent = recorded.call.sent.get((o.id, position)) if position < definition.operands else None
        step = definition.steps[k - definition.operands]
        if sent is not None and not others and _is_copy(nodes[k], step, nodes):
            result[nodes[k], i] = numbers(sent)
    return result


def _is_copy(node: Node, step: Any, nodes: list[Node]) -> bool:
    """Return whether a step of a definition is the same operation in the system, and not replaced by a simpler one."""
    return node.op == step.op and node.args == tuple(nodes[k] for k in step.args)


def _hooks(recorded: Recorded) -> dict[Node, Hook]:
    """Return what hooks passed on in the place of the adjoints of the system's nodes."""
    loss = loss_name(recorded.graph, recorded.v) if recorded.graph.outputs and recorded.v else ""
    result: dict[Node, Hook] = {}
    for hook in recorded.call.hooks:
        if (node := hooked(hook, recorded)) is not None:
            first = result.get(node)
            before = first.name if first is not None else adjoint_name(recorded.label(node), loss)
            old = numbers(hook.before) if first is None else first.before
            name = hook.name if hook.name.isidentifier() else "hook"
            result[node] = Hook(f"{name}({before})", old, numbers(hook.after))
    return result


def hooked(hook: records.Hook, recorded: Recorded) -> Node | None:
    """Return the node whose adjoint a hook has changed; None where it was another gradient.

    A hook of a module sees the gradient of its input, or of its output, in an operation of its own.
    """
    if hook.operation is not None:
        return None
    record, call = recorded.record, recorded.call
    producers, q = record.producers, hook.quantity
    while q in producers and (o := producers[q]).grad_fn == HOOKED:
        (inner,) = [x for x in o.operands if isinstance(x, int)]
        if any(inner in other.operands for other in record.operations if other is not o):
            return None
        q = inner
    # Of what `grad` asks for, and what also goes on, it returns the gradient that no hook has changed.
    is_returned = call.function != "backward" and q in (call.inputs or ()) and q in producers
    return None if is_returned else recorded.node(q)


def answered(recorded: Recorded) -> Measured:
    """Return the record of a call that is one of several for what a script asked for by name, with the answer of all.

    The answer has a block for each input of the call; those that the system does not have are left out.
    """
    known, call = measured(recorded), recorded.call
    result = call.answer
    positions = {recorded.names.get(q, ""): k for k, q in enumerate(call.inputs or ())}
    order = [(positions[name], recorded.at[name].size) for name in recorded.wrt]
    match call.function:
        case _ if not result:
            return known
        case "jvp":
            return known._replace(products={recorded.roots[0]: numbers(result[0])})
        case "hvp":
            return known._replace(products={name: numbers(result[positions[name]]) for name in recorded.wrt})
        case "hessian" if sum(v.whole.size for v in call.v if v.whole is not None) == 1:
            rows = [[numbers(result[i][j]).reshape(m, n) for j, n in order] for i, m in order]
            return known._replace(matrix=np.block(rows))
        case "hessian":
            return known
    blocks = [numbers(result[i]).reshape(-1, n) for i, n in order]
    return known._replace(matrix=np.hstack(blocks))


def differ(formulas: Array, record: Array) -> bool:
    """Return whether the numbers of a record are other ones than those of their formulas, by more than digits."""
    largest = np.abs(record[np.isfinite(record)]).max(initial=0)
    return not np.allclose(formulas, record, 0, _ROUNDING * largest, equal_nan=True)


def numbers(a: Numbers) -> Array:
    """Return numbers in float64; few of them as the decimals that the script prints."""
    return decimal(a.array)


def behind_hooks(recorded: Recorded) -> set[int]:
    """Return the quantities whose gradient is another one because of a hook that changed no adjoint of the system."""
    record = recorded.record
    first: set[int] = set()
    for hook in [h for h in recorded.call.hooks if hooked(h, recorded) is None]:
        # A hook of a quantity runs when its gradient has arrived; one behind an operation changes what arrives next.
        producer = record.producers.get(hook.quantity)
        if hook.operation is not None:
            first.add(hook.quantity)
        elif producer is not None:
            first |= {x for x in producer.operands if isinstance(x, int)}
    return first | {x for o in record.behind(first) for x in o.operands if isinstance(x, int)}
