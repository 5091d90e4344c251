"""The tensor: a NumPy array with its history; the operations are in other modules."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from gradcli.pytorch import record
from gradcli.pytorch.chains import shows_base
from gradcli.pytorch.cuts import Cut, Kind, cut
from gradcli.pytorch.dtypes import CPU, OF_NUMPY, Size, dtype, sized, strided
from gradcli.pytorch.messages import raise_if, torch_error, warn, warn_once
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import Memory, Moment
from gradcli.pytorch.origins import Origin
from gradcli.pytorch.printing import tensor_text
from gradcli.pytorch.record import Handle, Leaf, Line, Step, edge_of, shown

Array = np.ndarray[Any, Any]


class TensorBase:
    """The base class, whose methods `names` looks up at their first use."""


class Tensor(TensorBase):
    """An array with a shape and a dtype, and the step whose result it is.

    `_a` holds the numbers as the engine wants them, with a last axis of one point.
    """

    _a: Array
    _memory: Memory
    _requires = False  # of a leaf, whether it requires a gradient
    _fn: Step | None = None  # what made it, if that is recorded
    _output = 0  # its number among the results of a step that has several
    _moment: weakref.ref[Moment] | None = None  # its numbers of now, where an operation has read or made them
    _label = ""  # what a function that is differentiated calls it
    _module: Any = None  # for explanations: the innermost module whose output it is, where no step made it
    _is_done = False  # whether a function was differentiated by it, and that is done
    _base: Tensor | None = None  # the tensor whose numbers it shows, and the recipes that say how
    _how: tuple[Any, ...] = ()
    _seen = 0  # the version of its memory at which a view's step was made
    _grad: Tensor | None = None
    _tangent: tuple[Any, Tensor] | None = None  # with its level: see `autograd.forward_ad`
    _leaf: Callable[[], Leaf | None] | None = None
    _map = math.inf  # the outermost `vmap` of which it is one element, where all are one tensor to PyTorch
    _origin: Origin | None = None  # of a view whose changes in place autograd does not follow
    _inference = False
    _detached: Cut | None = None  # where it was cut off from what it came from
    _reached: Line | None = None  # of a leaf, the line of the last backward that reached it
    _cleared: Line | None = None  # the line that has last set the gradient to None, or to 0
    _frozen: Line | None = None  # the line that has set requires_grad to False
    _made = 0  # of a parameter, when it was created, as steps and optimizers count it

    if TYPE_CHECKING:  # given to the class by the modules that have its operations
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = cast(Any, None)
        __matmul__ = __pow__ = __lt__ = __gt__ = __le__ = __ge__ = __neg__ = __pos__ = __abs__ = cast(Any, None)
        __invert__ = __iter__ = __getitem__ = __setitem__ = T = mT = data = multinomial = cast(Any, None)
        _refresh = cast(Any, None)  # gives a view a new step: its memory was changed since the old one was made

        def __getattr__(self, name: str) -> Any: ...

    # What it is

    @property
    def shape(self) -> Size:
        return sized(self._a.shape[:-1])

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self._a.shape[:-1][axis_of(dim, self._a.ndim - 1)]

    def dim(self) -> int:
        return self._a.ndim - 1

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        return self._a.size

    nelement = numel

    @property
    def dtype(self) -> dtype:
        return OF_NUMPY[self._a.dtype]

    device = property(lambda self: CPU)
    is_cuda = is_sparse = is_quantized = is_meta = is_complex_ = False
    get_device = lambda self: -1  # noqa: E731
    layout = property(lambda self: strided)
    real = property(lambda self: self)

    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)

    def element_size(self) -> int:
        return self._a.itemsize

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        return bool(self._a.flags.c_contiguous)

    def stride(self, dim: int | None = None) -> Any:
        sizes = [max(1, n) for n in self._a.shape]
        result = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes) - 1))
        if not self._a.flags.c_contiguous:  # else, of axes of one element, NumPy leaves any stride
            result = tuple(step // self._a.itemsize for step in self._a.strides[:-1])
        return result if dim is None else result[dim]

    def data_ptr(self) -> int:
        return int(self._a.__array_interface__["data"][0])

    # What autograd knows

    @property
    def grad_fn(self) -> Step | None:
        step = self._step
        return None if step is None else shown((step, self._output))[0]  # type: ignore[return-value]

    @property
    def _step(self) -> Step | None:
        """The step whose result it is; for a view whose memory has changed since, a new one."""
        if self._base is not None and self._seen != self._memory.version:
            self._refresh()
        return self._fn

    @property
    def requires_grad(self) -> bool:
        return self._requires or self._fn is not None or (self._base is not None and self._base.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        raise_if(self._fn is not None, "requires_grad of a result" if value else "no requires_grad of a result")
        raise_if(value and self._a.dtype.kind != "f", "requires_grad of integers")
        raise_if(self._inference and value, "requires_grad of an inference tensor")
        if record.Recorder.explains and value != self._requires:
            self._frozen = None if value else record.script_line()
        self._requires = value

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        raise_if(Mode.transforms, "requires_grad_ in a transform")
        raise_if(requires_grad and self._a.dtype.kind != "f", "requires_grad_ of integers")
        if self._fn is None or not requires_grad:
            self.requires_grad = requires_grad
        return self

    is_leaf = property(lambda self: self._step is None)

    @property
    def grad(self) -> Tensor | None:
        if self._grad is None and self._fn is not None and not self.retains_grad:
            warn(".grad of no leaf")
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise torch_error("kind of a .grad", type(value).__name__)
        raise_if(value is self, "tensor as its own .grad")
        if value is not None and value._a.dtype != self._a.dtype:
            raise torch_error("dtype of a .grad", value.dtype.word.lower(), self.dtype.word.lower())
        if value is not None and value._a.shape != self._a.shape:
            raise torch_error("size of a .grad", list(value.shape), list(self.shape))
        if value is None:
            self.cleared()
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def cleared(self) -> None:
        """Record the line that clears the gradient, if there is one."""
        if self._grad is not None and record.Recorder.explains:
            self._cleared = record.script_line()

    def retain_grad(self) -> None:
        raise_if(Mode.transforms, "retain_grad in a transform")
        raise_if(not self.requires_grad, "retain_grad without a gradient")
        step, number = edge_of(self)
        if isinstance(step, Step):
            step.retained = {**step.retained, number: weakref.ref(self)}

    output_nr = property(lambda self: shown(edge_of(self))[1])

    @property
    def retains_grad(self) -> bool:
        return self._fn is not None and any(x() is self for x in self._fn.retained.values())

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        raise_if(not self.requires_grad, "hook without a gradient")
        fn, number = edge_of(self)
        return fn.hooked_result(number, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> Handle:
        raise_if(not self.is_leaf or not self.requires_grad, "hook behind the gradient of no leaf")
        return edge_of(self)[0].hooked("_dones", hook)

    @property
    def _version(self) -> int:
        raise_if(self._inference, "version of an inference tensor")
        return self._memory.version

    def _is_view(self) -> bool:
        return self._base is not None or (self._fn is not None and shows_base(self._fn.called))

    def is_inference(self) -> bool:
        return self._inference

    # What Python asks

    def item(self) -> Any:
        check_unmapped("item of a map", self)
        raise_if(self._a.size != 1, "item of several elements", self._a.size)
        return self._number(".item()")

    def _number(self, how: str) -> Any:
        raise_if(self._a.size != 1, "number of several elements")
        check_unmapped("item of a map", self)
        cut(self, Kind.NUMBER, how)
        return self._a.item()

    def __float__(self) -> float:
        if self._a.size == 1 and self.requires_grad:
            warn_once("scalar of what requires grad")
        return float(self._number("float()"))

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __index__(self) -> int:
        raise_if(self._a.dtype.kind not in "iu" or self._a.size != 1, "index that is no integer")
        return int(self._number("int()"))

    def __bool__(self) -> bool:
        if self._a.size != 1:
            raise torch_error("truth of several elements" if self._a.size else "truth of no elements")
        check_unmapped("control flow in a map", self)
        return bool(self._a.item())

    def __len__(self) -> int:
        raise_if(self._a.ndim == 1, "length of a number")
        return len(self._a)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return tensor_text(self)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if self._a.ndim > 1 else format(self._a.item(), spec)

    def tolist(self) -> Any:
        check_unmapped("numbers of a map", self)
        cut(self, Kind.LIST, ".tolist()")
        return self._a[..., 0].tolist()

    def numpy(self, *, force: bool = False) -> Array:
        raise_if(Mode.grad and self.requires_grad and not force, "numpy of what requires grad")
        check_unmapped("numbers of a map", self)
        cut(self, Kind.ARRAY, ".numpy()")
        if record.Recorder.explains:
            self._memory.storage.lend()
        return self._a[..., 0]

    def __array__(self, dtype: Any = None) -> Array:
        result = self.numpy()
        return result if dtype is None else result.astype(dtype)

    __array_priority__ = 1000

    def __array_wrap__(self, array: Array) -> Tensor:
        result = np.asarray(array)
        return of_array(result.astype(np.uint8) if result.dtype == bool else result)

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).any().item())

    def __copy__(self) -> Tensor:
        result: Tensor = alias(self, type(self))
        result._requires = self.requires_grad
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        raise_if(self._step is not None, "copy of a result")
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        result = new(self._a.copy(), type(self))
        memo[id(self)] = result
        result._memory.version = 1  # PyTorch sets the numbers of a new tensor
        result._requires = self._requires
        result._grad = None if self._grad is None else self._grad.__deepcopy__(memo)
        return result


Tensor.__module__ = "torch"
TensorBase.__module__ = "torch._C"


def new(a: Array, cls: type[Tensor] = Tensor) -> Tensor:
    """Return a tensor of an array in the engine's layout."""
    result: Tensor = object.__new__(cls)
    result._a = a
    result._memory = Memory()
    if Mode.inference:
        result._inference = True
    return result


def alias(x: Tensor, cls: type[Tensor] = Tensor) -> Any:
    """Return an alias of a tensor without a history."""
    result = new(x._a, cls)
    result._memory, result._map = x._memory, x._map
    return result


def tangent_of(x: Any) -> Tensor | None:
    """Return the tangent of a tensor at this level of forward mode, or None."""
    tangent = getattr(x, "_tangent", None) if Mode.dual is not None else None
    return tangent[1] if tangent is not None and tangent[0] is Mode.dual else None


def check_unmapped(why: str, x: Tensor) -> None:
    """Raise PyTorch's error for reading the numbers of a tensor in a `vmap`."""
    raise_if(x._map <= Mode.maps, why)


def of_array(values: Array) -> Tensor:
    """Return a tensor that aliases an array of NumPy's."""
    return new(values[..., None])


def axis_of(dim: int, rank: int) -> int:
    """Return an axis as counted from the front.

    Errors: `IndexError` where there is none, in PyTorch's words.
    """
    most = max(rank, 1)
    if not -most <= dim < most:
        raise torch_error("no such axis", -most, most - 1, dim)
    return dim % most


Number = (int, float, bool, np.number)  # types of what is a number beside tensors


def as_sequence(value: Any) -> Any:
    """Return arguments that are passed one by one, or as one sequence."""
    return value[0] if len(value) == 1 and isinstance(value[0], tuple | list) else value


def different_axes(dims: Iterable[int], rank: int) -> tuple[int, ...]:
    """Return axes as counted from the front.

    Errors: `IndexError` where there is none, `RuntimeError` for one that is there twice.
    """
    axes = tuple(axis_of(d, rank) for d in dims)
    for axis in axes:
        raise_if(axes.count(axis) > 1, "axis given twice", axis)
    return axes
