"""Errors of indices and axes that are not there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure, is_module
from gradcli.script.errors.sizes import resized
from gradcli.script.errors.source import Change
from gradcli.script.errors.syntax import called, calls, elements, integer, owner_of
from gradcli.text.wrapping import in_words

_SLICES = ("index_select", "index_add", "index_copy", "index_fill", "index_add_", "index_copy_", "index_fill_")


def row(at: Failure, bad: Sequence[int], size: int) -> Answer:
    """Return the answer about rows of a table, as an embedding's, that are not there; `bad` are their indices."""
    index = max(bad) if max(bad) >= size else min(bad)
    if at.failed_calls(*_SLICES):
        reason = f"{at.code(at.line)} asks for slice {index}, and there are {size}, numbered 0 to {size - 1}."
        return Answer(reason, "use indices that are there; a negative one does not count from the end here")
    reason = f"{at.code(at.line)} looks up row {index}, and the table has {size} rows, numbered 0 to {size - 1}."
    if index < 0:
        return Answer(reason, "use indices from 0: a negative one does not count from the end here")
    changes = resized(at, "Embedding", (size,), (index + 1,)) or _enlarged(at, index + 1 - size)
    return Answer(reason, f"create a table of {index + 1} rows or more; or number the indices from 0", changes)


def _enlarged(at: Failure, more: int) -> list[Change]:
    """Return the fix that adds rows to the only table, where the script computes their number: len(words) + 1."""
    sizes = [c.args[0] for c in calls(at.main.tree, "Embedding") if c.args]
    return at.main.edited(edits.behind(sizes[0], f" + {more}")) if [*map(integer, sizes)] == [None] else []


def element(at: Failure, index: int, axis: int, size: int) -> Answer:
    """Return the answer about an index that is not there."""
    node = next(iter(at.failed_parts(ast.Subscript)), None)
    name = "the tensor" if node is None else at.text.of(node.value)
    known = f", numbered 0 to {size - 1}, or -{size} to -1 from the end" if size else ""
    number = "1 element" if size == 1 else f"{size or 'no'} elements"
    reason = f"{name} has {number} along axis {axis}{known}: there is no element {index}."
    parts = [] if node is None else elements(node.slice)
    for part in parts if size else ():
        if integer(part) == index:
            last = "0" if index < 0 else "-1"
            which = "first" if index < 0 else "last"
            fix = f"the {which} is {name}[{last}]" if len(parts) == 1 else f"the {which} is {last} there"
            return Answer(reason, fix, at.text.edited(edits.instead(part, last)))
        if isinstance(part, ast.Name) and type(at.value(part)) is int and at.value(part) == index:
            return Answer(reason, "count to the size of the axis", _range_fix(at, part, f"{name}.shape[{axis}]"))
    return Answer(reason, "use an index that is there")


def _range_fix(at: Failure, index: ast.Name, size: str) -> list[Change]:
    """Return the fix of the loop that counts an index: for i in range(len(x))."""
    for loop in at.text.around(ast.For):
        if at.text.of(loop.target) == index.id and called(loop.iter) == "range":
            return at.text.on(loop.lineno).edited(edits.instead(loop.iter, f"range({size})"))
    return []


def axis(at: Failure, low: int, high: int, dim: int) -> Answer:
    """Return the answer about an axis that is not there."""
    known = f"the axes 0 to {high}, or -1 to {low} from the last" if high else "axis 0 alone, which is also -1"
    name, shape = "the tensor", ""
    for call in at.failed_calls():
        operand = next((n for n in (owner_of(call), *call.args) if _has_rank(at.value(n), high + 1)), None)
        if operand is not None:
            name, shape = at.text.of(operand), f", of shape {tuple(at.value(operand).shape)},"
        reason = f"{name}{shape} has {known}: there is no axis {dim}."
        if called(call) in ("unsqueeze", "stack"):
            reason = f"the new axis can be one of 0 to {high}, or -1 to {low} from the last, and not {dim}."
        if (answered := _of_vectors(at, call, reason)) is not None:
            return answered
        for node in _dims(at, call):
            if integer(node) == dim:
                text = at.text if node in ast.walk(at.text.statement) else at.main
                changes = text.edited(edits.instead(node, "-1"))
                return Answer(reason, "use an axis that is there: -1 is the last", changes)
    return Answer(f"{name}{shape} has {known}: there is no axis {dim}.", "use an axis that is there")


def _of_vectors(at: Failure, call: ast.Call, reason: str) -> Answer | None:
    """Return the answer where vectors are taken for matrices: they have neither columns nor a transpose."""
    parts = elements(call.args[0]) if call.args else []
    owner = owner_of(call)
    if called(call) in ("cat", "concat") and parts and all(_has_rank(at.value(p), 1) for p in parts):
        names = in_words([at.text.of(p) for p in parts])
        changes = at.text.edited(edits.instead(call.func, "torch.stack"))
        said = f"{names} {'are vectors' if len(parts) > 1 else 'is a vector'}, with axis 0 alone."
        return Answer(said, "stack vectors as the columns of a matrix", changes)
    if called(call) in ("transpose", "swapaxes", "swapdims") and owner is not None and _has_rank(at.value(owner), 1):
        changes = at.text.edited(edits.instead(call, f"{at.text.of(owner)}.unsqueeze(1)"))
        return Answer(reason, "make it a column: a vector has no transpose", changes)
    return None


def _dims(at: Failure, call: ast.Call) -> list[ast.expr]:
    """Return what may be the axis in a call, or where the module was created that is called: nn.Softmax(dim=1)."""
    module = at.value(call.func)
    kind = type(module).__name__ if is_module(module) and hasattr(module, "dim") else ""
    created = calls(at.main.tree, kind) if kind else []
    return [n for c in (call, *created) for n in (*(k.value for k in c.keywords if k.arg in ("dim", "axis")), *c.args)]


def of_a_shape(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a size of an axis that is not there: x.shape[1] of a vector."""
    for node in at.failed_parts(ast.Subscript):
        if (
            isinstance(node.value, ast.Attribute)
            and node.value.attr == "shape"
            and is_tensor(at.value(node.value.value))
        ):
            name, shape = at.text.of(node.value.value), tuple(at.value(node.value))
            reason = f"{name} has the shape {shape}, which has {len(shape)} size{'s' * (len(shape) != 1)}."
            changes = at.text.edited(edits.instead(node.slice, "-1")) if shape else []
            return Answer(reason, "use an axis that is there: -1 is the last", changes, "shapes")
    return None


def _has_rank(x: Any, rank: int) -> bool:
    return is_tensor(x) and max(x.dim(), 1) == rank
