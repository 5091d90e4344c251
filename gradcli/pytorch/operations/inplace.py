"""Operations in place: the numbers change where they are, and the history is what it would be out of place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.graph.places import Places
from gradcli.pytorch.calls import called, in_order, spelled
from gradcli.pytorch.gradnames import capitals
from gradcli.pytorch.lookup import method_named
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.operations import operators
from gradcli.pytorch.operations.conversion import to
from gradcli.pytorch.operations.indexing import assigned
from gradcli.pytorch.operations.views import shape_of
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import Recorder, apply, script_line
from gradcli.pytorch.registry import method, tensor_like
from gradcli.pytorch.tensor import Tensor, new, of_array


def check(x: Tensor) -> None:
    """Refuse a change in place that autograd does not allow."""
    if x._inference and not Mode.inference:
        raise refusal("inference tensor changed in place")
    if not Mode.grad:
        return
    base = x._base
    if base is None:
        if x._requires and x._fn is None:
            raise refusal("leaf changed in place")
        return
    if not base.requires_grad and not x.requires_grad:
        return
    if x._made == "no_grad":
        raise refusal("view of no_grad changed in place")
    if x._made:
        number, _, name = x._made.partition(" ")
        raise refusal("one of several views changed in place", f"{number} of {name}")
    if base._fn is None:
        raise refusal("view of a leaf changed in place")


def rebased(x: Tensor, compute: Callable[[Tensor], Tensor], name: str = "") -> Tensor:
    """Change a tensor to what is computed from it, and let its history, and its base's, be that of the result."""
    history = x.requires_grad
    found = compute(x)
    own_step = found._fn
    if not x._a.flags.writeable:
        _let_write(x)
    if found._a.dtype != x._a.dtype:
        if found._a.dtype.kind == "f" != x._a.dtype.kind or x._a.dtype == bool:
            wanted = spelled(x) if name.startswith("clamp") else x.dtype.word
            raise RuntimeError(f"result type {found.dtype.word} can't be cast to the desired output type {wanted}")
        found = to(found, x.dtype)
        if own_step is not None:
            called(found, own_step.name())
    if found._a.shape != x._a.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(found.shape)}")
    step = found._fn
    for each in [own_step, step] if own_step is not step else [step]:
        # What was kept of the old numbers is a copy, of those that stay what they are: the argument's own.
        if each is not None:
            each.checks = [c for c in each.checks if c[0] is not x._memory or c[3] is not x]
            if each.values is not None:
                each.values = [a.copy() if a is not None and np.may_share_memory(a, x._a) else a for a in each.values]
    x._a[...] = found._a
    x._memory.version += 1
    if Recorder.explains:
        x._memory.changed = (script_line(), name)
    if step is not None and any(c[0] is found._memory for c in step.checks):  # its result is what was changed
        step.result = None if step.result is None else x._a
        step.checks = [c for c in step.checks if c[0] is not found._memory]
        step.checks.append((x._memory, x._memory.version, x._a, None, -1))
    if not Mode.grad or not (step is not None or history):
        if x._base is not None and not x._base.requires_grad:
            x._seen = x._memory.version  # nothing was recorded: its step is what it was
    elif x._base is None:
        x._fn = step
        x._requires = x._requires if step is None else False
    else:
        _through_base(x, found)
    return x


def _let_write(x: Tensor) -> None:
    """Let a view of repeated memory be written to, as PyTorch does where no element is meant twice."""
    if x._a.size and any(not step and n > 1 for step, n in zip(x._a.strides, x._a.shape, strict=True)):
        raise refusal("repeated memory changed in place")
    holder = type("Memory", (), {"base": x._a})()
    holder.__array_interface__ = {**x._a.__array_interface__, "data": (x._a.__array_interface__["data"][0], False)}
    x._a = np.asarray(holder)


def _through_base(x: Tensor, found: Tensor) -> None:
    """Let a view's base have the history of what was written into it."""
    base = x._base
    assert base is not None
    numbers = np.arange(base._a.size).reshape(base._a.shape)
    for recipe in x._how:
        (numbers,) = recipe.program([numbers])
    places = Places.of(numbers.reshape(-1).astype(np.int64))
    old = _as_it_was(base)
    whole = assigned(old, found, places, tuple(found.shape), "torch::autograd::CopySlices")
    base._fn = whole._fn
    base._requires = False


def _as_it_was(base: Tensor) -> Tensor:
    """Return a base with the history that it had, for the step that changes it; its numbers are not read."""
    old = new(base._a)
    old._fn, old._requires = base._fn, base._requires
    return old


def copied_into(x: Tensor, value: Tensor) -> Tensor:
    """Copy the numbers of another tensor into a tensor."""
    check(x)
    return _replaced(x, value, "copy_", "torch::autograd::CopyBackwards")


@method("fill_")
def fill(x: Tensor, value: Any) -> Tensor:
    """Set all numbers of a tensor."""
    if isinstance(value, Tensor) and value.dim():
        raise refusal("fill with an array", value.dim())
    check(x)
    if isinstance(value, Tensor):
        return _replaced(x, value, "fill_", "FillBackward3")
    return _replaced(x, _constant(value, x), "fill_", "FillBackward2")


def _replaced(x: Tensor, value: Tensor, how: str, name: str) -> Tensor:
    """Put other numbers in the place of all, to which the old ones pass nothing on."""
    shape, dtype = tuple(x.shape), x.dtype.name
    whole = common_shape((shape, value.shape))
    if whole != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(whole)}")

    def build(new: Node, *old: Node) -> Node:
        found = cast(new, dtype)
        found = found if found.shape == shape else Node("broadcast", (found,), shape, (shape,))
        return elementwise("where", const(0, (), "bool"), old[0], found) if old else Node("identity", (found,), shape)

    # Of a part, the whole passes nothing on for what is replaced.
    alone = not x.requires_grad or (x._base is not None and value.requires_grad)
    given = (value,) if alone else (value, x)
    return rebased(x, lambda _: apply(how, build, given, (shape, dtype), name), how)


def _constant(numbers: Any, x: Tensor) -> Tensor:
    return of_array(np.asarray(numbers, x._a.dtype))


def refilled(x: Tensor, numbers: Any, how: str) -> Tensor:
    """Fill a tensor with numbers that were drawn, in the order in which its elements stand in memory."""
    check(x)
    numbers = in_memory(np.asarray(numbers).reshape(-1), x._a)[..., 0]
    number = {"random_": 2, "bernoulli_": 2}.get(how, 0)
    return _replaced(x, _constant(np.asarray(numbers).reshape(x.shape), x), how, f"{capitals(how)}Backward{number}")


def in_memory(numbers: Any, like: Any) -> Any:
    """Return numbers as an array whose elements stand in memory as those of another one do."""
    found = np.empty_like(like, numbers.dtype)
    found.ravel(order="K")[...] = numbers
    return found


@method("zero_")
def zero_(self: Tensor) -> Tensor:
    check(self)
    if not Mode.grad or not self.requires_grad:
        self._a[...] = 0
        self._memory.version += 1
        if Recorder.explains:
            self._memory.changed = (script_line(), "zero_")
        return self
    return _replaced(self, _constant(0, self), "zero_", "ZeroBackward0")


method("copy_")(
    lambda self, src, non_blocking=False: copied_into(self, src if isinstance(src, Tensor) else _constant(src, self))
)


@method("set_")
def set_(self: Tensor, source: Tensor) -> Tensor:
    self._a, self._memory = source._a, source._memory
    return self


def change(x: Tensor, compute: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """Apply an operation in place."""
    check(x)
    return rebased(x, compute, name)


def in_place(name: str) -> Callable[..., Tensor] | None:
    """Return the method that does in place what a method without the underscore does out of place."""
    made = getattr(Tensor, name.removesuffix("_"), None)
    if made is None:
        made = method_named(name.removesuffix("_"))
    if made is None:
        return None

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if args and args[0] is None and name in ("add_", "sub_", "mul_", "div_"):
            raise TypeError(f"{name}(): argument 'other' (position 1) must be Tensor, not NoneType")
        given, settings = in_order(name, args, kwargs)
        return change(self, lambda x: numbered(made(x, *given, **settings)), name)

    call.__name__ = name
    return call


def numbered(found: Tensor) -> Tensor:
    """Return a result under the name that PyTorch has for the step in place."""
    step = found._fn
    return called(found, step.name()[:-1] + "1") if step is not None and step.name() in _SECOND else found


_SECOND = frozenset(f"{name}Backward0" for name in ("Acosh", "Asinh", "Atanh", "Polygamma", "Elu", "Celu", "LeakyRelu"))

# Views in place: the tensor becomes its own view, under a name of its own.
_TURNED = {"unsqueeze_": 1, "t_": 1, "transpose_": 1, "swapaxes_": 1, "swapdims_": 1, "squeeze_": 3}


def _turn(name: str) -> None:
    def call(self: Tensor, *args: Any) -> Tensor:
        check(self)
        if name == "t_" and self.dim() > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
        made = getattr(Tensor, name.removesuffix("_"))
        found = made(self, *args)
        number = _TURNED[name] + (0 if name != "squeeze_" or not args else 2 if isinstance(args[0], tuple) else 1)
        self._memory.version += 1
        self._a, self._seen = found._a, self._memory.version
        if self._base is not None:
            self._how = found._how
        if found._fn is not None:
            called(found, f"{found._fn.name().rpartition('Backward')[0]}Backward{number}")
            self._fn, self._requires = found._fn, False
        return self

    method(name)(call)


for _name in _TURNED:
    _turn(_name)


@method("resize_")
def resize_(self: Tensor, *size: Any) -> Tensor:
    shape = shape_of(size)
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if not self.is_contiguous() or math.prod(shape) > self.numel():
        raise MissingError("resize_(…) to more elements")
    self._a = self._a.reshape(-1)[: math.prod(shape)].reshape(*shape, 1)
    return self


def _augmented(name: str, made: Callable[..., Any]) -> None:
    def operate(self: Tensor, other: Any) -> Tensor:
        if not tensor_like(other):
            return NotImplemented
        return change(self, lambda x: made(x, other), name)

    setattr(Tensor, name, operate)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "and", "or", "xor"):
    _augmented(f"__i{_name}__", operators.OPERATORS[_name])


def into(out: Tensor, name: str, compute: Callable[[], Tensor], args: Sequence[Any]) -> Tensor:
    """Write a result into the tensor given as `out`."""
    if Mode.grad and any(isinstance(x, Tensor) and x.requires_grad for x in (*args, out)):
        raise refusal("out requires grad", name)
    found: Any = compute()
    if not isinstance(found, Tensor) or not isinstance(out, Tensor):
        raise MissingError(f"{name}(out=…) of several tensors")
    if out._a.shape != found._a.shape:
        out._a = np.empty(found._a.shape, out._a.dtype)
    out._a[...] = found._a
    out._memory.version += 1
    return out
