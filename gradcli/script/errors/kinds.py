"""Answers to errors of autograd, from the operations and the quantities that PyTorch's message does not name."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.record.naming import is_tensor
from gradcli.record.record import CallSite, Operation
from gradcli.script.errors import custom, edits, finite, fixes, leaves, operands, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.freed import repeated
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.none import none
from gradcli.script.errors.syntax import calls, elements, parts, receiver_of
from gradcli.script.known import is_custom, line_at
from gradcli.text.wrapping import in_words

# Why a step needs a value for its backward, by the operation and whether that is its result.
_NEEDS = {
    ("exp", True): "exp's derivative is its own result",
    ("exp2", True): "exp2's derivative is a multiple of its result",
    ("sigmoid", True): "sigmoid's derivative is s*(1 - s), where s is its result",
    ("tanh", True): "tanh's derivative is 1 - t**2, where t is its result",
    ("sqrt", True): "sqrt's derivative is 1/(2*r), where r is its result",
    ("rsqrt", True): "rsqrt's derivative is -r**3/2, where r is its result",
    ("relu", True): "relu's derivative is 1 where its result is above 0",
    ("softmax", True): "softmax's derivative is computed from its result",
    ("log_softmax", True): "log_softmax's derivative is computed from its result",
    ("mul", False): "the derivative of a product with respect to one factor is the other factor",
    ("matmul", False): "the derivative of a matrix product with respect to one factor is computed from the other",
    ("linear", False): "the derivative of a linear layer is computed from its input and its weight",
    ("div", False): "the derivative of a quotient is computed from both operands",
    ("pow", False): "the derivative of x**n is n*x**(n - 1)",
    ("square", False): "the derivative of x**2 is 2*x",
    ("sin", False): "sin's derivative is cos(x)",
    ("cos", False): "cos's derivative is -sin(x)",
    ("log", False): "log's derivative is 1/x",
}


def in_place(
    at: Failure,
    number: int,
    name: str,
    is_result: bool,
    versions: tuple[int, int],
    changed: CallSite | None,
    how: str,
    sites: Sequence[CallSite],
) -> Answer:
    """Return the answer where a value that an operation needs for its backward was changed in place.

    `how` is what changed it last, at one of the `sites` of all changes since.
    """
    operation = at.operation(number)
    name, needs = _needed(operation, name, is_result)
    reader = f"{operation.grad_fn} of {at.code_of(operation)}"
    if changed is None:
        reason = f"{name} was changed in place after {reader} had read it: {needs}."
        return Answer(reason, "compute a new tensor instead: y = y + 1, not y += 1")
    line = line_at(changed)
    reason = (
        f"{at.code(line)} changes {name} in place (version {versions[0]}, {versions[1]} is expected), and {reader} "
        f"needs the old values for its backward: {needs}."
    )
    text = at.text_at(line)
    of_data = any(n.attr == "data" for n in parts(text.statement, ast.Attribute))
    if how != "step" and not updates.is_unrecorded(text) and not of_data:
        lines = {s.line for s in (*sites, changed) if s.file == text.file}
        changes = [c for n in sorted(lines) for c in updates.out_of_place(text.on(n))]
        fix = "compute a new tensor instead, so that the old values stay"
        fix += "" if changes else "; elements that are set one by one can be collected in a list, and stacked"
        return Answer(reason, fix, list(dict.fromkeys(changes)))
    if answer := repeated(at, operation, reason, ", with the weights from before the change"):
        return answer
    what = "the optimizer's step" if how == "step" else "the change"
    return Answer(reason, f"move {what} after the backward; or compute the loss again after it, with the new values")


def _needed(operation: Operation, name: str, is_result: bool) -> tuple[str, str]:
    """Return the name of the value that an operation has kept, and why it needs it."""
    if is_custom(operation):
        return name or "a saved tensor", "its backward reads ctx.saved_tensors"
    what = "result" if is_result else "input"
    why = _NEEDS.get((operation.row, is_result)) or f"{operation.row}'s derivative is computed from its {what}"
    return name or f"the {what} of {operation.row}", why


_ORIGINS = {
    "no_grad": "created under no_grad()",
    "inference": "created under inference_mode()",
    "function": "the output of a Function",
}


def view_changed(
    at: Failure, view: int, maker: str, operation: str, is_hooked: bool, changed: CallSite | None, how: str
) -> Answer:
    """Return the answer where a view is changed in place that the graph cannot follow.

    `changed` is where it was changed before by `how`, NOWHERE if that is not known; None where it is at the error.
    """
    where, name = at.code(at.line), at.called_name(view, "it")
    if changed is None:
        reason = f"{where} changes a view in place, and the graph of its base tensor cannot follow that."
        fix = "compute a new tensor"
        if is_hooked:
            reason = f"{where} changes in place the output of a module that has a backward hook."
            fix = "compute a new tensor; or put the hook on the tensor, y.register_hook"
        return Answer(reason, fix, updates.out_of_place(at.text))
    line = line_at(changed)
    before = f"{at.code(line)} changed {name} in place" if line else f"{name} was changed in place"
    what = _ORIGINS.get(maker) or f"one of several parts that {operation.lower()} returns"
    reason = f"{before}, and it is {what}: the graph cannot follow that change."
    if maker == "function":
        return Answer(reason, "copy it with clone(), which makes a tensor that may be changed")
    if maker == "several" and how != "step":
        return Answer(reason, "compute a new tensor instead")
    return Answer(reason, f"compute {name} again after the change, where gradients are recorded; or detach() it")


def no_root(at: Failure, y: Any) -> Answer:
    """Return the answer about an output without a gradient."""
    name, history, cut = at.called_name(y, "the output"), History(at.text, at.known), at.known.cut_of(y)
    if cut is None and history.is_of_constant_gradient(at):
        if (answer := custom.kept(at, history.way)) is not None:
            return answer
        reason = f"{name} is computed from the gradient of a linear function, which is constant: "
        zeros = "use torch.zeros_like(x) where its requires_grad is False"
        return Answer(f"{reason}it has no graph, and its own gradient is 0.", zeros)
    for known in filter(None, (cut, *history.cuts())):
        return detached_answer(at, name, known, history)
    if changes := history.gradient_recorded():
        origin = f"{name} is computed from a gradient, and that"
        if history.root.endswith(".grad"):
            origin = f"{history.root} is a gradient, and its computation"
        said = f"{origin} is recorded only with create_graph=True."
        return Answer(said, "record it where the gradient is taken", changes)
    reason = f"nothing that {name} was computed from requires a gradient"
    if changes := leaves.thawed(at.text):
        fix = "let some of the parameters require a gradient"
        return Answer(f"{reason}: the script has switched that off.", fix, changes)
    late = [n for n, x in at.names.tensors.items() if x.is_leaf and x.requires_grad and history.has(n)]
    reason += ", so that there is no graph to go back through."
    if late:
        reason = f"{late[0]} did not require a gradient yet when {name} was computed from it: nothing was recorded."
    return leaves.required(reason, leaves.requiring(at.text, name, at.quantity(y)))


def numpy_of(at: Failure) -> Answer:
    """Return the answer about a tensor that NumPy reads: on the way to a loss, or for what needs no gradient."""
    reason = "NumPy records no graph, so its results have no gradient."
    for node in (n for e in parts(at.text.statement, ast.BinOp) for n in (e.left, e.right)):
        if isinstance(at.value(node), np.ndarray):
            code = at.text.of(node)
            said = f"{code} is a NumPy array, so NumPy would compute this. {reason}"
            return at.answer(said, "make it a tensor", edits.instead(node, f"torch.as_tensor({code})"))
    for place in (at, *at.callers):
        roots = [receiver_of(c) for c in calls(place.text.tree, "backward") if c.lineno > place.line]
        for root in filter(None, roots):
            match place.text.statement:
                case ast.Assign([target], value) if value in place.text.back(root):
                    name = place.text.of(target)
                    how = "starts from" if name == place.text.of(root) else "goes back through"
                    fix = f"compute {name} with PyTorch's functions: torch.log(x) instead of np.log(x)"
                    return Answer(f"{reason} A backward {how} {name} and needs the graph.", fix, fixes.in_torch(at))
    return Answer(reason, "pass NumPy the values alone, with detach()", fixes.detached(at))


def of_math(at: Failure, *_: Any) -> Answer | None:
    """Return the answer about a function of Python's `math` that gets a tensor with several elements."""
    for call in fixes.of_module(at, at.failed_calls(least=1), math):
        if changes := fixes.in_torch(at, math):
            reason = f"{at.text.of(call.func)} takes a single number, and {at.text.of(call.args[0])} has several."
            return Answer(reason, "call PyTorch's function, which takes each element", changes)
    return None


def scalar(at: Failure, y: Any) -> Answer:
    """Return the answer to `backward()` of a tensor with several elements: it needs v, one weight for each."""
    name, size = at.called_name(y, "y"), "×".join(map(str, at.quantity(y).shape))
    x = _leaf_behind(at, y)
    gradient = f"{x}.grad = vᵀJ, with J = ∂{name}/∂{x}," if x else "a gradient vᵀJ"
    reason = f"{name} has {size} elements: {gradient} needs a weight v for each; v defaults to 1 for a scalar only."
    fix = f"call backward() of their sum or mean, or {name}.backward(v) with v = ∂L/∂{name}"
    if at.text.calls("grad"):
        fix = f"pass v as grad_outputs; ones give the gradient of the sum of {name}"
    return Answer(reason, fix, fixes.summed(at.text, name))


def _leaf_behind(at: Failure, y: Any) -> str:
    """Return the name of the first leaf that a quantity depends on; "" where none of them has one."""
    _, reached = at.known.behind([getattr(y, "id", y)])
    leaves = sorted(q for q in reached if q >= 0 and q not in at.known.producers)  # below 0 it only stands for a tensor
    return next((name for q in leaves if (name := at.called_name(q, ""))), "")


def kind_of_v(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a v that is a list of numbers, an array or a number, and not a tensor."""
    for call in at.text.calls("backward", "grad"):
        y, weight = fixes.weighted(at.text, call)
        if weight is None or is_tensor(v := at.value(weight)):
            continue
        code = at.text.of(weight)
        new = f"torch.full_like({y}, {code})" if isinstance(v, int | float) else f"torch.as_tensor({code})"
        reason = f"v = ∂L/∂{y} must be a tensor of the shape of {y}, and {code} is not a tensor."
        return at.answer(reason, "pass a tensor", edits.instead(weight, new), "gradient-argument")
    return None


def shape(at: Failure, y: Any, v: Any) -> Answer:
    """Return the answer about a v of another shape."""
    name, weight = at.called_name(y, "y"), at.called_name(v, "v")
    expected, actual = at.quantity(y).shape, at.quantity(v).shape
    reason = (
        f"v = ∂L/∂{name} has one weight for each element of {name}, so it must have the shape {expected}; here "
        f"{weight} has the shape {actual}."
    )
    if assignment := at.text.assigned(weight):
        reason += f" It comes from line {assignment[0].lineno}, `{at.text.of(assignment[0])}`."
    fix = f"use a v of the shape {expected}" + "; a scalar takes one number" * (not expected)
    return Answer(reason, fix, fixes.other_weight(at.text, expected, actual))


def unused(at: Failure, x: int, roots: Sequence[int], base: int | None) -> Answer:
    """Return the answer about an input that nothing came from; `base` is what it is a view of."""
    inputs = [elements(c.args[1]) for c in at.text.calls("grad") if len(c.args) > 1]
    written = f"`{at.text.of(inputs[0][0])}`" if inputs and len(inputs[0]) == 1 else "the input"
    name, outputs = at.called_name(x, written), ", ".join(at.called_name(y, "the output") for y in roots)
    whole = "" if base is None else at.called_name(base, "")
    _, reached = at.known.behind(roots)
    if whole and base in reached:
        reason = f"{outputs} is computed from {whole}, and {name} is another tensor: a view that was taken of it."
        fix = f"take the gradient with respect to {whole}, and then that part of it: torch.autograd.grad({outputs}, "
        return Answer(reason, f"{fix}{whole})[0][…]")
    _, origins = at.known.behind([x])
    for q in sorted(origins & reached - {x}):
        if q not in at.known.producers and (leaf := at.called_name(q, "")):
            reason = f"{outputs} is computed from {leaf}, and {name} is another tensor, which is computed from {leaf} "
            fix = f"take the gradient with respect to {leaf}; or compute {outputs} from {name}"
            return Answer(f"{reason}too.", fix)
    reason = f"{outputs} does not depend on {name}: it was computed without {name}, or from a copy of it."
    fix = "pass allow_unused=True to get None for it (materialize_grads=True: zeros); or use it in the computation"
    return Answer(reason, fix, fixes.with_argument(at.text, "allow_unused", "True", "grad"))


def no_grad(at: Failure, x: Any) -> Answer:
    """Return the answer about an input without a gradient."""
    name, history = at.called_name(x, "it"), History(at.text, at.known)
    assignment = at.text.assigned(name)
    made = at.known.cut_at(at.text.file, assignment[0].lineno) if assignment and at.known.is_live else None
    if (cut := at.known.cut_of(x) or made) is not None:
        return detached_answer(at, name, cut, history)
    if assignment and calls(assignment[1], "grad"):
        reason = f"{name} is a gradient, and its computation is recorded only with create_graph=True."
        fix = f"record it where it is taken; a second derivative is one of {name}"
        return Answer(reason, fix, history.gradient_recorded())
    reason = f"{name} does not require a gradient, so nothing was recorded for it."
    fix = f"set requires_grad=True where {name} is created, before anything is computed from it"
    return Answer(reason, fix, leaves.requiring(at.text, name, at.quantity(x)))


def nan(at: Failure, number: int) -> Answer:
    """Return the answer about a derivative that is not finite."""
    operation = at.operation(number)
    if is_custom(operation):
        reason = f"{at.code_of(operation)} called {operation.row}, whose backward returned nan for finite values."
        return Answer(reason, "check its divisions, roots and logarithms")
    if (answer := finite.not_finite_answer(at, at.known.record.backwards[-1])) is not None:
        return replace(answer, reason=f"{answer.reason[0].upper()}{answer.reason[1:]}.")
    return Answer(f"{operation.grad_fn} at {at.code_of(operation)} returned nan.", "look at its arguments")


def asserted(at: Failure) -> Answer | None:
    """Return the answer about an `assert` of the script's own, with the numbers that it compares."""
    match at.text.statement:
        case ast.Assert(test):
            compared = {at.text.of(n): at.value(n) for n in ast.walk(test) if isinstance(n, ast.Name | ast.Attribute)}
            known = [f"{code} is {x}" for code, x in compared.items() if x is None or isinstance(x, int | float | str)]
            said = f": {in_words(known)}" if known else ""
            reason = f"{at.code(at.line)} requires that `{at.text.of(test)}` holds, and it does not{said}."
            return Answer(reason, "correct what is compared where it is computed, or the condition")
    return None


def no_tensor(at: Failure, *facts: Any) -> Answer | None:
    """Return the answer where a function gets another object than a tensor; a fact is its type."""
    if "NoneType" in facts and (answer := none(at)) is not None:
        return answer
    is_uncalled = any(kind in facts for kind in ("function", "method", "builtin_function_or_method"))
    if is_uncalled:
        return operands.uncalled(at)
    return (
        operands.of_parts(at) if at.known.key != "arguments of no overload" and {"list", "tuple"} & {*facts} else None
    )
