"""Errors of what an operation is given: another dtype, another shape, too many numbers; and what mends them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from gradcli.script import updates
from gradcli.script.scene import Scene, Told
from gradcli.script.source import Change, Edit, Text, behind, called, end, is_simple, start


def _nodes(scene: Scene, kind: Any) -> Iterator[tuple[ast.stmt, Any]]:
    """Yield the parts of some kind of what the statement at the line computes itself, each with the statement."""
    statement = scene.text().at(scene.line)
    own = [getattr(statement, "test", None) or getattr(statement, "iter", None) or statement] if statement else []
    for node in [n for top in own for n in ast.walk(top)]:
        if isinstance(node, kind) and statement is not None:
            yield statement, node


def _changed(scene: Scene, statement: ast.stmt, *edits: Edit) -> list[Change]:
    """Return the change of a statement; of one that has others in it, of its first line."""
    text = scene.text()
    if hasattr(statement, "body"):
        head = ast.Pass(lineno=statement.lineno, end_lineno=statement.body[0].lineno - 1, col_offset=0)
        one_line = statement.body[0].lineno == statement.lineno
        return [] if one_line else [text.edited(head, *edits)]
    return [text.edited(statement, *edits)]


def dtypes(scene: Scene) -> Told | None:
    """Return what is said of operands of two dtypes: the one that is not float32 is made so."""
    reason = "a product needs operands of one dtype, and nothing is converted without a word."
    for statement, node in _nodes(scene, ast.Name | ast.Attribute):
        x = scene.value(node)
        if hasattr(x, "grad_fn") and str(x.dtype) in ("torch.float64", "torch.int64", "torch.int32", "torch.uint8"):
            said = (
                f"{scene.text().text(node)} is {str(x.dtype).removeprefix('torch.')}, and the rest is float32: {reason}"
            )
            return Told(said, "float32 as well", _changed(scene, statement, *behind(node, ".float()")))
    return Told(reason, "the same dtype for both: .float(), or .double()")


def single(scene: Scene) -> Told | None:
    """Return what is said of several numbers where Python wants one."""
    for statement, call in _nodes(scene, ast.Call):
        if called(call) == "item" and isinstance(call.func, ast.Attribute):
            mend = "all of them, .tolist(); or their mean, .mean().item()"
            place = end(call)[0], end(call)[1] - len("item()")
            return Told(
                "a number of Python's is one number.", mend, _changed(scene, statement, (place, end(call), "tolist()"))
            )
        if called(call) in ("float", "int") and call.args:
            edits = behind(call.args[0], ".mean()")
            return Told("a number of Python's is one number.", "their mean", _changed(scene, statement, *edits))
    return None


def _is_long(x: Any) -> bool:
    return hasattr(x, "grad_fn") and x.numel() > 1


def truth(scene: Scene) -> Told:
    """Return what is said of several numbers where Python asks whether something is true."""
    reason = "Python asks for one answer, and each of the numbers has its own."
    for statement, call in _nodes(scene, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in ("max", "min"):
            edit = start(call.func), end(call.func), f"torch.{call.func.id}imum"
            return Told(reason, "PyTorch's function, element by element", _changed(scene, statement, edit))
    compared = [*_nodes(scene, ast.Compare)]
    direct = [pair for pair in compared if any(_is_long(scene.value(n)) for n in (pair[1].left, *pair[1].comparators))]
    for statement, node in direct or compared:
        if any(_is_long(scene.value(n)) for n in ast.walk(node)):
            mend = "say which: .all() or .any(); torch.where chooses element by element"
            return Told(reason, mend, _changed(scene, statement, *behind(node, ".all()")))
    return Told(reason, "say which: .all() or .any(); torch.where chooses element by element")


def _loss(mend: str, which: int, edits: Callable[[Text, ast.Call], list[Edit]]) -> Callable[[Scene], Told | None]:
    """Return what tells of an error of a loss whose input or target does not fit."""
    words = ("input", "target")

    def tell(scene: Scene) -> Told | None:
        for statement, call in _nodes(scene, ast.Call):
            if len(call.args) > 1:
                own, other = (scene.text().text(a) for a in call.args[:2])
                reason = f"{(own, other)[which]} is the {words[which]}, and is not what this loss takes."
                return Told(reason, mend, _changed(scene, statement, *edits(scene.text(), call)))
        return None

    return tell


def _of_input(text: Text, call: ast.Call) -> list[Edit]:
    return [(start(call.args[0]), start(call.args[0]), "torch.sigmoid("), (end(call.args[0]), end(call.args[0]), ")")]


def _like_input(text: Text, call: ast.Call) -> list[Edit]:
    own = text.text(call.args[0])
    return behind(call.args[1], f".reshape({own if is_simple(call.args[0]) else f'({own})'}.shape)")


def parameter(scene: Scene) -> Told | None:
    """Return what is said of a tensor in the place of a parameter."""
    text = scene.text()
    statement = text.at(scene.line)
    if not isinstance(statement, ast.Assign):
        return None
    reason = "a module's parameter stays a leaf that optimizers know: a tensor cannot take its place."
    changes = updates.kept_leaves(text, scene.line)
    if changes:
        return Told(reason, "change its numbers, where nothing is recorded", changes)
    value = statement.value
    edits = (start(value), start(value), "torch.nn.Parameter("), (end(value), end(value), ")")
    return Told(reason, "a new parameter, before the optimizer is made", [text.edited(statement, *edits)])


def optimized(scene: Scene) -> Told | None:
    """Return what is said of an optimizer that is given one tensor."""
    for statement, call in _nodes(scene, ast.Call):
        if call.args and hasattr(scene.value(call.args[0]), "grad_fn"):
            own = call.args[0]
            edits = (start(own), start(own), "["), (end(own), end(own), "]")
            return Told("an optimizer changes several tensors.", "a list of them", _changed(scene, statement, *edits))
    return None


def no_parameters(scene: Scene) -> Told:
    """Return what is said of an optimizer without parameters: layers in a list are not a module's."""
    reason = "a module knows the parameters and modules that are its attributes, not those in a list of Python's."
    text = scene.text()
    for statement in text.statements():
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
            continue
        value = statement.value
        if isinstance(value, ast.List | ast.ListComp):
            kinds = {called(n) for n in ast.walk(value) if isinstance(n, ast.Call)}
            made = "torch.nn.ParameterList" if kinds & {"Parameter"} else "torch.nn.ModuleList"
            edits = (start(value), start(value), f"{made}("), (end(value), end(value), ")")
            return Told(reason, "a list that is a module", [text.edited(statement, *edits)])
    return Told(reason, "give the module its parameters: self.w = torch.nn.Parameter(…)")


def vector_result(scene: Scene) -> Told:
    """Return what is said of torch.func.grad of a function that gives several numbers."""
    reason = "a gradient is that of one number; of several there is a row for each, the Jacobian."
    for node in ast.walk(scene.text().tree):
        if isinstance(node, ast.Call) and called(node) == "grad" and node.lineno <= scene.line:
            statement = scene.text().at(node.lineno)
            if statement is not None and scene.text().text(node.func) != "torch.autograd.grad":
                change = scene.text().edited(statement, (start(node.func), end(node.func), "torch.func.jacrev"))
                return Told(reason, "the Jacobian; or the gradient of a sum", [change])
    return Told(reason, "the Jacobian, torch.func.jacrev; or the gradient of a sum")


def broadcast(scene: Scene) -> Told | None:
    """Return what is said of shapes that do not broadcast."""
    found = re.search(r"tensor a \((\d+)\) .* tensor b \((\d+)\) at non-singleton dimension (\d+)", scene.message)
    if found is None:
        return None
    for statement, node in _nodes(scene, ast.BinOp):
        sizes = [getattr(scene.value(n), "shape", None) for n in (node.left, node.right)]
        names = [scene.text().text(n) for n in (node.left, node.right)]
        shown = [f"{n} has the shape {tuple(s)}" for n, s in zip(names, sizes, strict=True) if s is not None]
        if shown:
            reason = f"{' and '.join(shown)}: from the last axis on, the sizes are to be equal, or one of them 1"
            said = f"{reason}; here they are {found[1]} and {found[2]} at axis {found[3]}."
            rows = sizes[0] is not None and tuple(sizes[0])[:1] == (int(found[2]),) and found[3] == "1"
            changes = _changed(scene, statement, *behind(node.right, ".unsqueeze(1)")) if rows else []
            return Told(said, "an axis of size 1 where they differ: unsqueeze, or reshape", changes)
    said = "from the last axis on, sizes are to be equal, or one of them 1"
    return Told(
        f"{said}: here {found[1]} and {found[2]} at axis {found[3]}.",
        "an axis of size 1 where they differ: unsqueeze, or reshape",
    )


OPERANDS: dict[str, Callable[[Scene], Told | None]] = {
    "to have the same dtype|must have the same dtype": dtypes,
    "elements cannot be converted to Scalar|only one element tensors can be converted": single,
    "Boolean value of Tensor with more than one": truth,
    "multi-target not supported": _loss("one class for each sample", 1, lambda t, c: behind(c.args[1], ".flatten()")),
    r"[Tt]arget size \(.*input size": _loss("the target in the input's shape", 1, _like_input),
    "between 0 and 1": _loss("probabilities, torch.sigmoid(…)", 0, _of_input),
    "Found dtype Long but expected Float": _loss("real numbers", 1, lambda t, c: behind(c.args[1], ".float()")),
    r"cannot assign '.*' as parameter": parameter,
    "should be an iterable of Tensors": optimized,
    "empty parameter list": no_parameters,
    "to return a scalar Tensor": vector_result,
    "must match the size of tensor b": broadcast,
}
