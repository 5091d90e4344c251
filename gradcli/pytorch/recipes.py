"""Recipes: what an operation on arrays of some shapes computes, and the gradients of its inputs.

A recipe is a small graph, made by a constructor of the vocabulary once for each kind of call and kept.  Its numbers
come from the engine, and its pullback from `vjp`, both worked out once: a step of a loop only runs them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import constant
from gradcli.engine.lowering import lower
from gradcli.engine.numpy_target import forward
from gradcli.engine.straight_line import function_of, statements
from gradcli.errors import InputError
from gradcli.graph import shapes as graph_shapes
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, cast, const, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions, substituted
from gradcli.graph.vjp import residuals_of, sweep
from gradcli.pytorch.chains import name_of
from gradcli.pytorch.functions import fact
from gradcli.pytorch.layouts import gradient_layout, is_elementwise, is_moved
from gradcli.pytorch.messages import own_text, torch_error
from gradcli.record.definition import Definition

Array = np.ndarray[Any, Any]
Build = Callable[..., Node]
Number = Any  # an array of one number or of indices, or a tuple: the position of a part along each axis

_KEPT = 4096  # recipes
_NONE: Mapping[Node, Node] = MappingProxyType({})


class _Quiet(threading.local):
    """A context in which NumPy does not warn, for each thread: to enter `np.errstate` takes longer than to multiply."""

    def __init__(self) -> None:
        with np.errstate(all="ignore"):
            self.run = copy_context().run


QUIET = _Quiet()


def _single(node: Node) -> Node:
    """Return a node of float16 as one of float32: an operation on halves rounds once, at its end."""
    return node if node.dtype != "float16" else Node(node.op, node.args, node.shape, node.settings, "float32")


def _matmul(node: Node) -> Callable[..., Array]:
    """Return the product of two arrays at the only point, by BLAS.

    A column times a row has one product in each entry, and PyTorch adds it to nothing: -1 times 0 stays -0.
    """
    a, b = (n.shape for n in node.args)
    if len(a) == len(b) == 2 and a[1] == 1 < min(a[0], b[1]):
        return np.multiply
    return lambda a, b: np.matmul(a[..., 0], b[..., 0])[..., None]


def _remainder(a: Array, b: Array) -> Array:
    """Return the remainders of divisions, which have the signs of the divisors; of 0 it is the dividend's, as in C."""
    result = np.mod(a, b)
    return np.where(result == 0, np.fmod(a, b), result)


# What PyTorch computes otherwise than the engine.
_KERNELS: Mapping[str, Callable[[Node], Callable[..., Array]]] = {"matmul": _matmul, "mod": lambda node: _remainder}


def _function(node: Node) -> Callable[..., Array]:
    """Return the function that computes a node from the arrays of its arguments."""
    return _KERNELS.get(node.op, forward)(_single(node))


class Program:
    """Nodes ready to be computed by `run` from arrays in the engine's layout, with one point.

    `run` returns a list of the outputs; `reads` are the indices of the inputs that it needs.
    """

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], known: Mapping[Node, Node] = _NONE) -> None:
        """Make a program; `known` are nodes whose values are inputs, with these."""
        wanted = [*outputs, *known]
        same = common_subexpressions(scheduled(wanted, inputs))
        simpler = lower(scheduled([same[n] for n in wanted], inputs))
        kept = [simpler[same[n]] for n in outputs]
        if known:
            kept = list(substituted(kept, {simpler[same[n]]: new for n, new in known.items()}))
        nodes = scheduled(kept)
        used = set(nodes)
        self.reads = frozenset(i for i, n in enumerate(inputs) if n in used)
        names, lines, values = statements(inputs, nodes, kept, lambda n: constant(_single(n)), _function)
        halves = [names[n] for n in inputs if n in used and n.dtype == "float16"]
        values |= {"float32": np.float32} | {f"d{i}": np.dtype(n.dtype) for i, n in enumerate(outputs)}
        results = [(names[n], f"d{i}") for i, n in enumerate(kept)]
        self.run: Callable[..., list[Array]] = function_of(
            [names[n] for n in inputs],
            [
                *(f"{x} = {x}.astype(float32)" for x in halves),
                *lines,
                f"return [{', '.join(f'{y} if {y}.dtype == {d} else {y}.astype({d})' for y, d in results)}]",
            ],
            values,
        )


class _Rule(NamedTuple):
    """A VJP rule as nodes: its inputs, and the gradients."""

    inputs: Sequence[Node]
    grad_inputs: Sequence[Node]


class Pull:
    """The VJP rule of a recipe for those of its inputs that require gradients: `grad_inputs` are its results.

    The inputs of the program are the operands, the results, the numbers, the residuals of calls, which the forward pass
    has computed, and the gradients of the results.  `reads` are the indices of what it reads of operands and results;
    `following` are the indices of the inputs whose gradients have their memory layout.
    """

    def __init__(self, recipe: Recipe, active: tuple[int, ...]) -> None:
        self._recipe, self.active = recipe, active
        self.lacks_derivative = False
        rule = self._derived()  # which is not kept: most scripts need the numbers alone
        self.derivatives: dict[Any, Any] = {}  # as operations: see `double_backward`
        self._count = len(recipe.operands)
        known = {n: leaf(n.shape, n.dtype) for n in recipe.residuals}
        end = len(rule.inputs) - len(recipe.outputs)
        inputs = [*rule.inputs[:end], *known.values(), *rule.inputs[end:]]
        self.program = Program(inputs, rule.grad_inputs, known)
        ends = range(self._count + len(recipe.outputs))
        self.reads = self.program.reads.intersection(ends)
        self.meant = self.reads  # of the rule without residuals
        if known:
            self.meant = Program(rule.inputs, rule.grad_inputs).reads.intersection(ends)
        op = recipe.gradient_of or recipe.op
        layouts = [gradient_layout(op, recipe.operands, recipe.output, n) for n in rule.grad_inputs]
        self.following = [i for i, layout in zip(active, layouts, strict=True) if layout == "as input"]
        self._ordered = [(k, i) for k, i in enumerate(active) if layouts[k] != "as computed"]
        self.known: dict[str, Saved] = {}  # what `saved` has returned

    def _derived(self) -> _Rule:
        """Return the rule as nodes; the results are inputs: they are not computed again."""
        recipe = self._recipe
        outputs = {f"y{i}": n for i, n in enumerate(recipe.outputs)}
        graph = Graph.of({str(i): n for i, n in enumerate(recipe.inputs)}, outputs)
        try:
            swept = sweep(graph, map(str, self.active))
        except InputError as error:
            if error.key != "no slope":
                raise
            self.lacks_derivative = True  # an error of the backward pass, in PyTorch too
            swept = sweep(graph, ())
        results = {n: leaf(n.shape, n.dtype) for n in recipe.outputs}
        zeros = {str(i): const(0, recipe.inputs[i].shape) for i in self.active} if self.lacks_derivative else {}
        gradients = {**zeros, **swept.gradients}
        new = substituted([gradients[str(i)] for i in self.active], results)
        inputs = [*recipe.operands, *results.values(), *recipe.numbers, *(swept.cotangents[y] for y in outputs)]
        grads = [cast(n, recipe.inputs[i].dtype) for n, i in zip(new, self.active, strict=True)]
        return _Rule(inputs, grads)

    _rule = cached_property(_derived)

    @property
    def inputs(self) -> Sequence[Node]:
        """The inputs as nodes."""
        return self._rule.inputs

    @cached_property
    def read_twice(self) -> Collection[Node]:
        """The nodes that the rule reads where nothing is known of its calls: in a double backward."""
        return frozenset(scheduled(self.grad_inputs))

    @property
    def grad_inputs(self) -> Sequence[Node]:
        """The gradients as nodes."""
        return self._rule.grad_inputs

    def computed(self, arrays: Sequence[Any], columns: Collection[int]) -> list[Array]:
        """Return the gradients, in PyTorch's layout; those of the inputs at the indices `columns` are column-major."""
        grads = self.program.run(*arrays)
        for k, i in self._ordered:
            grads[k] = np.asfortranarray(grads[k]) if i in columns else np.ascontiguousarray(grads[k])
        return grads

    def saved(self, name: str) -> Saved:
        """Return what a step of that name keeps."""
        known = fact("saves", name_of(name))
        saves = fact("saves", self._recipe.op) if known is None else known
        needed, keeps = (self.meant, bool(self.meant)) if saves is None else self._of_table(saves)
        kept = tuple((i, i in self.reads, i in needed, i < self._count) for i in sorted(self.reads.union(needed)))
        return self.known.setdefault(name, Saved(kept, keeps))

    def _of_table(self, saves: str) -> tuple[Collection[int], bool]:
        parts, count = saves.split(","), self._count  # constants are not inputs
        result = "".join([parts[min(i, len(parts) - 1)] for i in self.active])
        indices = [count if c == "y" else int(c) for c in result if c == "y" or (c != "-" and int(c) < count)]
        return indices, bool(result)


class Saved(NamedTuple):
    """What a step keeps for its backward, and whether PyTorch keeps anything.

    It is the index of each operand that is kept, and behind them that of the result, with whether the VJP rule reads
    it, whether PyTorch saves it, and whether it is an operand.
    """

    kept: tuple[tuple[int, bool, bool, bool], ...]
    keeps: bool


class Recipe:
    """A call of an operation, for arrays of these shapes and dtypes: `outputs` in terms of `inputs`.

    The inputs are the operands, and then the numbers: indices, positions, factors, which vary from call to call.  A
    gradient that a double backward differentiates knows the operation that it is the gradient of.
    """

    def __init__(
        self,
        op: str,
        settings: Any,
        operands: Sequence[Node],
        numbers: Sequence[Node],
        outputs: Sequence[Node],
        gradient_of: str = "",
    ) -> None:
        self.op, self.settings, self.gradient_of = op, settings, gradient_of
        self.operands, self.numbers, self.inputs = tuple(operands), tuple(numbers), (*operands, *numbers)
        self.is_view = all(map(is_moved, outputs))
        if self.is_view and fact("view", op) is None:  # what PyTorch copies
            self.is_view, outputs = False, [Node("identity", (n,), n.shape) for n in outputs]
        self.outputs, self.output, self.shapes = tuple(outputs), outputs[0], [n.shape for n in outputs]
        layout = fact("layout", op)
        self.is_elementwise = is_elementwise(self.output) if layout is None else layout == "operands"
        self.has_calls = any(n.args and OPERATIONS[n.op].kind == "call" for n in scheduled(self.outputs, self.inputs))
        self.pulls: dict[tuple[int, ...], Pull] = {}

    @cached_property
    def program(self) -> Program:
        """The program that computes the results."""
        return Program(self.inputs, self.outputs)

    @cached_property
    def residuals(self) -> Sequence[Node]:
        """The inner nodes of calls that a backward reads and does not compute again; none of a gradient."""
        if self.gradient_of:
            return ()
        calls = [n for n in scheduled(self.outputs, self.inputs) if n.args and OPERATIONS[n.op].kind == "call"]
        return list(dict.fromkeys(r for n in calls for r in residuals_of(n)))

    @cached_property
    def forward(self) -> Program:
        """The program that computes the results, and then the residuals."""
        return Program(self.inputs, [*self.outputs, *self.residuals]) if self.residuals else self.program

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """What each result is in operations of the table, as a record has it."""
        return tuple(Definition.of(self.inputs, n) for n in self.outputs)

    def pull(self, active: tuple[int, ...]) -> Pull:
        """Return the VJP rule for the inputs at these indices."""
        if active not in self.pulls:
            self.pulls[active] = Pull(self, active)
        return self.pulls[active]


_RECIPES: dict[Any, Recipe] = {}


def recipe_for(
    op: str, settings: Any, build: Callable[..., Any], arrays: Sequence[Array], numbers: Sequence[Number] = ()
) -> Recipe:
    """Return the recipe of a call: one that is kept, or one that `build` makes of nodes: its result, or several.

    It is kept by the operation, the settings, and the shapes and dtypes: nothing that varies from call to call is among
    the settings.

    Errors: `RuntimeError` in PyTorch's words, for shapes that do not fit.
    """
    parts: list[Any] = [op, settings]
    for a in arrays:
        parts += a.shape, a.dtype
    for n in numbers:
        parts += (len(n),) if type(n) is tuple else (n.shape, n.dtype)
    key = tuple(parts)
    recipe = _RECIPES.get(key)
    if recipe is None:
        nodes = [leaf(a.shape[:-1], a.dtype.name) for a in arrays]  # type: ignore[arg-type]
        for n in numbers:
            nodes.append(leaf((len(n),), "int64") if type(n) is tuple else leaf(n.shape[:-1], n.dtype.name))
        if len(_RECIPES) >= _KEPT:
            _RECIPES.clear()
        try:
            output = build(*nodes)
        except InputError as error:
            raise _in_pytorchs_words(op, error, nodes) from None
        count, outputs = len(arrays), output if isinstance(output, tuple) else (output,)
        recipe = _RECIPES[key] = Recipe(op, settings, nodes[:count], nodes[count:], outputs)
    return recipe


def _in_pytorchs_words(op: str, error: InputError, operands: Sequence[Node]) -> Exception:
    """Return PyTorch's error for shapes that do not broadcast or are too large, or else the constructor's message."""
    if error.key == "size of an array":
        return torch_error("no room", math.prod(error.facts) * np.dtype(operands[0].dtype).itemsize)
    if error.key == "broadcast":
        return torch_error("sizes that do not broadcast", *error.facts)
    return RuntimeError(own_text(f"{op}(): {error.message}" + (f" ({error.hint})" if error.hint else "")))


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Errors: `RuntimeError` in PyTorch's words, for those that do not.
    """
    try:
        return graph_shapes.common_shape(map(tuple, shapes))
    except InputError as error:
        raise torch_error("sizes that do not broadcast", *error.facts) from None
