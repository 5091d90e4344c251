"""A second backward through a freed graph: what to compute again, and where; which losses to add."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.pytorch.optim import Optimizer
from gradcli.pytorch.record import GradFn, Leaf, Step, dependencies
from gradcli.pytorch.tensor import Tensor
from gradcli.script.errors import edits, fixes
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.history import History
from gradcli.script.errors.source import Change, Edit, Text
from gradcli.script.errors.syntax import bound, called, calls, owner_of, parts
from gradcli.script.errors.updates import carried

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


def second(at: Failure, step: Any) -> Answer:
    """Return the answer about a graph that is freed: the step is the first that a backward has freed before."""
    reason = (
        f"the backward at {at.code(step.freed)} freed the values that the graph had kept, and {step.name()} of "
        f"{at.code(step.line)} needs them."
    )
    if _is_of_another_round(at, step) and (answer := repeated(at, step, reason)):
        return answer
    recorded = History(at.text).gradient_recorded()
    if any(change.first == int(step.freed or 0) for change in recorded):
        said = f"{reason} Only create_graph=True records the gradient and keeps the graph."
        return Answer(said, "record the gradient, as a gradient of it is taken", recorded)
    return _two_losses(at, step, reason) or _kept(at, step, reason)


def _is_of_another_round(at: Failure, step: Step) -> bool:
    """Return whether the backward that freed a step ran in a round before: it is the same line, or one below it."""
    freed: Any = step.freed
    return at.file(freed) != at.file(at.line) or int(freed) >= int(at.line)


def _kept(at: Failure, step: Step, reason: str) -> Answer:
    first = at.text_at(step.freed or 0)
    return Answer(reason, _KEPT, fixes.with_argument(first, "retain_graph", "True", "backward", "grad"))


def repeated(at: Failure, step: Step, reason: str, weights: str = "") -> Answer | None:
    """Return the answer about rounds that go back through what was computed before them, or in an earlier round."""
    once = f"{reason} It is computed once, and each round calls backward through it."
    for call in (at, *at.callers):
        if changes := _in_each_round(call, step):
            return Answer(once, _EACH_ROUND, changes)
    if changes := _all_at_once(at):
        return Answer(reason, "add the losses, whose graphs share a part, and call backward once", changes)
    for call in (at, *at.callers):
        name, changes = carried(call, lambda x: leads(x, step))
        if changes:
            said = f"{reason} The next round reads {name} with the graph of this one{weights}."
            return Answer(said, "cut that graph off at the end of each round, with detach()", changes)
    return None


def leads(x: Any, step: GradFn) -> bool:
    """Return whether a tensor, or one in a list or a dictionary, was computed through a step, or from a leaf."""
    inner = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    leads_to = isinstance(x, Tensor) and x._fn is not None and step in dependencies([x._fn])
    return leads_to or any(leads(e, step) for e in inner)


# What is computed once


def _in_each_round(at: Failure, step: Step) -> list[Change]:
    """Return the change that computes in each round what was computed before a loop, or before a function ran."""
    text = at.text
    for region in text.around(ast.For, ast.While, ast.FunctionDef):
        names = _read(at, region.body, step)
        if not names:
            continue
        if isinstance(region, ast.FunctionDef):
            arguments = {a.arg for a in parts(region.args, ast.arg)}
            return [] if arguments & {*names} else _begun(at, region, names)
        above = _above(text, region)
        statements = _slice(at, above, names, step)
        if {*names} <= {n for s in statements for n in _stored(text, s)}:
            return _moved(text, statements, above, region.body[0])
        return _begun(at, region, names)
    return []


def _read(at: Failure, body: Sequence[ast.stmt], step: Step) -> list[str]:
    """Return the names that statements read and do not assign, whose values were computed through a step."""
    text = at.text
    stored = {n for s in body for n in _stored(text, s)}
    nodes = [n for s in body for n in _loaded(s)]
    names = dict.fromkeys(text.of(n) for n in nodes if text.of(n) not in stored and leads(at.value(n), step))
    return list(names)


def _loaded(node: ast.AST) -> list[ast.expr]:
    """Return the names and the attributes that are read in a node."""
    states: list[Any] = [*parts(node, ast.Name), *parts(node, ast.Attribute)]
    return [n for n in states if isinstance(n.ctx, ast.Load)]


def _stored(text: Text, statement: ast.stmt) -> set[str]:
    """Return the names that a statement changes: assigns, or adds elements to."""
    states: list[Any] = [
        *parts(statement, ast.Name),
        *parts(statement, ast.Attribute),
        *parts(statement, ast.Subscript),
    ]
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


def _slice(at: Failure, above: Sequence[ast.stmt], names: Sequence[str], step: Step) -> list[ast.stmt]:
    """Return the statements that compute names, and what these are computed from, as far as gradients go through it."""
    needed, result = {*names}, []
    for statement in reversed(above):
        if _stored(at.text, statement) & needed:
            result.append(statement)
            needed |= {at.text.of(n) for n in _loaded(statement) if _is_computed(at.value(n))}
    return result[::-1]


def _is_computed(x: Any) -> bool:
    """Return whether a value is a tensor with a history, or a list of such."""
    return getattr(x, "_fn", None) is not None or (isinstance(x, list | tuple) and any(map(_is_computed, x)))


def _moved(text: Text, statements: Sequence[ast.stmt], above: Sequence[ast.stmt], first: ast.stmt) -> list[Change]:
    """Insert statements before the first one of a loop; they also stay where they are, if others read their results."""
    names = {n for s in statements for n in _stored(text, s)}
    rest = [s for s in above if s not in statements]
    shared = [s for s in rest if s.lineno > statements[0].lineno and {text.of(n) for n in _loaded(s)} & names]
    lines = [line for s in statements for line in text.moved(s)]
    alone = all(text.is_alone(s) for s in statements)
    return [*([] if shared or not alone else text.without(statements)), *text.before(first, *lines)]


def _begun(at: Failure, region: Any, names: Sequence[str]) -> list[Change]:
    """Compute names, which were computed outside of the function, where a loop or a function begins."""
    flow, lines = Flow(at.text), []
    for name in names:
        node = next(n for s in region.body for n in _loaded(s) if at.text.of(n) == name)
        values = flow.of_name(node)
        while values and isinstance(values[0], ast.Name) and (further := flow.of_name(values[0])):
            values = further
        value = values[0] if len({ast.dump(v) for v in values}) == 1 else None
        if value is None or isinstance(value, ast.Name) or not _is_known(at, value):
            return []
        lines.append(f"{name} = {at.text.of(value)}")
    return at.text.before(_first(region), *lines)


def _first(region: Any) -> ast.stmt:
    """Return the first statement of a loop or a function, behind its docstring."""
    described = isinstance(region, ast.FunctionDef) and ast.get_docstring(region) and len(region.body) > 1
    statement: ast.stmt = region.body[1 if described else 0]
    return statement


def _is_known(at: Failure, value: ast.AST) -> bool:
    """Return whether an expression reads only names of a function, and none with a history."""
    names = [n for n in parts(value, ast.Name) if isinstance(n.ctx, ast.Load)]
    known = {*at.frame.f_locals, *at.frame.f_globals, *at.frame.f_builtins} | bound(value)  # by a comprehension
    return all(n.id in known and not _is_computed(at.value(n)) for n in names)


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


def _two_losses(at: Failure, step: Step, reason: str) -> Answer | None:
    """Return the answer about two losses whose graphs share a part, with a backward of each in one block."""
    text, first = at.text, at.text_at(step.freed or 0)
    block = text.block(text.statement)
    if text.file != first.file or first.statement not in block:
        return None
    one, other = _root(first.statement), _root(text.statement)
    if one is None or other is None:
        return None
    between = block[block.index(first.statement) + 1 : block.index(text.statement)]
    uses = [s for s in between if _uses_gradients(s)]
    if not uses and text.of(one) != text.of(other):
        changes = _added(text, first.statement, one, other)
        said = f"{reason} The two losses share that part of the graph."
        return Answer(said, "add the losses, and call backward once", changes)
    stepped = [x for s in uses for x in _changed(at, s)]
    if not stepped:
        return None
    if changes := _cut_off(at, step, Flow(first).back(one), Flow(text).back(other), stepped):
        said = f"{reason} The weights that are changed in between do not need the gradients of that part."
        return Answer(said, "cut it off from the first loss, with detach()", changes)
    change = at.code(uses[-1].lineno)
    said = f"{reason} {change[0].upper()}{change[1:]} has changed weights that it was computed from."
    return Answer(said, _ANEW, _computed_again(at, step, first.statement, uses[-1]))


def _computed_again(at: Failure, step: Step, first: ast.stmt, change: ast.stmt) -> list[Change]:
    """Compute what two losses share once more, after a statement between them that changes the weights."""
    text = at.text
    block = text.block(text.statement)
    index = block.index(change) + 1
    after = block[index : block.index(text.statement) + 1]
    above = [*_above(text, first), *block[block.index(first) + 1 : index]]
    statements = _slice(at, above, _read(at, after, step), step)
    return text.before(after[0], *(line for s in statements for line in text.moved(s)))


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
        owner = at.value(owner_of(call))
        if isinstance(owner, Optimizer):
            yield from owner._parameters()
    yield from (at.value(s.target) for s in parts(statement, ast.AugAssign))


def _added(text: Text, first: ast.stmt, one: ast.expr, other: ast.expr) -> list[Change]:
    bare = [text.of(e) if edits.is_simple(e) else f"({text.of(e)})" for e in (one, other)]
    return [text.instead_of(first), *text.edited(edits.instead(other, f"({' + '.join(bare)})"))]


def _cut_off(
    at: Failure, step: Step, way: Sequence[ast.expr], others: Sequence[ast.expr], stepped: Sequence[Any]
) -> list[Change]:
    """Detach, on the way to the first loss, what both losses share and no change of weights in between needs."""
    changed, text = {id(x) for x in stepped}, at.text
    result: dict[str, list[ast.expr]] = {}
    for name in (n for e in way if e not in others for n in parts(e, ast.Name)):
        x = at.value(name)
        if isinstance(x, Tensor) and leads(x, step) and not changed & _leaves(x):
            result.setdefault(name.id, []).append(name)
    last = max(result, key=lambda name: at.value(ast.Name(name))._fn.seq, default=None)
    cuts: dict[ast.stmt, list[Edit]] = {}
    for n in result.get(last, ()) if last else ():
        cuts.setdefault(text.on(n.lineno).statement, []).extend(edits.behind(n, ".detach()"))
    return [change for group in cuts.values() for change in text.edited(list(dict.fromkeys(group)))]


def _leaves(x: Tensor) -> set[int]:
    return {id(e.variable) for e in dependencies([x._fn]) if isinstance(e, Leaf)}  # type: ignore[list-item]
