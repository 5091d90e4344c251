"""A model as a part of a system: its inputs, its results, and the nodes between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.files import printable
from gradcli.graph.array import Array, Named
from gradcli.graph.names import Numbered, identifier
from gradcli.graph.node import Node
from gradcli.graph.subsystem import Parameter
from gradcli.onnx.files import array, initializers, load
from gradcli.onnx.translate import Scope, Translator, is_named

_FLOATS = {1, 10, 11, 16}  # types of tensors: float32, float16, float64 and bfloat16
_INTEGERS = {2, 3, 4, 5, 6, 7, 9, 12, 13}  # of 8 to 64 bits, with and without a sign, and booleans
_LISTED, _CLASSES = 3, 8  # names in a note


def read_model(path: str, wanted: Sequence[str] = ()) -> Model:
    """Return the model in a file; the initializers that are `wanted` are inputs of it.

    Errors: `InputError` for a file that cannot be read, or is not a model.
    """
    return Model(load(path), path, wanted)


class Model:
    """An ONNX model as a subsystem (see `graph.subsystem`).

    A name that no formula can have has `_` for each character that no name has.
    """

    def __init__(self, proto: Any, path: str, wanted: Sequence[str] = ()) -> None:
        self._graph = proto.graph
        self._translator = Translator(proto, Path(path).parent, printable(Path(path).name))
        self.label = path
        self.spans: Mapping[Node, Span] = self._translator.spans
        self.parts: Mapping[Node, str] = self._translator.parts
        self.variables: Mapping[Node, str] = self._translator.variables
        self.notes: list[str] = []
        self._initializers = initializers(self._graph)
        self._identifiers: dict[str, str] = {}
        self._declared = {v.name: v for v in self._graph.input if v.name not in self._initializers}
        self._nodes = _needed(self._graph.node, self._results)
        names = dict.fromkeys((*self._declared, *self._initializers, *(o for n in self._nodes for o in n.output if o)))
        numbered = Numbered()
        for name in sorted(names, key=lambda name: identifier(name) != name):  # those that are identifiers stay
            self._identifiers[name] = numbered(identifier(name))
        for name in self._results:
            if name not in self._identifiers:
                raise InputError(f"the output `{printable(name)}` of `{printable(path)}` is never computed", text=path)
        self._leaves = [n for n in self._initializers if not {n, self._identifiers[n]}.isdisjoint(wanted)]
        self._note_names()
        if any(n.op_type.startswith("TreeEnsemble") for n in self._nodes):
            self.notes.append("a decision tree is constant between its thresholds: its gradient is 0")

    @property
    def own_names(self) -> Mapping[str, str]:
        """The identifiers that stand in formulas for names that no formula can have."""
        return {name: plain for name, plain in self._identifiers.items() if plain != name}

    @cached_property
    def _results(self) -> list[str]:
        """The outputs that are real numbers; others have no derivative.

        In place of the dictionaries that `ZipMap` makes of probabilities stands the array that it makes them of.
        """
        zipped = {name: n for n in self._graph.node if n.op_type == "ZipMap" for name in n.output}
        names = [v.name for v in self._graph.output]
        floats = [v.name for v in self._graph.output if v.type.tensor_type.elem_type in _FLOATS or v.name in zipped]
        for name in zipped.keys() & {*names}:
            classes = [printable(str(c)) for c in _classes(zipped[name])]
            listed = ", ".join(classes[:_CLASSES]) + ", …" * (len(classes) > _CLASSES)
            self.notes.append(f"the columns of `{printable(name)}` are the classes {listed}")
        others = [printable(name) for name in names if name not in floats]
        if not floats:
            raise InputError(
                f"`{self.label}` has no output of real numbers"
                + (f": {', '.join(others[:_LISTED])}" if others else ""),
                text=self.label,
                hint="a classifier's probabilities have a derivative, and its labels do not",
            )
        for name in others:
            self.notes.append(f"the output `{name}` is left out: it holds no real numbers, and has no derivative")
        return floats

    def _note_names(self) -> None:
        shown = [*self._declared, *self._results, *self._leaves]
        renamed = [f"`{printable(n)}` is `{self._identifiers[n]}`" for n in shown if self._identifiers[n] != n]
        if renamed:
            more = f", and {len(renamed) - _LISTED} more" * (len(renamed) > _LISTED)
            self.notes.append(f"in formulas, {', '.join(renamed[:_LISTED])}{more}")

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The inputs that have no initializer, and the initializers that are differentiated by."""
        result = {self._identifiers[name]: _parameter(v) for name, v in self._declared.items()}
        for name in self._leaves:
            numbers = self._array(name).astype(np.float64)
            result[self._identifiers[name]] = Parameter(numbers.shape, numbers)
        return result

    @property
    def weights(self) -> Sequence[str]:
        """The model's own names of the initializers that hold real numbers."""
        return [name for name, x in self._initializers.items() if getattr(x, "data_type", 1) in _FLOATS]

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of constants and of computed values."""
        constants = [n for n in self._initializers if n not in self._leaves]
        return [self._identifiers[n] for n in (*constants, *(o for n in self._nodes for o in n.output if o))]

    @property
    def outputs(self) -> Sequence[str]:
        """The results."""
        return [self._identifiers[name] for name in self._results]

    def _array(self, name: str) -> Array:
        return array(self._initializers[name], self._translator.folder)

    def build(self, inputs: Mapping[str, Node], fixed: Named) -> Mapping[str, Node]:
        """Return the nodes of what the model computes, from those of its inputs."""
        scope: Scope = {}
        for name, declared in self._declared.items():
            identifier = self._identifiers[name]
            value = inputs[identifier] if identifier in inputs else _typed(declared, fixed[identifier])
            _check_shape(printable(name), declared, value.shape)
            scope[name] = value
        for name in self._initializers:
            identifier = self._identifiers[name]
            scope[name] = (
                inputs[identifier] if identifier in inputs else self._translator.named_array(self._array(name))
            )
        self._translator.run(self._nodes, scope, self._translator.opsets)
        return self._named(scope)

    def _named(self, scope: Scope) -> dict[str, Node]:
        """Return the nodes by their names; what is known and no result has none."""
        read = {name for node in self._nodes for name in _reads(node)}
        result: dict[str, Node] = {}
        for name in self._initializers:
            value = scope[name]
            if name in read and isinstance(value, np.ndarray) and value.dtype.kind == "f":
                result[self._identifiers[name]] = self._translator.lift(value)
        for node in self._nodes:
            for name in node.output:
                value = scope.get(name)
                if name and value is not None and (name in self._results or is_named(node, value)):
                    result[self._identifiers[name]] = self._translator.lift(value)
        for name in self._results:
            if self._identifiers[name] not in result:
                value = scope.get(name)
                if value is None:
                    raise InputError(
                        f"the output `{printable(name)}` of `{self.label}` is never computed", text=self.label
                    )
                result[self._identifiers[name]] = self._translator.lift(value)
        return result


def _classes(node: Any) -> list[Any]:
    """Return the classes that `ZipMap` names."""
    return [
        c.decode(errors="replace") if isinstance(c, bytes) else c for a in node.attribute for c in (*a.strings, *a.ints)
    ]


def _needed(nodes: Sequence[Any], results: Sequence[str]) -> list[Any]:
    """Return the nodes that results need, in their order."""
    wanted = set(results)
    needed = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            needed.append(node)
            wanted |= _reads(node)
    return needed[::-1]


def _reads(node: Any) -> set[str]:
    """Return the names that a node reads, and all that the nodes of graphs within it do."""
    result: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        result.update(node.input)
        for attribute in node.attribute:
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                waiting += graph.node
                result.update(v.name for v in graph.output)
    return result


def _parameter(declared: Any) -> Parameter:
    tensor = declared.type.tensor_type
    if not declared.type.HasField("tensor_type") or tensor.elem_type not in _FLOATS | _INTEGERS:
        raise InputError(f"the input `{printable(declared.name)}` is not an array of real numbers or integers")
    shape = None
    if tensor.HasField("shape"):
        sizes = (d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
        shape = tuple(n if n >= 0 else None for n in sizes)  # some exporters write -1 for a size that is open
    names = tuple(d.dim_param for d in tensor.shape.dim)
    return Parameter(shape, fixed=tensor.elem_type not in _FLOATS, names=names)


def _typed(declared: Any, value: Array) -> Array:
    """Return the value of an input of integers or booleans in the type it declares.

    Errors: `InputError` for a value that is none of this type.
    """
    from onnx import helper

    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type))
    with np.errstate(invalid="ignore"):
        result = value.astype(dtype)
    if (result != value).any():
        raise InputError(f"the input `{printable(declared.name)}` is of {dtype.name}, and its value is not")
    return result


def _check_shape(name: str, declared: Any, shape: tuple[int, ...]) -> None:
    """Check that a value has the shape that the model declares.

    Errors: `InputError`.
    """
    wanted = _parameter(declared).shape
    if wanted is None:
        return
    fits = len(wanted) == len(shape) and all(n in (None, m) for n, m in zip(wanted, shape, strict=True))
    if not fits:
        sizes = "×".join("?" if n is None else str(n) for n in wanted) or "a scalar"
        size = "×".join(map(str, shape)) or "a scalar"
        raise InputError(f"the input `{name}` has shape {sizes}, but its value has shape {size}")
