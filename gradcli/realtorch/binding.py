"""A call of PyTorch as operations of gradcli's table: the emulation's function of that name, run on shapes alone.

The emulation binds the arguments by its schemas and applies recipes, of which none is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

import numpy as np
import torch

from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.pytorch import dtypes
from gradcli.pytorch import torch as emulated_torch
from gradcli.pytorch.messages import MissingError
from gradcli.pytorch.modes import _Switch
from gradcli.pytorch.nn import functional
from gradcli.pytorch.operations.indexing import assignment, flat_index_of_each
from gradcli.pytorch.operations.random import MASK
from gradcli.pytorch.recipes import QUIET, Recipe
from gradcli.pytorch.running import noted
from gradcli.pytorch.tensor import Tensor, new
from gradcli.realtorch.functions import OWN
from gradcli.realtorch.operators import begins_with_number
from gradcli.realtorch.values import COPIED, Call, Value, array_of, tensors_in
from gradcli.record.numbers import Numbers

Source = Value | Numbers | str  # of an operand: the value of a tensor, constant numbers, or dropout's mask


@dataclass(eq=False)
class Bound:
    """One result of a call: `output` as a node of `inputs`, each with where its numbers are from.

    `row` and `settings` are those of the one recipe that computes it; a call of several has the name of its function.
    """

    row: str
    settings: Any
    output: Node
    inputs: Sequence[tuple[Node, Source]]
    is_composed: bool = False
    numbers: int = 0  # how many of the last inputs are indices, positions and factors


@dataclass(eq=False)
class Binding:
    """The results of a call, by their positions; `is_composed` is whether one takes several recipes."""

    results: list[Bound]
    is_composed: bool


class _Unknown(np.ndarray[Any, Any]):
    """An array of which only shape and dtype are known, until its numbers are read: `compute` writes them.

    Where there is no `compute`, and in a copy made before, whoever reads its numbers fails.
    """

    compute: Callable[[], None] | None = None
    whole: Any = None  # the array that is computed, of which this may be a part

    def __array_finalize__(self, x: Any) -> None:
        self.compute, self.whole = getattr(x, "compute", None), getattr(x, "whole", None)

    def _read(self) -> Any:
        array = self.view(np.ndarray)
        if self.compute is None or (array.size and not np.may_share_memory(array, self.whole)):
            raise LookupError("the numbers are not known")
        self.compute()
        return array

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_read(inputs), **_read(kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_read(args), **_read(kwargs))


for _name in ("item", "tolist", "argsort", "astype", "copy", "nonzero", "__bool__", "__int__", "__float__"):
    _called = lambda self, *args, _name=_name, **kwargs: getattr(self._read(), _name)(*args, **kwargs)  # noqa: E731
    setattr(_Unknown, _name, _called)


def _read(x: Any) -> Any:
    """Return arguments of NumPy's with the numbers of arrays."""
    if isinstance(x, _Unknown):
        return x._read()
    if isinstance(x, dict):
        return {k: _read(e) for k, e in x.items()}
    return type(x)(map(_read, x)) if type(x) in (list, tuple) else x


def _unknown(shape: Sequence[int], dtype: Any, compute: Callable[[], None] | None = None) -> Any:
    result = np.empty(tuple(shape), dtype).view(_Unknown)
    result.compute, result.whole = compute, result.view(np.ndarray)
    return result


def _results(recipe: Recipe, operands: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """Return the results of a recipe, which are computed once one of their numbers decides what is computed next."""

    @cache
    def compute() -> None:
        if any(a.size > COPIED for a in (*operands, *results)):
            raise LookupError("the numbers are many")
        values = QUIET.run(recipe.program.run, *_read([*operands, *numbers]))
        for a, value in zip(results, values, strict=True):
            a.whole[...] = value

    results = [_unknown((*n.shape, 1), n.dtype, compute) for n in recipe.outputs]
    if any(n.dtype == "int64" for n in recipe.outputs):  # which NumPy reads without a call of theirs
        compute()
    return results


_Computed = tuple[Recipe | None, Node, list[tuple[Node, Source]]]  # by a recipe, or several


@dataclass
class _Trace:
    """The recipes that a call applies, and where the numbers of its tensors are from."""

    sources: dict[int, Source] = field(default_factory=dict)  # by the identity of a tensor of the emulation
    nodes: dict[int, _Computed] = field(default_factory=dict)
    made: list[Tensor] = field(default_factory=list)  # of recipes
    kept: list[Any] = field(default_factory=list)  # so that no identity is used again
    applied: set[Recipe] = field(default_factory=set)  # whose own inputs are those of a result
    numbers: set[Node] = field(default_factory=set)  # the inputs that are indices, positions and factors

    def apply(self, recipe: Recipe, operands: Sequence[Any], numbers: Sequence[Any] = ()) -> tuple[Tensor, ...]:
        """Return tensors of the shapes of a recipe's results, and keep how they are computed."""
        inputs: dict[Node, Source] = {}
        own: dict[Node, Node] = {}
        steps = [*map(self._step, operands), *(None for _ in numbers)]
        is_single, is_first = not any(steps), recipe not in self.applied
        self.applied.add(recipe)
        for node, x, step in zip(recipe.inputs, (*operands, *numbers), steps, strict=True):
            if step is not None:
                own[node] = step[1]
                inputs.update(step[2])
                continue
            own[node] = known = node if is_first and is_single else leaf(node.shape, node.dtype)
            inputs[known] = self._source(x)
            if node in recipe.numbers:
                self.numbers.add(known)
        outputs = recipe.outputs if is_first and is_single else substituted(recipe.outputs, own)
        arrays = [x if isinstance(x, np.ndarray) else x._a for x in operands]
        result = tuple(map(new, _results(recipe, arrays, numbers)))
        for x, node in zip(result, outputs, strict=True):
            self.nodes[id(x)] = recipe if is_single else None, node, [*inputs.items()]
        self.made += result
        return result

    def _step(self, x: Any) -> _Computed | None:
        """Return how a tensor is computed; None of what is computed from data alone, whose numbers are constants."""
        step = self.nodes.get(id(x))
        if step is None or any(s == MASK or (isinstance(s, Value) and s.requires) for _, s in step[2]):
            return step
        with suppress(LookupError):
            self._source(x)
            return None
        return step

    def _source(self, x: Any) -> Source:
        if id(x) in self.sources:
            return self.sources[id(x)]
        if type(x) is tuple:  # the position of a part
            return Numbers.of(np.asarray(x, np.int64))
        if getattr(x, "_label", "") == MASK:
            return MASK
        array = _read(x if isinstance(x, np.ndarray) else x._a)
        self.kept.append(x)
        self.sources[id(x)] = known = Numbers.of(np.array(array[..., 0]))
        return known


def bound(call: Call, args: Any, kwargs: Any, frame: FrameType | None = None) -> Binding | None:
    """Return a call as operations of gradcli's table, by the shapes of its arguments; None where it is not there.

    The numbers of an argument count where they decide what is computed: indices, masks and sizes.  The frame is that
    of the program, or of PyTorch's own function in Python, that makes the call.
    """
    of_number = call.name in ("mul", "add") and len(args) == 2 and not isinstance(args[1], torch.Tensor)
    is_reversed = of_number and begins_with_number(frame)
    function = _function("torch.Tensor", f"__r{call.name}__") if is_reversed else _function(call.path, call.name)
    if function is None or any(x.is_complex() or x.layout is not torch.strided for x in tensors_in(args, kwargs)):
        return None
    trace = _Trace()
    values = iter(call.operands)
    try:
        converted = [_converted(x, values, trace) for x in args]
        named = {k: _converted(x, values, trace) for k, x in kwargs.items()}
        named.pop("inplace", None)
        with _Switch(tracer=trace.apply, grad=True):
            dtypes.set_default_dtype(getattr(dtypes, str(torch.get_default_dtype()).removeprefix("torch.")))
            result = function(*converted, **named)
    except (Exception, MissingError):  # what the emulation does not have, or checks otherwise
        return None
    outputs = [*_tensors(result)]
    for x in outputs:
        if id(x) in trace.sources:  # an argument as it is, such as the bfloat16 that becomes float32
            node = leaf(tuple(x.shape), x._a.dtype.name)
            trace.nodes[id(x)] = None, Node("identity", (node,), node.shape), [(node, trace.sources[id(x)])]
    results = [known for x in outputs if (known := _bound(call, trace, x)) is not None]
    if not results or len(results) < len([x for x in outputs if x._a.dtype.kind == "f"]):
        return None
    ends = {id(x) for x in outputs}
    return Binding(results, any(id(x) not in ends for x in trace.made))


def identities(values: Sequence[Value]) -> Binding:
    """Return what passes values on as they are."""
    kinds: list[Any] = [v.dtype.replace("bfloat16", "float32") for v in values]
    nodes = [leaf(v.shape, kind) for v, kind in zip(values, kinds, strict=True)]
    pairs = [*zip(nodes, values, strict=True)]
    return Binding([Bound("identity", (), Node("identity", (n,), n.shape), [(n, v)]) for n, v in pairs], False)


def bound_node(call: Call, compute: Callable[..., Any], sources: Sequence[Source | None]) -> Binding | None:
    """Return a node of PyTorch's graph as operations of the table, of values and constants.

    `compute` gets tensors of the emulation, and raises `LookupError` for what is not saved.
    """
    trace = _Trace()
    operands: list[Any] = []
    for source in sources:
        if not isinstance(source, Value | Numbers):
            operands.append(None)
            continue
        array = source.numbers.whole if isinstance(source, Value) and source.numbers is not None else None
        array = source.whole if isinstance(source, Numbers) else array
        kind = "float32" if source.dtype == "bfloat16" else source.dtype
        operands.append(new(_unknown(source.shape, kind)[..., None] if array is None else np.array(array)[..., None]))
        trace.sources[id(operands[-1])] = source
    try:
        with _Switch(tracer=trace.apply, grad=False):
            result = compute(*operands)
    except (Exception, MissingError):
        return None
    known = _bound(call, trace, result)
    return None if known is None else Binding([known], False)


def _bound(call: Call, trace: _Trace, x: Tensor) -> Bound | None:
    """Return a result of a call, if recipes compute it; last of its inputs are the numbers."""
    if id(x) not in trace.nodes:
        return None
    recipe, output, inputs = trace.nodes[id(x)]
    row, settings = (call.name, ()) if recipe is None else (recipe.op, recipe.settings)
    ordered = sorted(inputs, key=lambda pair: pair[0] in trace.numbers)
    count = sum(node in trace.numbers for node, _ in inputs)
    return Bound(row, settings, output, ordered, recipe is None, count)


def _with_elements(x: Tensor, key: Any, value: Any) -> Tensor:
    """Return a tensor with elements replaced, as the assignment `x[key] = value` makes it."""
    keys = key if isinstance(key, tuple) else (key,)
    indices = tuple(k._a[..., 0] if isinstance(k, Tensor) else k for k in keys)
    new_elements = value if isinstance(value, Tensor) else new(np.full((1,), value, x._a.dtype))
    recipe, positions = assignment(x, new_elements, np.asarray(flat_index_of_each(x)[indices]))
    result: Tensor = noted(x, recipe, (x, new_elements), "", positions)
    return result


def _converted(x: Any, values: Any, trace: _Trace) -> Any:
    """Return an argument as the emulation has it."""
    if isinstance(x, torch.Tensor):
        array = array_of(x)
        kind = "float32" if x.dtype == torch.bfloat16 else str(x.dtype).removeprefix("torch.")
        if array is None:
            array = _unknown(x.shape, kind)
        elif not x.requires_grad and array.size <= COPIED:
            array = array.copy("K")
        else:
            array.flags.writeable = False
        result = new(array[..., None])
        result._requires = x.requires_grad
        trace.sources[id(result)] = next(values)
        trace.kept.append(result)
        return result
    if isinstance(x, torch.dtype):
        return getattr(dtypes, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return None
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, list | tuple):
        return type(x)(_converted(e, values, trace) for e in x) if type(x) in (list, tuple) else tuple(x)
    if isinstance(x, np.generic):
        return x.item()
    return x


def _tensors(x: Any) -> Any:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for e in x:
            yield from _tensors(e)


_MODULES = {"special": "special", "linalg": "linalg"}


@cache
def _function(path: str, name: str) -> Any:
    """Return the emulation's function for PyTorch's path of one; None where it has none.

    A function in place is that which computes the new numbers.
    """
    where, _, last = path.rpartition(".")
    if where == "torch" and last == "Tensor":
        where, last = path, name
    if last == "__setitem__":
        return _with_elements
    if path in OWN or last in OWN:
        return OWN.get(path) or OWN[last]
    if last.startswith("__i") and last not in ("__invert__",):
        last = f"__{last[3:]}"
    elif last.endswith("_") and not last.startswith("__"):
        last = last[:-1]
    try:
        if "functional" in where or where in ("torch._C._nn", "torch.nn"):
            return getattr(functional, last, None) or getattr(emulated_torch, last, None)
        if where.startswith("torch.Tensor") or "TensorBase" in where:
            if last == "__get__":
                last = where.rpartition(".")[2]
                return lambda x: getattr(x, last)
            return getattr(Tensor, last, None)
        for part, module in _MODULES.items():
            if part in where or last.startswith(f"{part}_"):
                last = last.removeprefix(f"{part}_")
                return getattr(import_module(f"gradcli.pytorch.{module}"), last, None)
        return getattr(emulated_torch, last, None) or getattr(functional, last, None)
    except (Exception, MissingError):
        return None
