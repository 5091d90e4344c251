"""Errors of what an operation is given: another dtype, another shape, too many numbers; and what mends them."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from gradcli.script.errors import edits, mends, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Change, N, called, end, owner_of, parts
from gradcli.script.errors.threads import Threads, lost


def _own(at: Failure, *kinds: type[N]) -> list[N]:
    """Return the parts of some kinds of what the statement at the line computes itself."""
    statement = at.text.statement
    return parts(getattr(statement, "test", None) or getattr(statement, "iter", None) or statement, *kinds)


_MADE = {"double": "float64", "long": "int64", "int": "int32", "byte": "uint8"}  # by the methods of these names


def dtypes(at: Failure) -> Answer:
    """Return what is said of operands of two dtypes: the one that is not float32 is made so."""
    reason = "a product needs operands of one dtype, and nothing is converted without a word."
    said = "{} is {}, and the rest is float32: " + reason
    made = [c for c in _own(at, ast.Call) if isinstance(c.func, ast.Attribute) and called(c) in _MADE]
    owners = {id(owner_of(call)) for call in made}
    for node in _own(at, ast.Name, ast.Attribute):
        dtype = str(getattr(at.value(node), "dtype", "")).removeprefix("torch.")
        if id(node) not in owners and hasattr(at.value(node), "grad_fn") and dtype in _MADE.values():
            changes = at.text.edited(edits.behind(node, ".float()"))
            return Answer(said.format(at.text.of(node), dtype), "float32 as well", changes)
    for call in made:
        changes = at.text.edited([(edits.dot(call.func), end(call), ".float()")])  # type: ignore[arg-type]
        return Answer(said.format(at.text.of(call), _MADE[called(call)]), "float32 as well", changes)
    return Answer(reason, "the same dtype for both: .float(), or .double()")


def single(at: Failure) -> Answer | None:
    """Return what is said of several numbers where Python wants one."""
    reason = "a number of Python's is one number."
    for call in _own(at, ast.Call):
        if called(call) == "item" and isinstance(call.func, ast.Attribute):
            changes = at.text.edited([(edits.dot(call.func), end(call), ".tolist()")])
            return Answer(reason, "all of them, .tolist(); or their mean, .mean().item()", changes)
        if called(call) in ("float", "int") and call.args:
            return Answer(reason, "their mean", at.text.edited(edits.behind(call.args[0], ".mean()")))
    return None


def truth(at: Failure) -> Answer:
    """Return what is said of several numbers where Python asks whether something is true."""
    reason = "Python asks for one answer, and each of the numbers has its own."
    for call in _own(at, ast.Call):
        if owner_of(call) is None and called(call) in ("max", "min"):
            change = at.text.edited(edits.instead(call.func, f"torch.{called(call)}imum"))
            return Answer(reason, "PyTorch's function, element by element", change)
    compared = _own(at, ast.Compare)
    direct = [node for node in compared if any(_is_long(at.value(n)) for n in (node.left, *node.comparators))]
    long = direct or [node for node in compared if any(_is_long(at.value(n)) for n in ast.walk(node))]
    mend = "say which: .all() or .any(); torch.where chooses element by element"
    return Answer(reason, mend, at.text.edited([e for node in long[:1] for e in edits.behind(node, ".all()")]))


def _is_long(x: Any) -> bool:
    return hasattr(x, "grad_fn") and x.numel() > 1


def _loss(mend: str, which: int, words: str, at: Failure) -> Answer | None:
    """Return what is said of a loss whose input or target does not fit; `words` make it fit."""
    for call in [c for c in _own(at, ast.Call) if len(c.args) > 1]:
        given, own = call.args[which], at.text.of(call.args[0])
        reason = f"{at.text.of(given)} is the {('input', 'target')[which]}, and is not what this loss takes."
        own = own if edits.is_simple(call.args[0]) else f"({own})"
        changed = edits.behind(given, words.format(own)) if which else edits.wrapped(given, words)
        return Answer(reason, mend, at.text.edited(changed))
    return None


flat_target = partial(_loss, "one class for each sample", 1, ".flatten()")
shaped_target = partial(_loss, "the target in the input's shape", 1, ".reshape({}.shape)")
probabilities = partial(_loss, "probabilities, torch.sigmoid(…)", 0, "torch.sigmoid(")
real_target = partial(_loss, "real numbers", 1, ".float()")


def whole(at: Failure) -> list[Change]:
    """Make whole numbers of the targets of a loss."""
    calls = [c for c in parts(at.text.statement, ast.Call) if len(c.args) > 1]
    return at.text.edited(edits.behind(calls[0].args[1], ".long()")) if calls else []


def parameter(at: Failure) -> Answer | None:
    """Return what is said of a tensor in the place of a parameter."""
    reason = "a module's parameter stays a leaf that optimizers know: a tensor cannot take its place."
    if changes := updates.kept_leaves(at.text):
        return Answer(reason, "change its numbers, where nothing is recorded", changes)
    if not isinstance(at.text.statement, ast.Assign):
        return None
    changes = at.text.edited(edits.wrapped(at.text.statement.value, "torch.nn.Parameter("))
    return Answer(reason, "a new parameter, before the optimizer is made", changes)


def listed(at: Failure) -> list[Change]:
    """Give an optimizer a list, in the place of one tensor."""
    given = [c.args[0] for c in _own(at, ast.Call) if c.args and hasattr(at.value(c.args[0]), "grad_fn")]
    return at.text.edited(edits.wrapped(given[0], "[", "]")) if given else []


def no_parameters(at: Failure) -> Answer:
    """Return what is said of an optimizer without parameters: layers in a list are not a module's."""
    reason = "a module knows the parameters and modules that are its attributes, not those in a list of Python's."
    for statement in at.text.statements():
        match statement:
            case ast.Assign([ast.Attribute(), *_], ast.List() | ast.ListComp() as value):
                kind = "Parameter" if any(called(n) == "Parameter" for n in ast.walk(value)) else "Module"
                changes = at.text.edited(edits.wrapped(value, f"torch.nn.{kind}List("))
                return Answer(reason, "a list that is a module", changes)
    return Answer(reason, "give the module its parameters: self.w = torch.nn.Parameter(…)")


def vector_result(at: Failure) -> Answer:
    """Return what is said of torch.func.grad of a function that gives several numbers."""
    reason = "a gradient is that of one number; of several there is a row for each, the Jacobian."
    for call in parts(at.text.tree, ast.Call):
        if called(call) == "grad" and call.lineno <= at.line and at.text.of(call.func) != "torch.autograd.grad":
            change = at.text.edited(edits.instead(call.func, "torch.func.jacrev"))
            return Answer(reason, "the Jacobian; or the gradient of a sum", change)
    return Answer(reason, "the Jacobian, torch.func.jacrev; or the gradient of a sum")


def broadcast(at: Failure, a: str, b: str, axis: str) -> Answer:
    """Return what is said of shapes that do not broadcast."""
    rule = "sizes are to be equal, or one of them 1"
    mend = "an axis of size 1 where they differ: unsqueeze, or reshape"
    for node in _own(at, ast.BinOp):
        factors = (node.left, node.right)
        shapes = {n: tuple(x.shape) for n in factors if getattr(x := at.value(n), "shape", None) is not None}
        if shapes:
            said = " and ".join(f"{at.text.of(n)} has the shape {shape}" for n, shape in shapes.items())
            rows = shapes.get(node.left, ())[:1] == (int(b),) and axis == "1"
            changes = at.text.edited(edits.behind(node.right, ".unsqueeze(1)")) if rows else []
            said += f": from the last axis on, the {rule}; here they are {a} and {b} at axis {axis}."
            return Answer(said, mend, changes)
    return Answer(f"from the last axis on, {rule}: here {a} and {b} at axis {axis}.", mend)


def matrices(at: Failure, *sizes: str) -> Answer:
    """Return what is said of matrices that do not fit: of a layer, or of a product."""
    rows, given, wanted, columns = map(int, sizes)
    for call in [c for c in parts(at.main.tree, ast.Call) if called(c) == "Linear"]:
        if [getattr(a, "value", None) for a in call.args[:2]] == [wanted, columns]:
            reason = f"a layer of {wanted} inputs is given {given} numbers for each of {rows} samples."
            changes = at.main.edited(edits.instead(call.args[0], str(given)))
            return Answer(reason, "as many inputs as there are numbers", changes)
    reason = (
        f"each number of the product sums over a row of the left matrix, of {given}, and a column of the right one, "
        f"of {wanted}: they are to be as many."
    )
    turned = [1] * (given == columns) + [0] * (rows == wanted)
    for factors in _products(at) if turned else ():
        changes = at.text.edited(edits.behind(factors[turned[0]], ".T"))
        return Answer(reason, "the transposed matrix fits", changes)
    return Answer(reason, "matrices of shapes n x k and k x m")


def _products(at: Failure) -> list[tuple[ast.expr, ast.expr]]:
    """Return the factors of the products of matrices at the line."""
    found = []
    for node in ast.walk(at.text.statement):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                found.append((left, right))
            case ast.Call(args=[*_, right]) if called(node) in ("matmul", "mm"):
                found.append((at.text.operand(node) or right, right))
    return found


# Tensors that require no gradient, or are no leaves


def optimizer(at: Failure) -> Answer:
    """Return what is said of an optimizer that is given what is computed."""
    reason = "an optimizer changes leaves: what is computed from them would be overwritten by the next computation."
    names = [n for n, x in at.frame.f_locals.items() if getattr(x, "_fn", None) is not None]
    for name in names:
        if name in at.source(at.line) and (changes := updates.made_a_leaf(at.text, name)):
            return Answer(reason, "let the parameter require a gradient last, behind what makes it", changes)
    mend = "give it the tensor made with requires_grad=True, and compute the other one from it in each step"
    return Answer(reason, mend, _given_leaves(at))


def _given_leaves(at: Failure) -> list[Change]:
    """Give an optimizer the leaf that a tensor was computed from."""
    flow, tensors = Flow(at.text), at.names.tensors
    for call in [c for c in parts(at.text.statement, ast.Call) if c.args]:
        for own in call.args[0].elts if isinstance(call.args[0], ast.List | ast.Tuple) else ():
            names = [at.text.of(n) for e in flow.back(own) for n in parts(e, ast.Name)]
            for leaf in [n for n in names if n in tensors and tensors[n].is_leaf and tensors[n].requires_grad]:
                return at.text.edited(edits.instead(own, leaf))
    return []


def needs(at: Failure) -> Answer:
    """Return what is said of a tensor whose gradient is asked for, and that requires none."""
    owners = at.text.owners("retain_grad", "register_hook")
    for x in map(at.value, owners):
        if getattr(x, "_detached", None) is not None:
            return lost(at, at.name(x, "it"), x._detached, Threads(at.text))
    reason = "gradients flow only through what requires one, or is computed from what does."
    found = (c for own in owners if (c := mends.requiring(at.text, at.text.of(own))))
    return mends.required(reason, next(found, []))


def number(at: Failure, kind: str) -> Answer | None:
    """Return what is said of a number, or a list, in the place of a tensor to go back from."""
    if kind == "list":
        own = at.text.owners("backward")[0]
        changes = at.text.edited(edits.instead(own, f"sum({at.text.of(own)})"))
        return Answer("backward goes back from one tensor, and a list holds several.", "their sum", changes)
    threads = Threads(at.text)
    for cut in threads.cuts():
        reason = f"{at.code(cut.line)} makes numbers of a tensor by {cut.how}, and they have no history."
        return Answer(reason, "backward first, and numbers for what is printed or added up", threads.kept())
    return None
