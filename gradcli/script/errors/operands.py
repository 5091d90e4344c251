"""Errors of what an operation is given: another dtype, another shape, too many numbers; and what fixes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MethodType
from typing import Any

from gradcli.pytorch.tables import pytorch_names
from gradcli.record.naming import is_tensor
from gradcli.script.errors import custom, edits
from gradcli.script.errors.failure import Answer, Failure, dtype_of, is_module, is_whole
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.sizes import resized
from gradcli.script.errors.source import Change, Edit
from gradcli.script.errors.syntax import called, calls, elements, end, owner_of


def _arguments(at: Failure, index: int, fits: Callable[[Any], bool]) -> list[ast.expr]:
    """Return the arguments at an index of the calls in the expression that failed, whose values fit."""
    arguments = [c.args[index] for c in at.failed_calls(least=index + 1)]
    return [a for a in arguments if fits(at.value(a))]


_MADE = {"double": "float64", "long": "int64", "int": "int32", "byte": "uint8"}  # by the methods of these names


def dtypes(at: Failure, *_: str) -> Answer:
    """Return the answer about operands of two dtypes: the one that is not float32 is converted to it."""
    reason = "a product needs operands of one dtype, and PyTorch does not convert them."
    for node, dtype, changed in _not_float32(at):
        said = f"{at.text.of(node)} is {dtype}, and the rest is float32: {reason}"
        return Answer(said, "convert it to float32", at.text.edited(changed))
    return Answer(reason, "convert both to the same dtype: .float(), or .double()")


def _not_float32(at: Failure) -> Iterator[tuple[ast.expr, str, list[Edit]]]:
    """Yield the parts of the expression that have another dtype, with that dtype and the edits to float32."""
    conversions = [c for c in at.failed_calls(*_MADE) if owner_of(c) is not None]
    owners = [owner_of(call) for call in conversions]
    for node in [n for n in at.failed_parts(ast.Name, ast.Attribute) if n not in owners and is_tensor(at.value(n))]:
        dtype = dtype_of(at.value(node))
        if dtype in _MADE.values():
            yield node, dtype, edits.behind(node, ".float()")
    for call in conversions:
        yield call, _MADE[called(call)], edits.method(call, ".float()")
    for call in at.failed_calls("tensor", "from_numpy", "as_tensor", least=1):
        dtype = dtype_of(at.value(call.args[0]))
        if dtype in _MADE.values():
            yield call, dtype, edits.behind(call, ".float()")


def numbers(at: Failure) -> list[Change]:
    """Return all numbers, instead of one: x.tolist() for x.item()."""
    return at.text.edited([e for c in at.failed_calls("item")[:1] for e in edits.method(c, ".tolist()")])


def mean(at: Failure) -> list[Change]:
    """Return the mean of several numbers: float(x.mean())."""
    return at.text.edited(
        [e for c in at.failed_calls("float", "int", least=1)[:1] for e in edits.behind(c.args[0], ".mean()")]
    )


def elementwise(at: Failure) -> list[Change]:
    """Choose of two tensors element by element: torch.maximum for max."""
    extremes = [c for c in at.failed_calls("max", "min") if owner_of(c) is None]
    return at.text.edited(edits.instead(extremes[0].func, f"torch.{called(extremes[0])}imum")) if extremes else []


def all_of(at: Failure) -> list[Change]:
    """Ask whether a comparison holds of all elements."""
    compared = at.failed_parts(ast.Compare)
    direct = [node for node in compared if any(_is_long(at.value(n)) for n in (node.left, *node.comparators))]
    long = direct or [node for node in compared if any(_is_long(at.value(n)) for n in ast.walk(node))]
    return at.text.edited(edits.behind(long[0], ".all()")) if long else []


def _is_long(x: Any) -> bool:
    return is_tensor(x) and x.numel() > 1


def _loss(why: str, fix: str, which: int, code: str, at: Failure, *_: Any, as_float: bool = False) -> Answer | None:
    """Return the answer to a loss whose input or target does not fit: `code` behind or around it makes it fit.

    `why` may name the argument and the other one.  With `as_float`, a target of integers becomes one of floating-point
    numbers too.
    """
    for call in at.failed_calls(least=2):
        argument, first = call.args[which], at.text.of(call.args[0])
        described = [_described(at, a) for a in (argument, call.args[1 - which])]
        reason = why.format(at.text.of(argument), *described)
        first = first if edits.is_simple(call.args[0]) else f"({first})"
        to_float = ".float()" * (as_float and is_whole(at.value(argument)))
        changed = edits.behind(argument, code.format(first) + to_float) if which else edits.wrapped(argument, code)
        return Answer(reason, fix, at.text.edited(changed))
    return None


def _described(at: Failure, argument: ast.expr) -> str:
    """Return the code of an argument and its shape, as far as known."""
    x = at.value(argument)
    return at.text.of(argument) + (f" has the shape {tuple(x.shape)}" if is_tensor(x) else " has another shape")


flat_target = partial(
    _loss, "the target {1}, and this loss takes one class for each sample.", "flatten the target", 1, ".flatten()"
)
shaped_target = partial(
    _loss,
    "the target {1}, and {2}: this loss compares them element by element.",
    "reshape the target as the input",
    1,
    ".reshape({}.shape)",
    as_float=True,
)
_of_probabilities = partial(
    _loss,
    "this loss takes probabilities, and some elements of {0} are below 0 or above 1.",
    "use probabilities, torch.sigmoid(…)",
    0,
    "torch.sigmoid(",
)
probable_target = partial(
    _loss,
    "the target {0} holds integers. A target of the shape of the scores holds class probabilities, which must be "
    "floating-point.",
    "convert the target to floating point",
    1,
    ".float()",
)
_of_real_numbers = partial(
    _loss,
    "the target {0} holds integers, and this loss takes floating-point targets only.",
    "convert the target to floating point",
    1,
    ".float()",
)


def probabilities(at: Failure, what: str) -> Answer | None:
    """Return the answer to a loss of probabilities whose input, or target, has other numbers."""
    if what == "target":
        reason = "this loss takes targets from 0 to 1, and some elements of this target are below 0 or above 1."
        return Answer(reason, "scale the target; for several classes use torch.nn.CrossEntropyLoss")
    return _of_probabilities(at)


def real_target(at: Failure, dtype: str, *_: str) -> Answer | None:
    """Return the answer where a target has integers, and a loss needs real numbers."""
    return None if dtype in ("Float", "Double", "Half") else _of_real_numbers(at)


def real_numbers(at: Failure) -> list[Change]:
    """Convert the integer target of a loss to floating point."""
    targets = _arguments(at, 1, is_whole)
    return at.text.edited(edits.behind(targets[0], ".float()")) if targets else []


def from_0(at: Failure) -> list[Change]:
    """Count the classes of a target from 0, where a script counts them from 1."""
    for call in at.failed_calls(least=2):
        scores, target = map(at.value, call.args[:2])
        if (
            is_tensor(scores)
            and is_tensor(target)
            and int(target.min()) == 1
            and int(target.max()) == scores.shape[min(1, scores.dim() - 1)]
        ):
            return at.text.edited(edits.behind(call.args[1], " - 1"))
    return []


def elsewhere(at: Failure, module: str, name: str) -> Answer | None:
    """Return the answer about a name that PyTorch has in another module."""
    homes = [m for m, names in pytorch_names().items() if m.startswith("torch") and name in names]
    for node in [n for n in at.failed_parts(ast.Attribute) if n.attr == name and homes]:
        new = f"{homes[0]}.{name}"
        return Answer(f"PyTorch has no {module}.{name}.", f"it is {new}", at.text.edited(edits.instead(node, new)))
    return None


def overcalled(at: Failure) -> Answer | None:
    """Return the answer about a value that a script calls: x.shape()."""
    for call in at.failed_calls():
        if is_tensor(at.value(owner_of(call))) and not callable(at.value(call.func)):
            new = f"[{at.text.of(call.args[0])}]" if call.args else ""
            changes = at.text.edited([(end(call.func), end(call), new)])
            reason = f"{at.text.of(call.func)} is a value, not a method."
            return Answer(reason, f"read it, without {'()' if not new else 'a call'}", changes)
    return None


def _is_of_torch(x: Any) -> bool:
    return is_tensor(x) or is_module(x)


def uncalled(at: Failure) -> Answer | None:
    """Return the answer about a method that a script forgot to call: z = y.sum, or SGD(net.parameters)."""
    for node in at.failed_parts(ast.Name, ast.Attribute):
        if isinstance(at.value(node), MethodType) and _is_of_torch(at.value(node).__self__):
            function = next((n for n in Flow(at.text).of_name(node)), node)
            code = at.text.of(function)
            reason = f"{at.text.of(node)} is the method itself: {code} without () does not call it."
            return Answer(reason, "call it", at.text.on(function.lineno).edited(edits.behind(function, "()")))
    return None


def of_a_tuple(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a tuple where a tensor is needed: what an LSTM returns."""
    for node in at.failed_parts(ast.Name):
        x = at.value(node)
        if isinstance(x, tuple) and x and is_tensor(x[0]):
            reason = (
                f"{node.id} is a tuple of {len(x)}, not a tensor: an LSTM, for one, returns its output and its state."
            )
            return Answer(reason, "use the element that is needed", at.text.edited(edits.behind(node, "[0]")), "layers")
    return None


def swapped(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a loss whose scores and classes are in the other order."""
    for call in at.failed_calls(least=2):
        first, second = call.args[:2]
        scores = at.value(second)
        if is_whole(at.value(first)) and (not is_tensor(scores) or scores.is_floating_point()):
            codes = at.text.of(second), at.text.of(first)
            changes = [*edits.instead(first, codes[0]), *edits.instead(second, codes[1])]
            reason = f"the first argument is the scores, and {codes[1]} holds integers: it is the target."
            return Answer(reason, "pass the scores first", at.text.edited(changes), "cross-entropy")
    return None


def loss_of_its_class(at: Failure) -> list[Change]:
    """Return the change that creates a loss, and then calls it: MSELoss()(output, target)."""
    for call in at.failed_calls(least=2):
        cls: Any = at.value(call.func)
        if isinstance(cls, type) and hasattr(cls, "named_parameters"):
            return at.text.edited(edits.behind(call.func, "()"))
    return []


def batched(at: Failure) -> list[Change]:
    """Return the change that gives a single image the axis of channels."""
    images = _arguments(at, 0, lambda x: is_tensor(x) and x.dim() == 2)
    return at.text.edited(edits.behind(images[0], ".unsqueeze(0)")) if images else []


def indices(at: Failure) -> list[Change]:
    """Make the indices of an embedding integers."""
    real = _arguments(at, 0, lambda x: is_tensor(x) and x.is_floating_point())
    return at.text.edited(edits.behind(real[0], ".long()")) if real else []


def whole(at: Failure) -> list[Change]:
    """Make the targets of a loss integers."""
    losses = [c for c in calls(at.text.statement) if len(c.args) > 1]
    return at.text.edited(edits.behind(losses[0].args[1], ".long()")) if losses else []


def parameter(at: Failure) -> list[Change]:
    """Make a parameter of what is assigned."""
    match at.text.statement:
        case ast.Assign(_, value):
            return at.text.edited(edits.wrapped(value, "torch.nn.Parameter("))
    return []


def listed(at: Failure) -> list[Change]:
    """Give an optimizer a list, instead of one tensor."""
    arguments = _arguments(at, 0, is_tensor)
    return at.text.edited(edits.wrapped(arguments[0], "[", "]")) if arguments else []


def jacobian(at: Failure) -> list[Change]:
    """Return the fix from torch.func.grad to jacrev, in a nested gradient too: results may have several elements."""
    for expression in (*at.failed_calls(), *Flow(at.text).back(at.text.statement)):
        if grads := [c for c in calls(expression, "grad") if at.text.of(c.func) != "torch.autograd.grad"]:
            return at.text.edited([e for c in grads for e in edits.instead(c.func, "torch.func.jacrev")])
    return []


def mismatch(at: Failure, dtype: Any) -> Answer:
    """Return the answer about a gradient that is not what differences of the function give, computed in a dtype."""
    if dtype != "float64":
        reason = "gradcheck subtracts numbers that agree in most digits, and float32 has too few digits for that."
        return Answer(reason, "use float64", doubled(at))
    if at.text.calls("gradgradcheck"):
        if (answer := custom.kept(at)) is not None:
            return answer
        reason = (
            "the derivative of the gradient differs from finite differences: double backward goes through v and "
            "saved_tensors, and treats anything else in ctx as a constant."
        )
        return Answer(reason, "save inputs and outputs only, ctx.save_for_backward(x), and compute the rest from them")
    reason = "the gradient differs from finite differences: a backward is not the derivative of its forward"
    fix = "gradcli run --check shows each Function's backward beside the derivative"
    return Answer(f"{reason}, or the point is a corner.", fix)


def broadcast(at: Failure, a: int, b: int, axis: int) -> Answer:
    """Return the answer about shapes that do not broadcast."""
    rule = "sizes must be equal, or one of them 1"
    fix = "an axis of size 1 where they differ: unsqueeze, or reshape"
    for node in at.failed_parts(ast.BinOp):
        factors = (node.left, node.right)
        shapes = {n: tuple(x.shape) for n in factors if getattr(x := at.value(n), "shape", None) is not None}
        if shapes:
            said = " and ".join(f"{at.text.of(n)} has the shape {shape}" for n, shape in shapes.items())
            rows = shapes.get(node.left, ())[:1] == (b,) and axis == 1
            changes = at.text.edited(edits.behind(node.right, ".unsqueeze(1)")) if rows else []
            said += f"; counted from the last axis, {rule}; here they are {a} and {b} at axis {axis}."
            return Answer(said, fix, changes)
    return Answer(f"counted from the last axis, {rule}: here they are {a} and {b} at axis {axis}.", fix)


def matrices(at: Failure, rows: int, size: int, expected: int, columns: int) -> Answer:
    """Return the answer about matrices that do not fit: of a layer, or of a product."""
    layers = [c for c in at.failed_calls() if getattr(at.value(c.func), "in_features", None) == expected]
    changes = resized(at, "Linear", (expected, columns), (size, columns))
    if changes or layers:
        name = at.text.of(layers[-1].func) if layers else "this layer"
        reason = f"{name} takes {expected} inputs, and each of the {rows} samples has {size}."
        return Answer(reason, f"create the layer with {size} inputs", changes)
    reason = (
        f"the rows of the left matrix have {size} elements, and the columns of the right one {expected}: these must be "
        "equal."
    )
    transposed = [1] * (size == columns) + [0] * (rows == expected)
    for factors in _products(at) if transposed else ():
        changes = at.text.edited(edits.behind(factors[transposed[0]], ".T"))
        return Answer(reason, "transpose the matrix", changes)
    return Answer(reason, "use matrices of shapes n x k and k x m")


def channels(at: Failure, how: str, weight: Sequence[int], shape: Sequence[int], expected: int, size: int) -> Answer:
    """Return the answer about a convolution of an image that has other channels."""
    reason = f"this layer takes {expected} channels, and the image has {size}: images are (channels, height, width)."
    return Answer(
        reason, "create the layer with as many channels as the image has", resized(at, "Conv", (expected,), (size,))
    )


def reshaped(at: Failure) -> list[Change]:
    """Return the fix from `view` to `reshape`, which copies where it must."""
    views = [c.func for c in at.failed_calls("view")]
    return at.text.edited([(edits.dot(f), end(f), ".reshape") for f in views if isinstance(f, ast.Attribute)])


def doubled(at: Failure) -> list[Change]:
    """Return the fix that gives gradcheck inputs of float64."""
    for call in at.failed_calls("gradcheck", least=2):
        tensors = [x for x in elements(call.args[1]) if is_tensor(at.value(x))]
        return at.text.edited([e for x in tensors for e in edits.behind(x, ".double()")])
    return []


def _products(at: Failure) -> list[tuple[ast.expr, ast.expr]]:
    """Return the factors of the products of matrices at the line."""
    result = []
    for node in ast.walk(at.text.statement):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                result.append((left, right))
            case ast.Call(args=[*_, right]) if called(node) in ("matmul", "mm"):
                result.append((at.text.operand(node) or right, right))
    return result
