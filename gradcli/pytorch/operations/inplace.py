"""Operations in place: the numbers change where they are, and the history is what it would be out of place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.index_arrays import IndexArray
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.graph.shapes import bare
from gradcli.pytorch.calls import called, held, in_order
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import facts_of, missing_if, raise_if, torch_error, typename, warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.names import InPlace, method, methods
from gradcli.pytorch.operations import operators
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.indexing import assigned, check_repeated, flag, getitem, numbers_of, part, read
from gradcli.pytorch.operations.storage import check_overlap
from gradcli.pytorch.operations.views import rebase, shape_of, unfollowed
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import Recorder, apply, script_line
from gradcli.pytorch.signatures import OF_ARGUMENTS, find
from gradcli.pytorch.tensor import Tensor, new, tangent_of


def check(x: Tensor, recorded: bool = False) -> None:
    """Check that autograd allows a change in place; `recorded` is whether an operand of it requires a gradient."""
    raise_if(x._inference and not Mode.inference, "inference tensor changed in place")
    _check_tangent(x)
    base = x._base
    if not Mode.grad or not (x.requires_grad or recorded):
        return
    if base is None:
        raise_if(x._requires and x._fn is None, "leaf changed in place")
    elif x._origin is not None:
        raise unfollowed(x, x._origin, since=False)
    else:
        raise_if(base._fn is None and base.requires_grad, "view of a leaf changed in place")


def _check_tangent(x: Any) -> None:
    missing_if(tangent_of(x) is not None, "a change in place in torch.autograd.forward_ad")


def change(x: Tensor, compute: Callable[[Tensor], Tensor], name: str = "") -> Tensor:
    """Change a tensor to what is computed from it, and let its history, and its base's, be that of the result."""
    check(x)
    history = x.requires_grad
    result = compute(x)
    _check_tangent(result)
    check(x, result.requires_grad)
    value = _fitting(result, x, name)
    step = value._fn
    for each in {result._fn, step} - {None}:
        _keep_old(each, x)
    recorded = Mode.grad and (step is not None or history)
    _write(x, value._a, name, recorded)
    if step is not None and any(c[0] is value._memory for c in step.checks):  # its result is what was changed
        step.kept[-1] = None if step.kept[-1] is None else x._a
        step.checks = [c for c in step.checks if c[0] is not value._memory]
        step.checks.append((x._memory, x._memory.version, x._a, None, len(step.edges)))
    if recorded and x._base is None:
        rebase(x, step)
        x._requires = x._requires and step is None
    elif recorded:
        through_base(x, value)
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
            called(fitting, result._fn.name())
    raise_if(fitting._a.shape != x._a.shape, "shape of what is written", list(x.shape), list(fitting.shape))
    return fitting


def _keep_old(step: Any, x: Tensor) -> None:
    """Make a step keep a copy of a tensor's values, so that a change of the tensor does not matter to it."""
    step.checks = [c for c in step.checks if c[0] is not x._memory or c[3] is not x]
    step.kept = [a.copy() if a is not None and np.may_share_memory(a, x._a) else a for a in step.kept]


def _write(x: Tensor, numbers: Any, name: str, recorded: bool) -> None:
    """Overwrite the numbers of a tensor in its memory, and record the change."""
    if not x._a.flags.writeable:
        _let_write(x, np.broadcast_to(numbers, x._a.shape), name)
    with np.errstate(all="ignore"):
        x._a[...] = numbers
    x._memory.version += 1
    if Recorder.explains:
        x._memory.changed = line, _ = script_line(), name
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


def through_base(x: Tensor, value: Tensor) -> None:
    """Record a change of a view in the history of its base."""
    base = x._base
    assert base is not None
    numbers = numbers_of(base)[..., None]
    for recipe in x._how:
        (numbers,) = recipe.program([numbers])
    old = new(base._a)  # with the history that it had, for the step that changes it; its numbers are not read
    old._fn, old._requires = base._fn, base._requires
    rebase(base, assigned(old, value, numbers[..., 0], "torch::autograd::CopySlices")._fn)
    base._requires = False


# All numbers replaced


def replaced(x: Tensor, value: Any, how: str, name: str) -> Tensor:
    """Replace all numbers of a tensor, or fill it with one; its old numbers get no gradient from the new ones."""
    check(x)
    _check_tangent(value)
    other = value if isinstance(value, Tensor) else new(held(value, x.dtype))
    shape, dtype = tuple(x.shape), x.dtype.name
    whole = common_shape((shape, other.shape)) if other.dim() else shape
    raise_if(whole != shape, "shape of what is written", list(shape), list(whole))
    check_overlap(x, other)
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


@method("copy_")
def copy(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    return replaced(self, src, "copy_", "torch::autograd::CopyBackwards")


@method("fill_")
def fill(input: Tensor, value: Any) -> Tensor:
    """Set all numbers of a tensor."""
    rank = value.dim() if isinstance(value, Tensor) else 0
    raise_if(rank, "fill with an array", rank)
    return replaced(input, value, "fill_", f"FillBackward{3 if isinstance(value, Tensor) else 2}")


method("zero_")(lambda self: replaced(self, 0, "zero_", "ZeroBackward0"))


# Elements and parts replaced


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Change elements in place."""
    is_number = isinstance(value, Tensor | int | float | np.integer | np.bool_)
    raise_if(not is_number, "kind of what is assigned", typename(value), self.dtype.tensor)
    if key is False:
        return
    if (chosen := flag(key)) is not None:
        self, key = getitem(self, None), np.zeros(int(chosen), np.int64)
    if isinstance(key, Tensor) and key._a.dtype == np.uint8 and key.dim() and not isinstance(value, Tensor):
        raise torch_error("mask that is no mask", "unsigned char")
    index, name = read(self, key)
    if not name:
        _set_indexed(self, index, value)
    elif index != tuple(map(range, self.shape[: len(index)])):
        _set_part(part(self, index, name), value)
    else:
        _set_part(self, value)
        if not isinstance(value, Tensor):
            called(self, "FillBackward3")


def _set_part(part: Tensor, value: Any) -> None:
    """Change all elements of a view."""
    if not isinstance(value, Tensor):
        fill(part, value)
        return
    sizes = bare(tuple(value.shape))
    check_repeated(value, sizes, part.shape)
    copy(part, value.reshape(sizes) if value.dim() > part.dim() else value)  # type: ignore[attr-defined]


def _set_indexed(x: Tensor, key: tuple[Any, ...], value: Any) -> None:
    """Change the elements at indices."""
    check(x)
    # First what is no index array, as PyTorch does: beside index arrays, NumPy broadcasts an integer with them.
    plain = [
        slice(None) if isinstance(k, IndexArray) else slice(k.start, k.stop, k.step) if isinstance(k, range) else k
        for k in key
    ]
    placed = [k.numbers if isinstance(k, IndexArray) else slice(None) for k in key if not isinstance(k, int)]
    numbers = numbers_of(x)[tuple(plain)][tuple(placed)]
    tensor = value if isinstance(value, Tensor) else new(held(value, x.dtype))
    raise_if(tensor.dtype is not x.dtype, "dtype of what is assigned", x.dtype.word, tensor.dtype.word)
    while tensor.dim() > numbers.ndim and tensor.shape[0] == 1:
        tensor = tensor[0]
    fits = all(m in (1, n) for m, n in zip(tensor.shape[::-1], numbers.shape[::-1], strict=False))
    fits = fits and tensor.dim() <= numbers.ndim
    raise_if(not fits, "shape of what is assigned", list(tensor.shape), list(numbers.shape))
    check_overlap(x, tensor)
    change(x, lambda old: assigned(old, tensor, numbers, "IndexPutBackward0"))


Tensor.__setitem__ = setitem
Tensor.__delitem__ = lambda self, key: raise_if(True, "deleted element")  # type: ignore[attr-defined]


# What a method without the underscore does out of place


def in_place(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the method that does in place what another does out of place."""
    signature = find(name.removesuffix("_"))

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        arguments, settings = in_order(name, args, kwargs)

        def compute(x: Tensor) -> Tensor:
            check_overlap(x, *arguments, *settings.values())
            return numbered(function(x, *arguments, **settings))

        try:
            return change(self, compute, name)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            facts = facts_of(error)
            if signature is not None and (facts is None or facts.key in OF_ARGUMENTS):
                signature.check_call(name, (self, *args), kwargs, 1)
            raise

    call.__name__ = name
    return operators.operator(call) if name.startswith("__") else call


for _name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "and", "or", "xor"):
    setattr(Tensor, f"__i{_name}__", in_place(f"__i{_name}__", operators.OPERATORS[_name]))


def numbered(result: Tensor) -> Tensor:
    """Return a result under the name that PyTorch has for the step in place."""
    head, _, digit = result._fn.name().partition("Backward") if result._fn is not None else ("", "", "")
    more = fact("in_place", head)
    return called(result, f"{head}Backward{int(digit) + int(more)}") if more else result


@methods("unsqueeze_", "squeeze_", "t_", "transpose_", "swapaxes_", "swapdims_")
def view_in_place(self: Tensor, *args: Any, op: str) -> Tensor:
    """Replace a tensor by a view of itself, with a step of its own."""
    check(self)
    raise_if(op == "t_" and self.dim() > 2, "rank of a t", self.dim(), op)
    result = getattr(Tensor, op.removesuffix("_"))(self, *args)
    self._memory.version += 1
    self._a, self._seen = result._a, self._memory.version
    if self._base is not None:
        self._how = result._how
    if result._fn is not None:
        self._fn, self._requires = numbered(result)._fn, False
    return self


@method("apply_")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    raise_if(self.requires_grad, "apply_ on what requires grad")
    _write(self, np.reshape([callable(x) for x in self._a.reshape(-1).tolist()], self._a.shape), "apply_", False)
    return self


@method("resize_")
def resize_(self: Tensor, *size: Any) -> Tensor:
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


InPlace.method, InPlace.into = in_place, into
