"""The facts of an error of PyTorch's own: from its message, the live tensors at its line, and the record."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from gradcli.process.tracebacks import text_of
from gradcli.pytorch.messages import known_message
from gradcli.record.naming import Names, is_readable, is_tensor
from gradcli.record.numbers import Numbers
from gradcli.record.record import Backward, Changed, Quantity
from gradcli.script.errors.failure import Failure, dtype_of, is_module
from gradcli.script.errors.history import History
from gradcli.script.errors.syntax import called, elements, receiver_of, requires_target
from gradcli.script.known import Known


def known_under_pytorch(error: BaseException | None, names: Names) -> Known:
    """Return what is known of an error of PyTorch's without a record: what its message has.

    The live tensors and the text of the script are what there is beside it.
    """
    key, values = known_message(text_of(error)) if error is not None else ("", ())
    return Known(key=key, facts=values, is_live=True)


def facts(at: Failure) -> Sequence[Any] | None:
    """Return the facts of an error of PyTorch's as the functions of its answer take them; None where they are gone."""
    key, values = at.known.key, at.known.facts
    roots = [*_roots(at)]
    match key:
        case "no gradient to start from":
            is_cut = any(at.known.cut_of(y) is not None for y in roots)
            return next(((y,) for y in roots if not y.requires), None) if is_cut or _is_explained(at) else None
        case "no v for several numbers":
            return next(((y,) for y in roots if y.shape), None)
        case "input without a gradient":
            return next(((x,) for x in _inputs(at) if not x.requires), None)
        case "unused input":
            x = next(islice(_inputs(at), values[0], None), None)
            return None if x is None or not roots else (_known(x), [*map(_known, roots)], _base(at, x))
        case "shape of v":
            return (roots[values[0]], _of_shape(values[1])) if len(roots) > values[0] else None
        case "freed graph":
            return _freed(at, roots)
        case "changed in place":
            return _changed(at, roots, *values)
        case "sizes of a cat" | "sizes of a stack" | "ranks of a cat":
            return _joined(at, values)
        case "slice outside":
            return _rows(at)
        case "class outside":
            return _given(at, "one_hot")[:2] or None
        case "heads of attention":
            scope = at.scope("__init__")
            return (scope["embed_dim"], scope["num_heads"]) if {"embed_dim", "num_heads"} <= scope.keys() else None
        case "nan in a backward":
            return _not_finite(at, values[0])
        case "no derivative" | "no derivative of its name":  # PyTorch's own name of what it calls: _unique2
            return [re.sub(r"^_(\w+?)\d*$", r"\1", values[0])]
        case "gradient of no tensor" | "count of a function's gradients" | "rank of a convolution's input":
            return values if len(values) > 1 else None
    if re.match("(one of several )?view.*changed in place", key) and "leaf" not in key:
        return _view(at)
    is_shape = [isinstance(v, str) and v.startswith("torch.Size(") for v in values]
    return [str(_of_shape(v).shape) if s else v for v, s in zip(values, is_shape, strict=True)]


def _is_explained(at: Failure) -> bool:
    """Return whether it is known why nothing was recorded on the way to the line: a cut, or no gradient is required."""
    history = History(at.text, at.known)
    if history.gradient_recorded() or history.is_of_constant_gradient(at):
        return True
    late = [owner for s in at.text.statements() if (owner := requires_target(s)) is not None]
    names = [n for e in history.way for n in ast.walk(e)]
    if history.cuts() or late:
        return True
    return not at.known.is_partial and not any(_requires(at, n) for n in names)


def _requires(at: Failure, node: ast.AST) -> bool:
    """Return whether a name is that of a tensor which has required a gradient, or of a module of which one does."""
    x: Any = at.value(node) if isinstance(node, ast.Name | ast.Attribute) else None
    parts = x if isinstance(x, list | tuple) else [x]
    is_leading = any(is_tensor(e) and e.requires_grad for e in parts)
    return is_leading or (hasattr(x, "_parameters") and is_module(x) and any(p.requires_grad for p in x.parameters()))


def _given(at: Failure, *names: str) -> Sequence[Any]:
    """Return the arguments of a call of PyTorch's that failed: as the mode has them, or else the text."""
    scope = at.scope("__torch_function__")
    if getattr(scope.get("func"), "__name__", "") in names:
        return [*scope["args"], *(scope["kwargs"] or {}).values()]
    calls = at.failed_calls(*names, least=1)
    return [at.value(a) for a in (*calls[0].args, *(k.value for k in calls[0].keywords))] if calls else ()


def _not_finite(at: Failure, name: str) -> Sequence[Any] | None:
    """Return the operation whose backward, of a name, returned nan in the last call."""
    sent = {o for b in at.known.record.backwards[-1:] for (o, _), g in b.sent.items() if g.summary.nan}
    return next(((o,) for o in sorted(sent) if at.operation(o).grad_fn == name), None)


def _quantity(at: Failure, node: Any) -> Quantity | None:
    """Return the quantity of a tensor that an expression looks up, or one that stands for it."""
    x = at.value(node)
    if not is_tensor(x) or (known := at.known.of(x)) is not None:
        return known if is_tensor(x) else None
    shape, dtype = tuple(x.shape), dtype_of(x)
    numbers = Numbers(None, shape, dtype)
    return Quantity(-1, shape, dtype, "data", numbers, requires=x.requires_grad, names=((0, at.text.of(node)),))


def _tensors(at: Failure, nodes: Sequence[Any]) -> Iterator[Quantity]:
    yield from filter(None, (_quantity(at, node) for node in nodes))


def _roots(at: Failure) -> Iterator[Quantity]:
    """Yield the tensors that the backward at the line goes back from: as recorded, or as the text names them."""
    if (failed := _failed(at)) is not None:
        yield from (at.known.record.quantities[q] for q in failed.roots)
        return
    for call in at.text.calls("backward", "grad"):
        receiver = receiver_of(call) if called(call) == "backward" else None
        yield from _tensors(at, [receiver] if receiver is not None else elements(call.args[0]) if call.args else [])


def _failed(at: Failure) -> Backward | None:
    """Return the backward that has failed at the line, if its roots are recorded."""
    last = at.known.record.backwards[-1:]
    lines = [each.line for each in (at, *at.callers)]  # a custom function may fail within the call
    return last[0] if last and last[0].roots and last[0].site.line in lines else None


def _known(x: Quantity) -> Any:
    """Return the id of a quantity of the record, and one that stands for a tensor as it is."""
    return x if x.id < 0 else x.id


def _base(at: Failure, x: Quantity) -> int | None:
    """Return the tensor of which another one is a view: that which it came from in the same memory."""
    q, known = x.id, at.known
    while (o := known.producers.get(q)) is not None and isinstance(o.operands[0], int):
        if known.record.quantities[o.operands[0]].storage != x.storage:
            break
        q = o.operands[0]
    return None if q == x.id else q


def _inputs(at: Failure) -> Iterator[Quantity]:
    """Yield the tensors whose gradients are asked for at the line: as recorded, or as the text names them."""
    if (failed := _failed(at)) is not None and failed.inputs is not None:
        yield from (at.known.record.quantities[q] for q in failed.inputs)
        return
    for call in [c for c in at.text.calls("grad") if len(c.args) > 1]:
        yield from _tensors(at, elements(call.args[1]))


def _of_shape(written: Any) -> Quantity:
    """Return what stands for a tensor of a shape, as a message has it: torch.Size([2, 3])."""
    shape = tuple(map(int, re.findall(r"\d+", str(written))))
    return Quantity(-1, shape, "float32", "data", Numbers(None, shape, "float32"))


def _freed(at: Failure, roots: Sequence[Quantity]) -> Sequence[Any] | None:
    """Return the operation that a backward has freed, and where that ran, as far as they are recorded."""
    operations, _ = at.known.behind([y.id for y in roots if y.id >= 0])
    for o in reversed(operations):
        for b in reversed(at.known.record.backwards):
            if b.freed and any((o.id, k) in b.received for k in range(len(o.results))):
                return o.id, b.site
    return None


def _changed(at: Failure, roots: Sequence[Quantity], *values: Any) -> Sequence[Any] | None:
    """Return the operation whose operand, or result, was changed in place, its name, and the changes."""
    behind = {o.id for o in at.known.behind([y.id for y in roots if y.id >= 0])[0]}
    events = [e for e in at.known.record.events if isinstance(e, Changed)]
    found = [(o, i, e) for e in events for o, i in e.operations if not behind or o in behind]
    if not found:
        return None
    number, i, event = max(found, key=lambda item: item[0])
    operation = at.operation(number)
    read = (*operation.operands, *operation.results)[i]
    name = at.called_name(read, "") if isinstance(read, int) else ""
    sites = [e.site for e in events if e.storage == event.storage]
    how = "step" if ".step(" in event.site.code else ""
    return number, name, i >= len(operation.operands), tuple(values[3:5]), event.site, how, sites


def _view(at: Failure) -> Sequence[Any] | None:
    """Return a view, how it arose, whether a hook made it, and, if it was changed before, where and by what."""
    if "is being modified" in at.message:
        return _of_shape(""), "", "", "BackwardHookFunction" in at.message, None, ""
    makers = {"several": "one of several", "function": "view of a function", "inference": "inference_mode"}
    maker = next((k for k, text in makers.items() if text in f"{at.known.key} {at.message}"), "no_grad")
    operation = re.search(r" of (\w+?)(?:Backward\d*)? is a view", at.message)
    for node in at.failed_parts(ast.Name, ast.Attribute, ast.Subscript):
        q = None if is_readable(x := at.value(node)) else at.known.of(x)
        sites = [e.site for e in at.known.record.events if isinstance(e, Changed) and q and e.storage == q.storage]
        if q is not None and sites:
            name, how = operation[1] if operation else "", "step" if ".step(" in sites[-1].code else ""
            return q.id, maker, name, False, sites[-1], how
    return None


def _joined(at: Failure, values: Sequence[Any]) -> Sequence[Any] | None:
    """Return the axis along which tensors are joined, and these."""
    tensors, *rest = _given(at, "cat", "concat", "concatenate", "hstack", "vstack", "stack") or (None,)
    parts = tensors if isinstance(tensors, list | tuple) else ()
    if not parts or not all(map(is_tensor, parts)):
        return None
    rank = parts[0].dim() + (at.known.key == "sizes of a stack")
    dim = values[0] if at.known.key == "sizes of a cat" else next((v for v in rest if type(v) is int), 0)
    return dim % max(rank, 1), [_of_shape(x.shape) for x in parts]


def _rows(at: Failure) -> Sequence[Any] | None:
    """Return the rows of a table that are not there, and how many there are: of an embedding, or of an axis."""
    scope = at.scope("embedding")
    x: Any = scope.get("input")
    table: Any = scope.get("weight")
    axis = 0
    if x is None and (given := _given(at, "index_select")):
        table, axis, x = (*given, None)[:3]
    if not is_tensor(x) or not is_tensor(table):
        return None
    size = table.shape[axis]
    return sorted({i for i in x.flatten().tolist() if not 0 <= i < size}), size
