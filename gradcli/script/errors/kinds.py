"""Answers to errors of autograd, from the steps and the tensors that PyTorch's message does not name."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.pytorch.origins import HOOKED, Maker
from gradcli.pytorch.record import edge_of
from gradcli.pytorch.tensor import Tensor
from gradcli.script.errors import edits, finite, fixes, leaves, operands, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.freed import leads, repeated
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.none import none
from gradcli.script.errors.syntax import calls, elements, parts, receiver_of

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


def in_place(at: Failure, step: Any, memory: Any, version: int) -> Answer:
    """Return the answer where a value that a step needs for its backward was changed in place."""
    name, needs = _changed_value(at, step, memory)
    if not memory.storage.changed:
        reason = f"{name} was changed in place after {step.name()} of {at.code(step.line)} had read it: {needs}."
        return Answer(reason, "compute a new tensor instead: y = y + 1, not y += 1")
    line, how = memory.storage.changed
    reason = (
        f"{at.code(line)} changes {name} in place (version {memory.version}, {version} is expected), and "
        f"{step.name()} of {at.code(step.line)} needs the old values for its backward: {needs}."
    )
    text = at.text_at(line)
    of_data = any(n.attr == "data" for n in parts(text.statement, ast.Attribute))
    if how != "step" and not updates.is_unrecorded(text) and not of_data:
        lines = [n for n, last in memory.lines.items() if last > version and at.file(n) == text.file]
        changes = [c for n in sorted({*lines, line}) for c in updates.out_of_place(text.on(n))]
        return Answer(reason, "compute a new tensor instead, so that the old values stay", list(dict.fromkeys(changes)))
    if answer := repeated(at, step, reason, ", with the weights from before the change"):
        return answer
    what = "the optimizer's step" if how == "step" else "the change"
    fix = f"move {what} after the backward; or compute the loss again after it, with the new values"
    return Answer(reason, fix, updates.moved(text, at.line))


def _changed_value(at: Failure, step: Any, memory: Any) -> tuple[str, str]:
    """Return the name of the value in a memory that a step has kept, and why the step needs it."""
    kept = [tensor for known, _, _, tensor, _ in step.checks if known is memory]
    is_result = any(tensor is None for tensor in kept)
    named = next((n for n, x in at.names.tensors.items() if x._memory is memory), "")
    name = named or next((at.name(x, "") for x in kept if x is not None), "") or at.names.of((step, 0))
    if step.is_custom:
        return name or "a saved tensor", "its backward reads ctx.saved_tensors"
    op = step.recipe.op
    why = _NEEDS.get((op, is_result)) or f"{op}'s derivative is computed from its {'result' if is_result else 'input'}"
    return name or f"the {'result' if is_result else 'input'} of {op}", why


def view_changed(at: Failure, view: Any, since: bool) -> Answer:
    """Return the answer where a view is changed in place that the graph cannot follow.

    `since` is whether it was changed before, and not at the line of the error.
    """
    if since:
        return _changed_before(at, view)
    where = at.code(at.line)
    if view._origin.name == HOOKED and not view._origin.is_inner:
        reason = f"{where} changes in place the output of a module that has a backward hook."
        fix = "compute a new tensor; or put the hook on the tensor, y.register_hook"
    else:
        reason = f"{where} changes a view in place, and the graph of its base tensor cannot follow that."
        fix = "compute a new tensor"
    return Answer(reason, fix, updates.out_of_place(at.text))


_ORIGINS = {
    Maker.NO_GRAD: "created under no_grad()",
    Maker.INFERENCE: "created under inference_mode()",
    Maker.FUNCTION: "the output of a Function",
}


def _changed_before(at: Failure, view: Any) -> Answer:
    name, origin = at.name(view, "it"), view._origin
    line, by = view._memory.storage.changed or (0, "")
    changed = f"{at.code(line)} changed {name} in place" if line else f"{name} was changed in place"
    what = _ORIGINS.get(origin.maker) or f"one of several parts that {origin.name.lower()} returns"
    reason = f"{changed}, and it is {what}: the graph cannot follow that change."
    if origin.maker is Maker.FUNCTION:
        return Answer(reason, "copy it, which makes a tensor that may be changed", leaves.cloned_result(at.text, name))
    if (
        origin.maker is Maker.SEVERAL
        and by != "step"
        and (changes := updates.out_of_place(at.text_at(line or at.line)))
    ):
        return Answer(reason, "compute a new tensor instead", changes)
    return Answer(reason, f"compute {name} again after the change, where gradients are recorded; or detach() it")


def no_root(at: Failure, y: Any) -> Answer:
    """Return the answer about an output without a gradient."""
    name, history = at.name(y, "the output"), History(at.text)
    if y._detached is None and history.is_of_constant_gradient(at):
        reason = f"{name} is computed from the gradient of a linear function, which is constant: "
        zeros = "use torch.zeros_like(x) where its requires_grad is False"
        return Answer(f"{reason}it has no graph, and its own gradient is 0.", zeros)
    if cuts := [c for c in (y._detached, *history.cuts()) if c is not None]:
        return detached_answer(at, name, cuts[0], history)
    if changes := history.gradient_recorded():
        origin = f"{name} is computed from a gradient, and that"
        if history.root.endswith(".grad"):
            origin = f"{history.root} is a gradient, and its computation"
        said = f"{origin} is recorded only with create_graph=True."
        return Answer(said, "record it where the gradient is taken", changes)
    reason = f"nothing that {name} was computed from requires a gradient"
    if changes := leaves.thawed(at.text):
        return Answer(
            f"{reason}: the script has switched that off.", "let some of the parameters require a gradient", changes
        )
    late = [n for n, x in at.names.tensors.items() if x.is_leaf and x.requires_grad and history.has(n)]
    reason += ", so that there is no graph to go back through."
    if late:
        reason = f"{late[0]} did not require a gradient yet when {name} was computed from it: nothing was recorded."
    return leaves.required(reason, leaves.requiring(at.text, name, y))


def in_a_map(at: Failure, y: Any) -> Answer:
    """Return the answer about a gradient that is asked for in a function that vmap calls."""
    reason = (
        f"inside vmap, {at.name(y, 'the output')} represents all elements at once, and autograd has no graph of it."
    )
    return Answer(reason, "use torch.func.grad of a function of one element, which vmap can map: vmap(grad(f))")


def numpy_of(at: Failure) -> Answer:
    """Return the answer about a tensor that NumPy reads: on the way to a loss, or for what needs no gradient."""
    reason = "NumPy records no graph, so its results have no gradient."
    for place in (at, *at.callers):
        roots = [receiver_of(c) for c in calls(place.text.tree, "backward") if c.lineno > place.line]
        names = {place.text.of(root) for root in roots if root is not None}
        match place.text.statement:
            case ast.Assign([target]) if place.text.of(target) in names:
                fix = f"compute {place.text.of(target)} with PyTorch's functions: torch.log(x) instead of np.log(x)"
                said = f"{reason} A backward starts from {place.text.of(target)} and needs the graph."
                return Answer(said, fix, fixes.in_torch(at))
    return Answer(reason, "pass NumPy the values alone, with detach()", fixes.detached(at))


def scalar(at: Failure, y: Any) -> Answer:
    """Return the answer to `backward()` of a tensor with several elements: it needs v, one weight for each."""
    name, size = at.name(y, "y"), "×".join(map(str, y.shape))
    reason = f"{name} has {size} elements: x.grad = vᵀJ needs a weight v for each; v defaults to 1 for a scalar only."
    fix = f"call backward() of their sum or mean, or {name}.backward(v) with v = ∂L/∂{name}"
    if at.text.calls("grad"):
        fix = f"pass v as grad_outputs; ones give the gradient of the sum of {name}"
    return Answer(reason, fix, fixes.summed(at.text, name))


def kind_of_v(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a v that is a list of numbers, an array or a number, and not a tensor."""
    for call in at.text.calls("backward", "grad"):
        y, weight = fixes.weighted(at.text, call)
        v = at.value(weight)
        if weight is None or isinstance(v, Tensor):
            continue
        code = at.text.of(weight)
        changes = edits.wrapped(weight, "torch.from_numpy(" if isinstance(v, np.ndarray) else "torch.tensor(")
        if isinstance(v, int | float):
            changes = edits.instead(weight, f"torch.full_like({y}, {code})")
        reason = f"v = ∂L/∂{y} must be a tensor of the shape of {y}, and {code} is not a tensor."
        return Answer(reason, "pass a tensor", at.text.edited(changes), "gradient-argument")
    return None


def shape(at: Failure, y: Any, v: Any) -> Answer:
    """Return the answer about a v of another shape."""
    name, weight = at.name(y, "y"), at.name(v, "v")
    expected, actual = tuple(y.shape), tuple(v.shape)
    reason = (
        f"v = ∂L/∂{name} has one weight for each element of {name}, so it must have the shape {expected}; here "
        f"{weight} has the shape {actual}."
    )
    if assignment := at.text.assigned(weight):
        reason += f" It comes from line {assignment[0].lineno}, `{at.text.of(assignment[0])}`."
    fix = f"use a v of the shape {expected}" + "; a scalar takes one number" * (not expected)
    return Answer(reason, fix, fixes.other_weight(at.text, y, v))


def unused(at: Failure, x: Any, roots: Any) -> Answer:
    """Return the answer about an input that nothing came from."""
    inputs = [elements(c.args[1]) for c in at.text.calls("grad") if len(c.args) > 1]
    written = f"`{at.text.of(inputs[0][0])}`" if inputs and len(inputs[0]) == 1 else "the input"
    name, outputs = at.name(x, written), ", ".join(at.name(y, "the output") for y in roots)
    whole = at.name(x._base, "") if x._base is not None else ""
    if whole and any(leads(y, edge_of(x._base)[0]) for y in roots):
        changes = fixes.of_the_whole(at.text, whole)
        reason = f"{outputs} is computed from {whole}, and {name} is another tensor: a view that was taken of it."
        fix = f"take the gradient with respect to {whole}, and then that part of it"
        return Answer(reason, fix if changes else f"{fix}: torch.autograd.grad({outputs}, {whole})[0][…]", changes)
    leaf = next((n for n, y in at.names.tensors.items() if y is not x and y.is_leaf and leads(x, edge_of(y)[0])), "")
    if leaf and any(leads(y, edge_of(at.names.tensors[leaf])[0]) for y in roots):
        reason = f"{outputs} is computed from {leaf}, and {name} is another tensor, which is computed from {leaf} too."
        return Answer(reason, f"take the gradient with respect to {leaf}; or compute {outputs} from {name}")
    reason = f"{outputs} does not depend on {name}: it was computed without {name}, or from a copy of it."
    fix = "pass allow_unused=True to get None for it (materialize_grads=True: zeros); or use it in the computation"
    return Answer(reason, fix, fixes.with_argument(at.text, "allow_unused", "True", "grad"))


def no_grad(at: Failure, x: Any) -> Answer:
    """Return the answer about an input without a gradient."""
    name = at.name(x, "it")
    if x._detached is not None:
        return detached_answer(at, name, x._detached, History(at.text))
    assignment = at.text.assigned(name)
    if assignment and calls(assignment[1], "grad"):
        reason = f"{name} is a gradient, and its computation is recorded only with create_graph=True."
        fix = f"record it where it is taken; a second derivative is one of {name}"
        return Answer(reason, fix, History(at.text).gradient_recorded())
    reason = f"{name} does not require a gradient, so nothing was recorded for it."
    fix = f"set requires_grad=True where {name} is created, before anything is computed from it"
    return Answer(reason, fix, leaves.requiring(at.text, name, x))


def nan(at: Failure, call: Any, step: Any) -> Answer:
    """Return the answer about a derivative that is not finite."""
    if step.is_custom:
        reason = f"{at.code(step.line)} called {step.cls.__name__}, whose backward returned nan for finite values."
        return Answer(reason, "check its divisions, roots and logarithms")
    if (answer := finite.not_finite_answer(at, call)) is not None:
        return replace(answer, reason=f"{answer.reason[0].upper()}{answer.reason[1:]}.")
    return Answer(f"{step.name()} at {at.code(step.line)} returned nan.", "look at its arguments")


def other_count(at: Failure, name: str, expected: int, count: int) -> Answer:
    """Return the answer where a backward returns another number of gradients than forward has arguments."""
    reason = f"backward returns a gradient for each argument of forward, None for what has none: {expected} of them."
    return Answer(
        reason, "return as many gradients as forward has arguments", fixes.more_returned(at, name, expected - count)
    )


def no_tensor(at: Failure, *facts: Any) -> Answer | None:
    """Return the answer where a function gets another object than a tensor; a fact is its type."""
    if "NoneType" in facts and (answer := none(at)) is not None:
        return answer
    is_uncalled = any(kind in facts for kind in ("function", "method", "builtin_function_or_method"))
    return operands.uncalled(at) if is_uncalled else None
