"""Recipes: what an operation on arrays of some shapes computes, and the gradients of its inputs.

A recipe is a small graph, made by a constructor of the vocabulary once for each kind of call and kept.  Its numbers
come from the engine, and its pullback from `vjp`, both worked out once: a step of a loop only runs them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.engine.evaluate import constant
from gradcli.engine.lowering import lower
from gradcli.engine.numpy_target import forward
from gradcli.errors import InputError
from gradcli.graph import shapes as graph_shapes
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, cast, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions, substituted
from gradcli.graph.vjp import sweep
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import torch_error

Array = np.ndarray[Any, Any]
Build = Callable[..., Node]
Edge = tuple[Node, int]  # a node, and the position of one of its arguments

_KEPT = 4096  # recipes


def _single(node: Node) -> Node:
    """Return a node of float16 as one of float32: an operation on halves rounds once, at its end."""
    return node if node.dtype != "float16" else Node(node.op, node.args, node.shape, node.settings, "float32")


def _matmul(a: Array, b: Array) -> Array:
    """Return the product of two arrays at the only point, by BLAS.

    A column times a row has one product in each entry, and PyTorch adds it to nothing: -1 times 0 stays -0.
    """
    if a.ndim == b.ndim == 3 and a.shape[1] == 1 < min(a.shape[0], b.shape[1]):
        return np.asarray(a * b)
    return np.asarray(np.matmul(a[..., 0], b[..., 0]))[..., None]


def _remainder(a: Array, b: Array) -> Array:
    """Return the remainders of divisions, which have the signs of the divisors; of 0 it is the dividend's, as in C."""
    result = np.mod(a, b)
    return np.where(result == 0, np.fmod(a, b), result)


_KERNELS = {"matmul": _matmul, "mod": _remainder}  # what PyTorch computes otherwise than the engine


def _function(node: Node) -> Callable[..., Array]:
    """Return the function that computes a node from the arrays of its arguments."""
    return _KERNELS.get(node.op) or forward(node)


class Program:
    """Nodes ready to be computed from arrays in the engine's layout, with one point."""

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        same = common_subexpressions(scheduled(outputs, inputs))
        nodes = scheduled([same[n] for n in outputs], inputs)
        simpler = lower(nodes)
        kept = [simpler[same[n]] for n in outputs]
        nodes = scheduled(kept)
        fixed = [n for n in nodes if n.is_constant]
        positions = {n: i for i, n in enumerate([*inputs, *fixed])}
        self.reads = frozenset(i for i, n in enumerate(inputs) if n in set(nodes))
        self._constants = [constant(_single(n)) for n in fixed]
        self._halves = any(n.dtype == "float16" for n in inputs)
        self._steps: list[tuple[Callable[..., Array], tuple[int, ...]]] = []
        for n in nodes:
            if n not in positions:
                self._steps.append((_function(_single(n)), tuple(positions[a] for a in n.args)))
                positions[n] = len(positions)
        self._outputs = [positions[n] for n in kept]
        self._dtypes = [np.dtype(n.dtype) for n in outputs]
        # A function of just inputs is called at once, where it knows all kinds of numbers that there are.
        is_single = len(kept) == len(self._steps) == 1 and max(self._steps[0][1]) < len(inputs)
        is_real = all(n.dtype in ("float32", "float64") for n in inputs)
        self._single = self._steps[0] if is_single and is_real else None

    def __call__(self, arrays: Sequence[Any]) -> list[Array]:
        """Return the wanted arrays."""
        if self._single is not None:
            function, positions = self._single
            return [_of(self._dtypes[0], function(*[arrays[i] for i in positions]))]
        values = [*arrays, *self._constants]
        if self._halves:
            values = [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in values]
        for function, positions in self._steps:
            values.append(function(*[values[i] for i in positions]))
        result = [values[i] for i in self._outputs]
        return [_of(d, a) for a, d in zip(result, self._dtypes, strict=True)]


def _of(dtype: Any, a: Array) -> Array:
    return a if a.dtype == dtype else a.astype(dtype)


class Pull:
    """The VJP rule of a recipe for those of its inputs that require gradients: `grad_inputs` are its results.

    `reads` are the indices of what it reads; the last two inputs of the program are the result and its gradient.
    """

    def __init__(self, recipe: Recipe, active: tuple[int, ...]) -> None:
        self.active = active
        graph = Graph.of({str(i): n for i, n in enumerate(recipe.inputs)}, {"y": recipe.output})
        swept = sweep(graph, map(str, active))
        # The result is an input: it is not computed again.
        y = leaf(recipe.output.shape, recipe.output.dtype)
        new = substituted([swept.gradients[str(i)] for i in active], {recipe.output: y})
        self.inputs = [*recipe.inputs, y, swept.cotangents["y"]]
        self.grad_inputs = [cast(n, recipe.inputs[i].dtype) for n, i in zip(new, active, strict=True)]
        self._swept, self._result = swept, (recipe.output, y)
        self.derivatives: dict[Any, tuple[str, list[int], list[int], Any]] = {}  # as operations: see `double_backward`
        self.program = Program(self.inputs, self.grad_inputs)
        self.reads = self.program.reads - {len(recipe.inputs) + 1}  # all but the gradient
        self._op = recipe.op
        self._saved: dict[str, tuple[Collection[int], bool]] = {}

    @cached_property
    def _inner(self) -> tuple[Mapping[Edge, int], Sequence[Edge], Sequence[Node], Program]:
        """The edges whose contributions are gradients of inputs, the other edges, the nodes within, and a program.

        The program computes the contributions of the other edges, then the adjoints of the nodes.
        """
        passes, positions = self._swept.passes, {self.inputs[i]: i for i in self.active}
        readers = Counter(p.argument for p in passes)
        ends = {
            (p.node, p.position): positions[p.argument]
            for p in passes
            if readers[p.argument] == 1 and p.argument in positions
        }
        edges = {(p.node, p.position): p.contribution for p in passes if (p.node, p.position) not in ends}
        nodes = {p.argument: self._swept.adjoints[p.argument] for p in passes if p.argument not in positions}
        outputs = substituted([*edges.values(), *nodes.values()], dict([self._result]))
        return ends, [*edges], [*nodes], Program(self.inputs, outputs)

    def traced(self, arrays: Sequence[Any], grads: Sequence[Any]) -> tuple[dict[Edge, Array], dict[Node, Array]]:
        """Return the contributions of all edges within the recipe, and the adjoints of its nodes, in a backward.

        `grads` are the gradients of the inputs, by index.  Both are empty where a step has not kept what they take.
        """
        ends, edges, nodes, program = self._inner
        contributions = {edge: grads[i]._a for edge, i in ends.items() if grads[i] is not None}
        if any(arrays[i] is None for i in program.reads):
            return contributions, {}
        computed = iter(program(arrays) if edges or nodes else ())
        return contributions | {e: next(computed) for e in edges}, {n: next(computed) for n in nodes}

    def saved(self, name: str) -> tuple[Collection[int], bool]:
        """Return the indices of what PyTorch saves under a step's name, and whether it saves anything.

        The result's index comes after those of the inputs.
        """
        if name not in self._saved:
            known = fact("saves", name)
            saves = fact("saves", self._op) if known is None else known
            self._saved[name] = (self.reads, bool(self.reads)) if saves is None else self._of_table(saves)
        return self._saved[name]

    def _of_table(self, saves: str) -> tuple[Collection[int], bool]:
        parts, count = saves.split(","), len(self.inputs) - 2  # constants are not inputs
        result = "".join([parts[min(i, len(parts) - 1)] for i in self.active])
        indices = [count if c == "y" else int(c) for c in result if c == "y" or (c != "-" and int(c) < count)]
        return indices, bool(result)


class Recipe:
    """A call of an operation, for arrays of these shapes and dtypes: `output` in terms of `inputs`.

    A gradient that a double backward differentiates knows the operation that it is the gradient of.
    """

    def __init__(self, op: str, settings: Any, inputs: Sequence[Node], output: Node, gradient_of: str = "") -> None:
        self.op, self.settings, self.inputs, self.gradient_of = op, settings, tuple(inputs), gradient_of
        self.is_view = _is_view(output)
        if self.is_view and fact("view", op) is None:  # what PyTorch copies
            self.is_view, output = False, Node("identity", (output,), output.shape)
        self.output = output
        # An elementwise result has the memory layout of its operands; all others are contiguous.
        self.is_dense = not self.is_view and any(
            n.args and n.op != "cast" and not OPERATIONS[n.op].broadcasts for n in scheduled([output])
        )
        self.program = Program(inputs, [output])
        self.pulls: dict[tuple[int, ...], Pull] = {}

    @cached_property
    def _inner(self) -> tuple[Sequence[Node], Program]:
        """The nodes between the inputs and the output, and a program for them."""
        nodes = [n for n in scheduled([self.output], self.inputs) if n.args and n is not self.output]
        return nodes, Program(self.inputs, nodes)

    def inner_values(self, arrays: Sequence[Array]) -> dict[Node, Array]:
        """Return the values of the nodes between the inputs and the output, which a call computes and does not keep."""
        nodes, program = self._inner
        with np.errstate(all="ignore"):
            return dict(zip(nodes, program(arrays), strict=True)) if nodes else {}

    def pull(self, active: tuple[int, ...]) -> Pull:
        """Return the VJP rule for the inputs at these indices."""
        if active not in self.pulls:
            self.pulls[active] = Pull(self, active)
        return self.pulls[active]


def _is_view(node: Node) -> bool:
    """Return whether a result may show the memory of the only input."""
    while node.args and OPERATIONS[node.op].kind == "view" and node.op != "cast":
        node = node.args[0]
    return node.is_leaf


_RECIPES: dict[Any, Recipe] = {}


def recipe_for(key: Any, build: Callable[..., Node], arrays: Sequence[Array]) -> Recipe:
    """Return the recipe of a call: the one that is kept under the key, or one that `build` makes of nodes.

    Errors: `RuntimeError` in PyTorch's words, for shapes that do not fit.
    """
    recipe = _RECIPES.get(key)
    if recipe is None:
        inputs = [leaf(a.shape[:-1], a.dtype.name) for a in arrays]  # type: ignore[arg-type]
        if len(_RECIPES) >= _KEPT:
            _RECIPES.clear()
        try:
            output = build(*inputs)
        except InputError as error:
            raise _in_pytorchs_words(key[0], error, inputs) from None
        recipe = _RECIPES[key] = Recipe(key[0], key[1], inputs, output)
    return recipe


def _in_pytorchs_words(op: str, error: InputError, operands: Sequence[Node]) -> Exception:
    """Return PyTorch's error for shapes that do not broadcast or are too large, or else the constructor's message."""
    if error.key == "size of an array":
        return torch_error("no room", math.prod(error.facts) * np.dtype(operands[0].dtype).itemsize)
    if error.key == "broadcast":
        return torch_error("sizes that do not broadcast", *error.facts)
    return RuntimeError(f"{op}(): {error.message}" + (f" ({error.hint})" if error.hint else ""))


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Errors: `RuntimeError` in PyTorch's words, for those that do not.
    """
    try:
        return graph_shapes.common_shape(map(tuple, shapes))
    except InputError as error:
        raise torch_error("sizes that do not broadcast", *error.facts) from None
