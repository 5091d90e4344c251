"""A second backward through a freed graph: what to compute again, and where; which losses to add."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.record.record import CallSite, Operation
from gradcli.script.errors import edits, fixes
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.history import History
from gradcli.script.errors.source import Change, Edit, Text
from gradcli.script.errors.syntax import called, calls, owner_of, parts
from gradcli.script.errors.updates import carried
from gradcli.script.known import line_at

_KEEP_NOTHING = ("AddBackward0", "SubBackward0")  # the last step of a call whose other steps keep values: of a GRU
_SETTINGS = ("retain_graph", "create_graph")  # of a backward that may be added to another one
_USES = {"step", "zero_grad", "backward", "clip_grad_norm_", "clip_grad_value_", "unscale_"}  # what reads gradients
_ADDS = ("append", "extend", "insert", "update", "setdefault", "add_", "sub_", "mul_", "div_", "copy_")

# The fixes, in words.
_EACH_ROUND = "compute it in each round, from the current weights"
_ANEW = "compute the shared part again, from the current weights"
_KEPT = (
    "keep the graph in the first call, if the weights stay as they are until the second one; if they change, compute "
    "the loss again after the change"
)


def second(at: Failure, number: int, freed: CallSite) -> Answer:
    """Return the answer about a graph that is freed: the operation is the first that a backward has freed before."""
    operation, first = at.operation(number), at.text_at(line_at(freed))
    who = "" if operation.grad_fn in _KEEP_NOTHING else f"{operation.grad_fn} of "
    reason = (
        f"the backward at {at.code(line_at(freed))} freed the values that the graph had kept, and {who}"
        f"{at.code_of(operation)} needs them."
    )
    # The backward that freed it ran in a round before: it is the same line, or one below it.
    is_of_another_round = first.file != at.file(at.line) or first.line >= at.line
    if is_of_another_round and (answer := repeated(at, operation, reason)):
        return answer
    recorded = History(at.text, at.known).gradient_recorded()
    if any(change.first == first.line for change in recorded):
        said = f"{reason} Only create_graph=True records the gradient and keeps the graph."
        return Answer(said, "record the gradient, as a gradient of it is taken", recorded)
    if answer := _two_losses(at, operation, first, reason):
        return answer
    return Answer(reason, _KEPT, fixes.with_argument(first, "retain_graph", "True", "backward", "grad"))


def repeated(at: Failure, operation: Operation, reason: str, weights: str = "") -> Answer | None:
    """Return the answer about rounds that go back through what was computed before them, or in an earlier round."""
    once = f"{reason} It is computed once, and each round calls backward through it."
    rounds = [c for call in (at, *at.callers) if (c := _in_each_round(call, operation)) is not None]
    for changes in filter(None, rounds):
        return Answer(once, _EACH_ROUND, changes)
    if changes := _all_at_once(at):
        return Answer(reason, "add the losses, whose graphs share a part, and call backward once", changes)
    for call in (at, *at.callers):
        name, changes = carried(call, lambda x: at.known.leads(x, operation))
        if changes:
            said = f"{reason} The next round reads {name} with the graph of this one{weights}."
            return Answer(said, "cut that graph off at the end of each round, with detach()", changes)
    return Answer(once, _EACH_ROUND) if rounds else None


# What is computed once


def _in_each_round(at: Failure, operation: Operation) -> list[Change] | None:
    """Return the change that computes in each round what was computed before a loop; None where nothing was.

    What was computed before a function ran, or elsewhere, no line changes.
    """
    text = at.text
    for region in text.around(ast.For, ast.While, ast.FunctionDef):
        stored = {n for s in (*region.body, getattr(region, "target", region.body[0])) for n in _stored(text, s)}
        read = [n for s in region.body for n in _loaded(s) if text.of(n) not in stored]
        names = {text.of(n) for n in read if at.known.leads(at.value(n), operation)}
        if names and not isinstance(region, ast.FunctionDef):
            above = _above(text, region)
            statements = _computing(at, above, names)
            is_whole = names <= {n for s in statements for n in _stored(text, s)}
            return _moved(text, statements, above, region.body[0]) if is_whole else []
        if names:
            return None if names & {a.arg for a in parts(region.args, ast.arg)} else []
    return None


def _loaded(node: ast.AST) -> list[ast.expr]:
    """Return the names and the attributes that are read in a node."""
    states: list[Any] = parts(node, ast.Name, ast.Attribute)
    return [n for n in states if isinstance(n.ctx, ast.Load)]


def _stored(text: Text, statement: ast.AST) -> set[str]:
    """Return the names that a statement changes: assigns, or adds elements to."""
    states: list[Any] = parts(statement, ast.Name, ast.Attribute, ast.Subscript)
    stored = [n for n in states if isinstance(n.ctx, ast.Store)]
    names = {text.of(n.value if isinstance(n, ast.Subscript) else n) for n in stored}
    return names | {text.of(owner_of(call)) for call in calls(statement, *_ADDS)}


def _above(text: Text, inner: ast.stmt) -> list[ast.stmt]:
    """Return the statements before one in its block, and in the blocks around that in the same function."""
    result: list[ast.stmt] = []
    for around in text.on(inner.lineno).around(ast.stmt):
        if around.lineno > inner.lineno or (around.end_lineno or 0) < (inner.end_lineno or 0):
            continue
        result = [*(s for s in text.block(around) if s.lineno < around.lineno), *result]
        if isinstance(around, ast.FunctionDef) and around is not inner:
            break
    return [s for s in result if not isinstance(s, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)]


def _computing(at: Failure, above: Sequence[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Return the statements that compute names, and what with a history these are computed from."""
    needed, result = {*names}, []
    for statement in reversed(above):
        if _stored(at.text, statement) & needed:
            result.append(statement)
            needed |= {at.text.of(n) for n in _loaded(statement) if at.known.is_computed(at.value(n))}
    return result[::-1]


def _moved(text: Text, statements: Sequence[ast.stmt], above: Sequence[ast.stmt], first: ast.stmt) -> list[Change]:
    """Insert statements before the first one of a loop; they also stay where they are, if others read their results."""
    names = {n for s in statements for n in _stored(text, s)}
    rest = [s for s in above if s not in statements]
    shared = [s for s in rest if s.lineno > statements[0].lineno and {text.of(n) for n in _loaded(s)} & names]
    lines = [line for s in statements for line in text.moved(s)]
    alone = all(text.is_alone(s) for s in statements)
    return [*([] if shared or not alone else text.without(statements)), *text.before(first, *lines)]


# Several losses


def _all_at_once(at: Failure) -> list[Change]:
    """Return the change of a loop that only calls backward of each loss: sum(losses).backward()."""
    for loop in at.text.around(ast.For):
        match loop:
            case ast.For(ast.Name(name), losses, [ast.Expr(ast.Call(ast.Attribute(ast.Name(root), "backward"), []))]):
                if name == root and not loop.orelse:
                    indent = " " * loop.col_offset
                    return [at.text.instead_of(loop, f"{indent}sum({at.text.of(losses)}).backward()")]
    return []


def _two_losses(at: Failure, operation: Operation, first: Text, reason: str) -> Answer | None:
    """Return the answer about two losses whose graphs share a part, with a backward of each in one block."""
    text = at.text
    block = text.block(text.statement)
    one, other = _root(first.statement), _root(text.statement)
    if text.file != first.file or first.statement not in block or one is None or other is None:
        return None
    between = block[block.index(first.statement) + 1 : block.index(text.statement)]
    uses = [s for s in between if _uses_gradients(s)]
    if not uses and text.of(one) != text.of(other):
        bare = [text.of(e) if edits.is_simple(e) else f"({text.of(e)})" for e in (one, other)]
        changes = [text.instead_of(first.statement), *text.edited(edits.instead(other, f"({' + '.join(bare)})"))]
        said = f"{reason} The two losses share that part of the graph."
        return Answer(said, "add the losses, and call backward once", changes)
    stepped = {at.quantity(q).storage for s in uses for x in _changed(at, s) for q in at.known.tensors_in(x)}
    if not stepped:
        return None
    if changes := _cut_off(at, operation, text.back(one), text.back(other), stepped):
        said = f"{reason} The weights that are changed in between do not need the gradients of that part."
        return Answer(said, "cut it off from the first loss, with detach()", changes)
    change = at.code(uses[-1].lineno)
    return Answer(f"{reason} {change[0].upper()}{change[1:]} has changed weights that it was computed from.", _ANEW)


def _root(statement: ast.stmt) -> ast.expr | None:
    """Return the tensor of a statement that only calls backward, without a v."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(root, "backward"), [], keywords)):
            return root if all(k.arg in _SETTINGS for k in keywords) else None
    return None


def _uses_gradients(statement: ast.stmt) -> bool:
    """Return whether a statement may read gradients, or change what they were taken by."""
    if isinstance(statement, ast.AugAssign | ast.With):
        return True
    reads = any(n.attr in ("grad", "data") for n in parts(statement, ast.Attribute))
    return reads or any(called(c) in _USES or called(c).endswith("_") for c in calls(statement))


def _changed(at: Failure, statement: ast.stmt) -> Iterator[Any]:
    """Yield the tensors that a statement changes, as far as it is an optimizer's step or an update by hand."""
    for call in calls(statement, "step"):
        yield from (group["params"] for group in getattr(at.value(owner_of(call)), "param_groups", ()))
    yield from (at.value(s.target) for s in parts(statement, ast.AugAssign))


def _cut_off(
    at: Failure, operation: Operation, way: Sequence[ast.expr], others: Sequence[ast.expr], stepped: set[int]
) -> list[Change]:
    """Detach, on the way to the first loss, what both losses share and no change of weights in between needs.

    `stepped` has the storages of these weights.
    """
    known = at.known
    shared: dict[str, list[ast.expr]] = {}
    last: dict[str, int] = {}
    for name in (n for e in way if e not in others for n in parts(e, ast.Name)):
        x = at.value(name)
        operations, quantities = known.behind(known.tensors_in(x) if is_tensor(x) else ())
        read = {known.record.quantities[q].storage for q in quantities}
        if any(o.id == operation.id for o in operations) and not stepped & read:
            shared.setdefault(name.id, []).append(name)
            last[name.id] = operations[-1].id
    cuts: dict[ast.stmt, list[Edit]] = {}
    for n in shared[max(last, key=last.__getitem__)] if last else ():
        cuts.setdefault(at.text.on(n.lineno).statement, []).extend(edits.behind(n, ".detach()"))
    return [change for group in cuts.values() for change in at.text.edited(list(dict.fromkeys(group)))]
