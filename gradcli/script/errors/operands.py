"""Errors of what an operation is given: another dtype, another shape, an index that is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import BuiltinMethodType, MethodType
from typing import Any

from gradcli.pytorch.tables import pytorch_names
from gradcli.record.naming import is_tensor
from gradcli.script.errors import custom, edits
from gradcli.script.errors.failure import Answer, Failure, dtype_of, is_module, is_whole
from gradcli.script.errors.fixes import resized
from gradcli.script.errors.source import Change, Edit
from gradcli.script.errors.syntax import argument, called, elements, end, integer, owner_of, start
from gradcli.text.wrapping import in_words

_MADE = {"double": "float64", "long": "int64", "int": "int32", "byte": "uint8"}  # by the methods of these names
# Settings of functions that make, compute or differentiate tensors.
_SETTINGS = (
    *("requires_grad", "retain_graph", "create_graph", "allow_unused", "grad_outputs", "dtype", "device", "dim"),
    *("keepdim", "reduction", "training"),
)
_CATS = ("cat", "concat", "concatenate")
_SLICES = ("index_select", "index_add", "index_copy", "index_fill", "index_add_", "index_copy_", "index_fill_")


# What is no tensor, or not the one that is meant


def all_of(at: Failure) -> list[Change]:
    """Ask whether a comparison holds of all elements."""
    compared = at.failed_parts(ast.Compare)
    direct = [node for node in compared if any(_is_long(at.value(n)) for n in (node.left, *node.comparators))]
    long = direct or [node for node in compared if any(_is_long(at.value(n)) for n in ast.walk(node))]
    return at.text.edited(edits.behind(long[0], ".all()")) if long else []


def _is_long(x: Any) -> bool:
    return is_tensor(x) and x.numel() > 1


def elsewhere(at: Failure, module: str, name: str) -> Answer | None:
    """Return the answer about a name that PyTorch has in another module."""
    homes = [m for m, names in pytorch_names().items() if m.startswith("torch") and name in names]
    for node in [n for n in at.failed_parts(ast.Attribute) if n.attr == name and homes]:
        new = f"{homes[0]}.{name}"
        return at.answer(f"PyTorch has no {module}.{name}.", f"it is {new}", edits.instead(node, new))
    return None


def overcalled(at: Failure) -> Answer | None:
    """Return the answer about a value that a script calls: x.shape()."""
    for call in at.failed_calls():
        if is_tensor(at.value(owner_of(call))) and not callable(at.value(call.func)):
            new = f"[{at.text.of(call.args[0])}]" if call.args else ""
            reason = f"{at.text.of(call.func)} is a value, not a method."
            fix = f"read it, without {'a call' if new else '()'}"
            return at.answer(reason, fix, [(end(call.func), end(call), new)])
    return None


def uncalled(at: Failure) -> Answer | None:
    """Return the answer about a method that a script forgot to call: z = y.sum, or SGD(net.parameters)."""
    for node in at.failed_parts(ast.Name, ast.Attribute):
        method = at.value(node)
        if isinstance(method, MethodType | BuiltinMethodType) and (
            is_tensor(method.__self__) or is_module(method.__self__)
        ):
            function = next(iter(at.text.values(node)), node)
            code = at.text.of(function)
            reason = f"{at.text.of(node)} is the method itself: {code} without () does not call it."
            return Answer(reason, "call it", at.text.on(function.lineno).edited(edits.behind(function, "()")))
    return None


def of_a_tuple(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a tuple where a tensor is needed: what an LSTM returns."""
    for node in at.failed_parts(ast.Name):
        x = at.value(node)
        if isinstance(x, tuple) and x and is_tensor(x[0]):
            reason = f"{node.id} is a tuple of {len(x)}, not a tensor: "
            reason += "an LSTM, for one, returns its output and its state."
            return at.answer(reason, "use the element that is needed", edits.behind(node, "[0]"), "layers")
    return None


def of_parts(at: Failure) -> Answer | None:
    """Return the answer about a list, of tensors or of numbers, where a function takes one tensor."""
    for call in at.failed_calls(least=1):
        given = call.args[0]
        values = [*map(at.value, given.elts)] if isinstance(given, ast.List | ast.Tuple) else at.value(given)
        if not isinstance(values, list | tuple) or not values:
            continue
        what = f"{at.text.of(call.func)} takes one tensor, and {at.text.of(given)} is a {type(values).__name__}"
        if all(is_tensor(x) for x in values):
            new = edits.wrapped(given, "torch.stack(") if len({tuple(x.shape) for x in values}) == 1 else []
            fix = "stack the tensors" if new else "join the tensors, with torch.cat; or call it for each"
            return at.answer(f"{what} of {len(values)} tensors.", fix, new, "shapes")
        if all(isinstance(x, int | float) for x in values):
            return at.answer(f"{what} of numbers.", "make it a tensor", edits.wrapped(given, "torch.tensor("))
    return None


def misspelt(at: Failure, *facts: Any) -> Answer | None:
    """Return the answer about a setting that a function does not have, where one has a name like that."""
    for keyword in [k for call in at.failed_calls() for k in call.keywords if k.arg and k.arg not in _SETTINGS]:
        for near in get_close_matches(keyword.arg or "", _SETTINGS, n=1, cutoff=0.75):
            place = start(keyword)
            new = [(place, (place[0], place[1] + len((keyword.arg or "").encode())), near)]
            reason = f"{at.code(at.line)} has a setting {keyword.arg}, which PyTorch does not know."
            return at.answer(reason, f"its name is {near}", new)
    return None


def swapped(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a loss whose scores and classes are in the other order."""
    for call in at.failed_calls(least=2):
        first, scores = call.args[0], at.value(call.args[1])
        if is_whole(at.value(first)) and (not is_tensor(scores) or scores.is_floating_point()):
            reason = f"the first argument is the scores, and {at.text.of(first)} holds integers: it is the target."
            return Answer(reason, "pass the scores first, and then the target", topic="cross-entropy")
    return None


def single_state(at: Failure, *_: int) -> Answer | None:
    """Return the answer about an LSTM that is called with its output alone as the state: it has a memory, too."""
    for call in at.failed_calls(least=2):
        state = call.args[1]
        if type(at.value(call.func)).__name__ == "LSTM" and is_tensor(at.value(state)):
            h = at.text.of(state)
            reason = f"the state of an LSTM is a pair, the output h and the memory c, and {h} is one tensor."
            return at.answer(reason, "pass both", edits.instead(state, f"({h}, torch.zeros_like({h}))"), "layers")
    return None


def mismatch(at: Failure, *_: Any) -> Answer:
    """Return the answer about a gradient that is not what differences of the function give."""
    inputs = at.scope("gradcheck").get("inputs")
    if any(dtype_of(x) == "float32" for x in (inputs if isinstance(inputs, list | tuple) else [inputs])):
        reason = "gradcheck subtracts numbers that agree in most digits, and float32 has too few digits for that."
        return Answer(reason, "use float64: pass x.double()")
    if at.text.calls("gradgradcheck"):
        if (answer := custom.kept(at)) is not None:
            return answer
        reason = "the derivative of the gradient differs from finite differences: double backward goes through v and "
        reason += "saved_tensors, and treats anything else in ctx as a constant."
        return Answer(reason, "save inputs and outputs only, ctx.save_for_backward(x), and compute the rest from them")
    reason = "the gradient differs from finite differences: a backward is not the derivative of its forward"
    fix = "gradcli run --check shows each Function's backward beside the derivative"
    return Answer(f"{reason}, or the point is a corner.", fix)


# Dtypes and shapes


def dtypes(at: Failure, *_: str) -> Answer:
    """Return the answer about operands of two dtypes: the one that is not float32 is converted to it."""
    reason = "a product needs operands of one dtype, and PyTorch does not convert them."
    for node, dtype, changed in _not_float32(at):
        said = f"{at.text.of(node)} is {dtype}, and the rest is float32: {reason}"
        return at.answer(said, "convert it to float32", changed)
    return Answer(reason, "convert both to the same dtype: .float(), or .double()")


def _not_float32(at: Failure) -> Iterator[tuple[ast.expr, str, list[Edit]]]:
    """Yield the parts of the expression that have another dtype, with that dtype and the edits to float32."""
    conversions = [c for c in at.failed_calls(*_MADE) if owner_of(c) is not None]
    owners = [owner_of(call) for call in conversions]
    for node in [n for n in at.failed_parts(ast.Name, ast.Attribute) if n not in owners and is_tensor(at.value(n))]:
        dtype = dtype_of(at.value(node))
        if dtype in _MADE.values():
            yield node, dtype, edits.behind(node, ".float()")
    yield from ((call, _MADE[called(call)], edits.method(call, ".float()")) for call in conversions)
    for call in at.failed_calls("tensor", "from_numpy", "as_tensor", least=1):
        dtype = dtype_of(at.value(call.args[0]))
        if dtype in _MADE.values():
            yield call, dtype, edits.behind(call, ".float()")


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
            said += f"; counted from the last axis, {rule}; here they are {a} and {b} at axis {axis}."
            return at.answer(said, fix, edits.behind(node.right, ".unsqueeze(1)") if rows else [])
    return Answer(f"counted from the last axis, {rule}: here they are {a} and {b} at axis {axis}.", fix)


def matrices(at: Failure, rows: int, size: int, expected: int, columns: int) -> Answer:
    """Return the answer about matrices that do not fit: of a layer, or of a product."""
    layers = [c for c in at.failed_calls() if getattr(at.value(c.func), "in_features", None) == expected]
    changes = resized(at, ("Linear",), (expected, columns), (size, columns))
    if changes or layers:
        name = at.text.of(layers[-1].func) if layers else "this layer"
        reason = f"{name} takes {expected} inputs, and each of the {rows} samples has {size}."
        return Answer(reason, f"create the layer with {size} inputs", changes)
    reason = f"the rows of the left matrix have {size} elements, "
    reason += f"and the columns of the right one {expected}: these must be equal."
    transposed = [1] * (size == columns) + [0] * (rows == expected)
    for factors in _products(at) if transposed else ():
        return at.answer(reason, "transpose the matrix", edits.behind(factors[transposed[0]], ".T"))
    return Answer(reason, "use matrices of shapes n x k and k x m")


def _products(at: Failure) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the factors of the products of matrices at the line."""
    for node in ast.walk(at.text.statement):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                yield left, right
            case ast.Call(args=[*_, right]) if called(node) in ("matmul", "mm"):
                yield at.text.operand(node) or right, right


def joined(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about tensors of different sizes that are joined along an axis."""
    shapes = [at.quantity(x).shape for x in tensors]
    reason = f"the tensors have the shapes {_listed(shapes)}, and are joined along axis {axis}: "
    reason += "their other sizes must be equal."
    differ = [k for k in range(len(shapes[0])) if len({s[k] for s in shapes}) > 1]
    if len(differ) != 1:
        return Answer(reason, "cut, pad, reshape or transpose them to the same sizes")
    new: list[Edit] = []
    for call in at.failed_calls(*_CATS):
        dim = argument(call, 1, "dim", "axis")
        new = edits.instead(dim, str(differ[0])) if dim else edits.appended(call, f"dim={differ[0]}", at.text)
    return at.answer(reason, f"join them along axis {differ[0]}, where they differ", new)


def stacked(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about tensors of different sizes that are stacked along a new axis."""
    shapes = _listed([at.quantity(x).shape for x in tensors])
    reason = f"stack joins tensors of one shape along a new axis, and these have the shapes {shapes}."
    fix = "cut or reshape them to one shape; or pad sequences, with torch.nn.utils.rnn.pad_sequence"
    return Answer(reason, f"{fix}; torch.cat joins them end to end")


def ranks(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about a matrix and a vector that are joined."""
    shapes = _listed([at.quantity(x).shape for x in tensors])
    reason = f"the tensors have the shapes {shapes}: the number of axes must be equal."
    return Answer(reason, f"give the shorter ones an axis of size 1, with unsqueeze({axis})")


def _listed(shapes: Sequence[Any]) -> str:
    return in_words([*map(str, dict.fromkeys(shapes))])


# Indices and axes


def row(at: Failure, bad: Sequence[int], size: int) -> Answer:
    """Return the answer about rows of a table, as an embedding's, that are not there; `bad` are their indices."""
    index = max(bad) if max(bad) >= size else min(bad)
    if at.failed_calls(*_SLICES):
        reason = f"{at.code(at.line)} asks for slice {index}, and there are {size}, numbered 0 to {size - 1}."
        return Answer(reason, "use indices that are there; a negative one does not count from the end here")
    reason = f"{at.code(at.line)} looks up row {index}, and the table has {size} rows, numbered 0 to {size - 1}."
    if index < 0:
        return Answer(reason, "use indices from 0: a negative one does not count from the end here")
    changes = resized(at, ("Embedding",), (size,), (index + 1,))
    return Answer(reason, f"create a table of {index + 1} rows or more; or number the indices from 0", changes)


def element(at: Failure, index: int, axis: int, size: int) -> Answer:
    """Return the answer about an index that is not there."""
    node = next(iter(at.failed_parts(ast.Subscript)), None)
    name = "the tensor" if node is None else at.text.of(node.value)
    known = f", numbered 0 to {size - 1}, or -{size} to -1 from the end" if size else ""
    number = "1 element" if size == 1 else f"{size or 'no'} elements"
    reason = f"{name} has {number} along axis {axis}{known}: there is no element {index}."
    for part in elements(node.slice) if node is not None and size else ():
        if integer(part) == index:
            which, end_ = ("first", "0") if index < 0 else ("last", "-1")
            return at.answer(reason, f"the {which} along an axis is element {end_}", edits.instead(part, end_))
        if isinstance(part, ast.Name) and type(at.value(part)) is int and at.value(part) == index:
            return Answer(reason, f"count to the size of the axis, {name}.shape[{axis}]")
    return Answer(reason, "use an index that is there")


def axis(at: Failure, low: int, high: int, dim: int) -> Answer:
    """Return the answer about an axis that is not there."""
    known = f"the axes 0 to {high}, or -1 to {low} from the last" if high else "axis 0 alone, which is also -1"
    for call in at.failed_calls():
        operands = [n for n in (owner_of(call), *call.args) if n is not None and _has_rank(at.value(n), high + 1)]
        shapes = [f"{at.text.of(n)}, of shape {tuple(at.value(n).shape)}," for n in operands]
        reason = f"{next(iter(shapes), 'the tensor')} has {known}: there is no axis {dim}."
        if called(call) in ("unsqueeze", "stack"):
            reason = f"the new axis can be one of 0 to {high}, or -1 to {low} from the last, and not {dim}."
        vectors = elements(call.args[0]) if call.args else []
        if called(call) in _CATS and vectors and all(_has_rank(at.value(p), 1) for p in vectors):
            names = in_words([at.text.of(p) for p in vectors])
            said = f"{names} {'are vectors' if len(vectors) > 1 else 'is a vector'}, with axis 0 alone."
            fix = "stack vectors as the columns of a matrix"
            return at.answer(said, fix, edits.instead(call.func, "torch.stack"))
        if called(call) in ("transpose", "swapaxes", "swapdims") and not high:
            return Answer(reason, "make it a column, x.unsqueeze(1): a vector has no transpose")
        given = (*(k.value for k in call.keywords if k.arg in ("dim", "axis")), *call.args)
        new = next((edits.instead(node, "-1") for node in given if integer(node) == dim), [])
        return at.answer(reason, "use an axis that is there: -1 is the last", new)
    return Answer(f"the tensor has {known}: there is no axis {dim}.", "use an axis that is there")


def of_a_shape(at: Failure, *_: str) -> Answer | None:
    """Return the answer about a size of an axis that is not there: x.shape[1] of a vector."""
    for node in at.failed_parts(ast.Subscript):
        owner = node.value
        if isinstance(owner, ast.Attribute) and owner.attr == "shape" and is_tensor(at.value(owner.value)):
            shape = tuple(at.value(owner))
            sizes = f"{len(shape)} size{'s' * (len(shape) != 1)}"
            reason = f"{at.text.of(owner.value)} has the shape {shape}, which has {sizes}."
            return Answer(reason, "use an axis that is there: -1 is the last", topic="shapes")
    return None


def _has_rank(x: Any, rank: int) -> bool:
    return is_tensor(x) and max(x.dim(), 1) == rank
