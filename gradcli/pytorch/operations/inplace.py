"""Operations in place: the numbers change where they are, and the history is what it would be out of place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.graph.shapes import bare
from gradcli.pytorch.calls import VocabularyRow, checked_number, set_grad_fn_name
from gradcli.pytorch.chains import shows_base
from gradcli.pytorch.dispatch import Out
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, typename, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import Moment, moment
from gradcli.pytorch.names import InPlace, function
from gradcli.pytorch.operations import operators
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.indexing import (
    along_first,
    assign_flat,
    assignment,
    check_repeated,
    flag,
    flat_index_of_each,
    getitem,
    part,
    read,
)
from gradcli.pytorch.operations.storage import check_overlap
from gradcli.pytorch.operations.views import rebase, shape_of, untracked_change_error
from gradcli.pytorch.recipes import QUIET, common_shape
from gradcli.pytorch.record import Recorder, moment_of, script_line
from gradcli.pytorch.running import apply, record
from gradcli.pytorch.tensor import Tensor, new, tangent_of


def check(x: Tensor, recorded: bool = False) -> None:
    """Check that autograd allows a change in place; `recorded` is whether an operand of it requires a gradient."""
    if x._inference:
        raise_if(not Mode.inference, "inference tensor changed in place")
    _check_tangent(x)
    base = x._base
    if not Mode.grad or not (x.requires_grad or recorded):
        return
    if base is None:
        raise_if(x._requires and x._fn is None, "leaf changed in place")
    elif x._origin is not None:
        raise untracked_change_error(x, x._origin, since=False)
    else:  # the leaf is the base, or a view such as that of arange(4.).view(2, 2).requires_grad_()
        is_leaf_before = base._fn is None if base.requires_grad else x.requires_grad and not recorded
        raise_if(is_leaf_before, "view of a leaf changed in place")


def _check_tangent(x: Any) -> None:
    if Mode.dual is not None:
        missing_if(tangent_of(x) is not None, "a change in place in torch.autograd.forward_ad")


def _check_map(x: Tensor, value: Tensor, name: str) -> None:
    """Raise PyTorch's error for an element of a `vmap` that is to be written into a tensor that is none."""
    if value._map >= x._map:
        return
    if name in ("add_", "__iadd__"):
        raise torch_error("shape of what is written", list(x.shape), [Mode.width, *value.shape])
    raise torch_error("element of a map written into a tensor", name)


def change(x: Tensor, compute: Callable[[Tensor], Tensor], name: str = "") -> Tensor:
    """Change a tensor to what is computed from it, and let its history, and its base's, be that of the result."""
    check(x)
    history = x.requires_grad
    result = compute(x)
    _check_tangent(result)
    if Mode.maps:
        _check_map(x, result, name)
    if result.requires_grad:
        check(x, True)
    value = _fitting(result, x, name)
    step = value._fn
    if step is not None:
        for each in {result._fn, step}:
            _keep_old(each, x)
    recorded = Mode.grad and (step is not None or history)
    if step is not None and x._fn is not None and not step.is_custom and shows_base(x._fn.called):
        step.called = "AsStridedBackward0"  # as PyTorch shows a view whose base was changed
    before = moment(x._base) if Recorder.explains and x._base is not None else None
    _write(x, value._a, name, recorded)
    if step is not None and any(c[0] is value._memory for c in step.checks):  # its result is what was changed
        step.kept[-1] = None if step.kept[-1] is None else x._a
        step.checks = [c for c in step.checks if c[0] is not value._memory]
        step.checks.append((x._memory, x._memory.version, x._a, None, len(step.edges)))
    if recorded and x._base is None:
        rebase(x, step)
        x._requires = x._requires and step is None
    elif recorded:
        through_base(x, value, before)
    return x


def _fitting(result: Tensor, x: Tensor, name: str) -> Tensor:
    """Return a result in the dtype of the tensor that takes it, which has its shape."""
    fitting = result
    if fitting._a.dtype != x._a.dtype:
        expected = x.dtype.in_c if name.startswith("clamp") else x.dtype.word
        fits = x._a.dtype != bool and (fitting._a.dtype.kind != "f" or x._a.dtype.kind == "f")
        raise_if(not fits, "dtype of what is written", fitting.dtype.word, expected)
        fitting = to(result, x.dtype)
        if result._fn is not None:
            set_grad_fn_name(fitting, result._fn.name())
    if fitting._a.shape != x._a.shape:
        raise torch_error("shape of what is written", list(x.shape), list(fitting.shape))
    return fitting


def _keep_old(step: Any, x: Tensor) -> None:
    """Make a step keep a copy of a tensor's values, so that a change of the tensor does not matter to it."""
    step.checks = [c for c in step.checks if c[0] is not x._memory or c[3] is not x]
    step.kept = [a.copy() if a is not None and np.may_share_memory(a, x._a) else a for a in step.kept]


def _write(x: Tensor, numbers: Any, name: str, recorded: bool) -> None:
    """Overwrite the numbers of a tensor in its memory, and record the change."""
    if not x._a.flags.writeable:
        _let_write(x, np.broadcast_to(numbers, x._a.shape), name)
    x._memory.keep()
    if numbers.dtype == x._a.dtype:
        x._a[...] = numbers
    else:
        QUIET.run(np.copyto, x._a, numbers, "unsafe")
    _note_change(x, name)


def _note_change(x: Tensor, name: str) -> None:
    """Count and record a change of a tensor's memory."""
    x._memory.version += 1
    if Recorder.explains:
        x._memory.storage.changed = line, _ = script_line(), name
        x._memory.lines = {**x._memory.lines, line: x._memory.version}


# What PyTorch lets change repeated memory, and what it advises against; what has no name is an assignment.
_FILLING = {"fill_": "", "zero_": "", "": "tensor[indices] = tensor"}
_FILLING["masked_fill_"] = "tensor[mask] = scalar"


def _let_write(x: Tensor, numbers: Any, name: str) -> None:
    """Make a view of repeated memory writable, as PyTorch does where each element is written once, or equal values."""
    repeats = x._a.size and any(not step and n > 1 for step, n in zip(x._a.strides, x._a.shape, strict=True))
    once = tuple(slice(None if step else 1) for step in x._a.strides)
    wrong = name not in _FILLING or (numbers != numbers[once]).any()
    raise_if(repeats and wrong, "repeated memory changed in place")
    if repeats and (what := _FILLING[name]):
        warn("repeated memory filled in place", name or "index_put_", what)
    memory = x._a.__array_interface__
    memory["data"] = memory["data"][0], False
    x._a = np.asarray(type("Memory", (), {"base": x._a, "__array_interface__": memory})())


def through_base(x: Tensor, value: Tensor, before: Moment | None = None) -> None:
    """Record a change of a view in the history of its base; `before` are the base's numbers for explanations."""
    base = x._base
    assert base is not None
    old = new(base._a)  # with the history that it had, for the step that changes it; its numbers are not read
    old._fn, old._output, old._requires = base._fn, base._output, base._requires
    recipe, positions = assignment(old, value, _positions(x, base))
    changed = new(base._a.copy() if Recorder.explains else base._a)
    changed._memory = changed._memory if Recorder.explains else base._memory
    active = tuple(i for i, y in enumerate((old, value)) if y.requires_grad)
    record((changed,), "torch::autograd::CopySlices", recipe, (old, value), active, positions)
    if Recorder.explains and changed._fn is not None:
        changed._fn.read = (before or moment_of(changed._fn.edges[0]) or moment(old), *changed._fn.read[1:])
    rebase(base, changed._fn)
    base._requires = False


def _positions(x: Tensor, base: Tensor) -> np.ndarray[Any, Any]:
    """Return for each element of a view its number among all elements of the base, read as one line."""
    offsets = _offsets(x._a) + (x.data_ptr() - base.data_ptr()) // base._a.itemsize
    if base._a.flags.c_contiguous:
        return offsets
    of_base = _offsets(base._a).reshape(-1)
    order = np.argsort(of_base)
    return order[np.searchsorted(of_base, offsets, sorter=order)]


def _offsets(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return how many elements of memory each element of an array, without the axis of points, is from the first."""
    result = np.zeros((), np.int64)
    for n, step in zip(a.shape[:-1], a.strides[:-1], strict=True):
        result = np.asarray(result[..., None] + np.arange(n) * (step // a.itemsize))
    return result


# All numbers replaced


def replace_elements(x: Tensor, value: Any, how: str, name: str) -> Tensor:
    """Replace all numbers of a tensor, or fill it with one; its old numbers get no gradient from the new ones."""
    check(x)
    _check_tangent(value)
    other = value if isinstance(value, Tensor) else new(checked_number(value, x.dtype))
    shape, dtype = tuple(x.shape), x.dtype.name
    whole = common_shape((shape, other.shape)) if other.dim() else shape
    raise_if(whole != shape, "shape of what is written", list(shape), list(whole))
    check_overlap(x, other)
    _check_map(x, other, how)
    if not Mode.grad or not (x.requires_grad or other.requires_grad):
        _write(x, other._a, how, False)
        return x

    def build(new: Node, *old: Node) -> Node:
        result = construct.broadcast(cast(new, dtype), shape)
        return elementwise("where", const(0, (), "bool"), old[0], result) if old else Node("identity", (result,), shape)

    # Of a part, the whole passes nothing on for what is replaced.
    alone = not x.requires_grad or (x._base is not None and other.requires_grad)
    operands = (other,) if alone else (other, x)
    return change(x, lambda _: apply(how, build, operands, (shape, dtype), name), how)


@function("copy_")
def copy(self: Tensor, other: Any, non_blocking: bool) -> Tensor:
    return replace_elements(self, other, "copy_", "torch::autograd::CopyBackwards")


@function("fill_")
def fill(input: Tensor, value: Any) -> Tensor:
    """Set all numbers of a tensor."""
    rank = value.dim() if isinstance(value, Tensor) else 0
    raise_if(rank, "fill with an array", rank)
    return replace_elements(input, value, "fill_", f"FillBackward{3 if isinstance(value, Tensor) else 2}")


function("zero_")(lambda self: replace_elements(self, 0, "zero_", "ZeroBackward0"))


# Elements and parts replaced


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Change elements in place."""
    is_number = isinstance(value, Tensor | int | float | np.integer | np.bool_)
    raise_if(not is_number, "kind of what is assigned", typename(value), self.dtype.tensor)
    if key is False:
        return
    if type(key) is int and (element := along_first(self, key)) is not None:
        _set_part(element, value)
        return
    if (chosen := flag(key)) is not None:
        self, key = getitem(self, None), np.zeros(int(chosen), np.int64)
    if isinstance(key, Tensor) and key._a.dtype == np.uint8 and key.dim() and not isinstance(value, Tensor):
        raise torch_error("mask that is none", "unsigned char")
    for k in key if isinstance(key, tuple) else (key,):
        if isinstance(k, Tensor):
            _check_map(self, k, "")
    index, name = read(self, key)
    if not name:
        _set_indexed(self, index, value)
    elif index != tuple(map(range, self.shape[: len(index)])):
        _set_part(part(self, index, name), value)
    else:
        _set_part(self, value)
        if not isinstance(value, Tensor):
            set_grad_fn_name(self, "FillBackward3")


def _set_part(part: Tensor, value: Any) -> None:
    """Change all elements of a view."""
    if not isinstance(value, Tensor):
        fill(part, value)
        return
    sizes = bare(tuple(value.shape))
    check_repeated(value, sizes, part.shape)
    copy(part, value.reshape(sizes) if value.dim() > part.dim() else value, False)  # type: ignore[attr-defined]


def _set_indexed(x: Tensor, key: tuple[Any, ...], value: Any) -> None:
    """Change the elements at indices."""
    check(x)
    # First what is no index array, as PyTorch does: beside index arrays, NumPy broadcasts an integer with them.
    plain = [
        slice(None) if isinstance(k, np.ndarray) else slice(k.start, k.stop, k.step) if isinstance(k, range) else k
        for k in key
    ]
    placed = [k if isinstance(k, np.ndarray) else slice(None) for k in key if not isinstance(k, int)]
    part = x._a[tuple(plain)]
    shape = part[tuple(placed)].shape[:-1]
    tensor = value if isinstance(value, Tensor) else new(checked_number(value, x.dtype))
    raise_if(tensor.dtype is not x.dtype, "dtype of the source of index_put", x.dtype.word, tensor.dtype.word)
    while tensor.dim() > len(shape) and tensor.shape[0] == 1:
        tensor = tensor[0]
    fits = all(m in (1, n) for m, n in zip(tensor.shape[::-1], shape[::-1], strict=False))
    fits = fits and tensor.dim() <= len(shape)
    raise_if(not fits, "shape of what is assigned", list(tensor.shape), list(shape))
    check_overlap(x, tensor)
    has_history = Mode.grad and (x.requires_grad or tensor.requires_grad)
    if x._a.flags.writeable and Mode.dual is None and not Mode.maps and not has_history:
        x._memory.keep()
        part[tuple(placed)] = tensor._a
        _note_change(x, "")
        return
    numbers = flat_index_of_each(x)[tuple(plain)][tuple(placed)]
    change(x, lambda old: assign_flat(old, tensor, numbers, "IndexPutBackward0"))


Tensor.__setitem__ = setitem
Tensor.__delitem__ = lambda self, key: raise_if(True, "deleted element")  # type: ignore[attr-defined]


# What a method without the underscore does out of place


def in_place(name: str, compute: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return what computes in place what another function does out of place."""

    def changing(compute: Callable[..., Any]) -> Callable[..., Tensor]:
        @wraps(compute, ("__doc__",))
        def call(x: Tensor, *values: Any, **settings: Any) -> Tensor:
            if name in _VIEWS:
                return _become(x, name, lambda: compute(x, *values))

            def run(old: Tensor) -> Tensor:
                check_overlap(old, *values, *settings.values())
                return set_in_place_name(compute(old, *values, **settings))

            return change(x, run, name)

        return call

    call = changing(compute)
    if isinstance(compute, VocabularyRow):
        call.runner = lambda names: changing(compute.runner(names))  # type: ignore[attr-defined]
    return operators.operator(call) if name.startswith("__") else call


for _name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "and", "or", "xor"):
    setattr(Tensor, f"__i{_name}__", in_place(f"__i{_name}__", operators.OPERATORS[_name]))


def set_in_place_name(result: Tensor) -> Tensor:
    """Return a result with the name of the in-place `grad_fn`: AcoshBackward1, where that of `acosh` ends with 0."""
    if result._fn is None:
        return result
    head, _, digit = result._fn.name().partition("Backward")
    added = fact("in_place", head)  # to the digit
    return set_grad_fn_name(result, f"{head}Backward{int(digit) + int(added)}") if added else result


_VIEWS = frozenset(("unsqueeze_", "squeeze_", "t_", "transpose_", "swapaxes_", "swapdims_"))


def _become(x: Tensor, name: str, compute: Callable[[], Tensor]) -> Tensor:
    """Replace a tensor by a view of itself, with a step of its own."""
    check(x)
    raise_if(name == "t_" and x.dim() > 2, "rank of a t", x.dim(), name)
    view = compute()
    x._memory.version += 1
    x._a, x._seen = view._a, x._memory.version
    if x._base is not None:
        x._how = view._how
    if view._fn is not None:
        x._fn, x._requires = set_in_place_name(view)._fn, False
    return x


@function("apply_")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    raise_if(self.requires_grad, "apply_ on what requires grad")
    _write(self, np.reshape([callable(x) for x in self._a.reshape(-1).tolist()], self._a.shape), "apply_", False)
    return self


@function("resize_")
def resize_(self: Tensor, size: Any) -> Tensor:
    shape = shape_of(size)
    raise_if(self.requires_grad, "resized leaf")
    missing_if(not self.is_contiguous() or math.prod(shape) > self.numel(), "resize_(…) to more elements")
    self._a = self._a.reshape(-1)[: math.prod(shape)].reshape(*shape, 1)
    return self


def into(out: Tensor, name: str, compute: Callable[[], Tensor], args: Sequence[Any]) -> Tensor:
    """Write a result into the tensor given as `out`."""
    requires = any(isinstance(x, Tensor) and x.requires_grad for x in (*args, out))
    raise_if(Mode.grad and requires, "out requires grad", name)
    result: Any = compute()
    is_one = isinstance(result, Tensor) and isinstance(out, Tensor)
    missing_if(not is_one, f"{name}(out=…) of several tensors")
    check(out)
    check_overlap(out, *args)
    if out._a.shape != result._a.shape:
        if out._a.size:
            warn("result resized", list(out.shape), list(result.shape))
        out._a = np.empty(result._a.shape, out._a.dtype)
    _write(out, _fitting(result, out, name)._a, name, False)
    return out


InPlace.method, Out.write = in_place, into
