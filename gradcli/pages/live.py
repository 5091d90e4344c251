"""A live page as data: each value with the function that computes it, each pass with the adjoints it adds.

The functions are JavaScript, exported from the graphs that everything else comes from: one for each kind of operation,
of its passes and of its local derivatives.  Equal operations share theirs, so that a page of 2,000 of them has a few
dozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gradcli.codegen.helpers import needed
from gradcli.codegen.javascript import HELPERS, RESERVED, body
from gradcli.codegen.program import Function, loop_function
from gradcli.engine.evaluate import constant
from gradcli.errors import InputError
from gradcli.graph.calls import definition_of, is_call
from gradcli.graph.graph import Graph, appearance, dimensions, scheduled
from gradcli.graph.names import fresh_names
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.shapes import Shape
from gradcli.graph.vjp import active_nodes, reverse, sweep
from gradcli.notation.nodes import Notation, readable_names
from gradcli.pages.backward.loss import loss_name
from gradcli.pages.backward.steps import rule
from gradcli.pages.corners import condition
from gradcli.pages.formulas import formula_count, symbolic
from gradcli.pages.not_finite import SAFER, safer_operation
from gradcli.pages.picture.boxes import Kind, Picture, View, one_notation
from gradcli.pages.picture.picture import folded, picture
from gradcli.pages.recurrence import Folded
from gradcli.pages.results import Array, Named, style_of
from gradcli.pages.rounds import Reads
from gradcli.pages.sections import Math
from gradcli.pages.system import recurrence_lines
from gradcli.pages.trace import Trace, numeric_trace

_OUTPUTS = 6  # in the title: a line
_ENTRIES = 36  # of a Jacobian that is shown: a matrix of 6 by 6
_ELEMENTS = 400  # of a system whose Jacobian has formulas: more would keep the reader waiting
_LONG = 60  # letters of an expression that a sentence names: a line
_LETTERS = 28  # of such a formula: the width of a column
_OPENING = 60  # boxes of a drawing that open: more are too many to look into
_INSIDE = 60  # operations of an inside
_DEEPEST = 2  # definitions within each other
_KINDS = {"input": "leaf", "const": "constant"}
ADJOINT, RESULT = -1, -2  # what a function may read beside the arguments of its operation


@dataclass(frozen=True)
class LiveNode:
    """A value: its names, what computes it from the nodes `args`, and its value and adjoint at the first point.

    `formula` is in the names of the nodes around it, and `written` in the user's names; both are empty for a leaf.
    `call` is None for a leaf, and for a constant, which has no name.
    """

    name: str
    bar: str
    kind: Kind | str
    shape: Shape
    single: bool
    formula: str
    written: str
    args: tuple[int, ...]
    call: Call | None
    value: Array
    adjoint: Array | None
    within: int = -1  # the sum that an addition is a part of
    fix: str = ""  # what keeps it finite


@dataclass(frozen=True)
class LivePass:
    """A pass of the sweep: from a node to the argument at a position, with its rule as text."""

    node: int
    position: int
    rule: str
    pull: Pull


@dataclass(frozen=True)
class LiveCorner:
    """A node that may have a corner: the call that returns at which elements, and the note on it.

    `argument` is the node whose value is named, in the user's names, which is empty where it would be long;
    `expression` is what has the corner.
    """

    node: int
    argument: int
    name: str
    expression: str
    taken: str
    call: Call


@dataclass(frozen=True)
class LiveInside:
    """What a box opens to: the nodes in it one by one, or the definition of a call as a page of its own.

    `inside` are the page's nodes in each box of the drawing; `call` is that of the page, and `args` are its arguments,
    in the order of the inputs of the definition.
    """

    drawing: Picture
    inside: tuple[tuple[int, ...], ...]
    page: LivePage | None = None
    call: int = -1
    args: tuple[int, ...] = ()


@dataclass(frozen=True)
class LivePage:
    """A live page: the nodes in the order of computation, the passes in theirs, and the texts around them.

    `statements` are the nodes that have lines of their own, and `recurrences` the lines of loops;  `wrt` are the leaves
    that have gradients;  `v` are the cotangents, by the nodes of the outputs.  `inside` are the nodes in each box of
    the drawing, and `rounds` what has the sizes that a loop shows, by the node of its box: adjoints `a3` and passes
    `p5`, added by `+`, round by round.  `command` is the command that shows the same numbers, without its point.
    """

    title: str
    scalar: str
    nodes: tuple[LiveNode, ...]
    passes: tuple[LivePass, ...]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    wrt: tuple[int, ...]
    v: Named
    statements: tuple[int, ...]
    drawing: Picture
    inside: tuple[tuple[int, ...], ...]
    rounds: Mapping[int, Sequence[str]]
    recurrences: Sequence[tuple[Math, ...]] = ()
    corners: tuple[LiveCorner, ...] = ()
    command: str = ""
    pytorch: tuple[Mapping[str, str], Sequence[str]] | None = None
    jacobian: Sequence[Sequence[str]] | None = None
    insides: Mapping[int, LiveInside] = field(default_factory=dict)


def live(
    graph: Graph, view: View, kernels: Kernels, command: str = "", formulas: bool = False, within: _Within | None = None
) -> LivePage:
    """Return the page of a system at a point; without one, all inputs are 1, and so is a cotangent that is missing.

    With `formulas`, also those of a small Jacobian, the system in PyTorch, and the insides of the boxes that open.  A
    definition is `within` another page.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> page = live(Graph.of({"x": x}, {"y": x * x}), View(["x"], {"x": np.array(3.0)}), Kernels())
    >>> [(n.name, n.formula, float(n.value), float(n.adjoint)) for n in page.nodes]
    [('x', '', 3.0, 6.0), ('y', 'x*x', 9.0, 1.0)]
    """
    system = graph
    graph, view = folded(graph, view)
    v = view.v or {name: np.ones(y.shape) for name, y in graph.outputs.items()}
    scalar = within.loss if within else loss_name(graph, v)
    drawing = picture(graph, replace(view, at=None, v=None), scalar, within.barred if within else True)
    loops = view.loops or Folded(graph)
    at = view.at or {name: np.ones(x.shape) for name, x in graph.inputs.items()}
    swept = sweep(graph, view.wrt)
    with np.errstate(all="ignore"):
        trace = replace(numeric_trace(graph, swept, at, [v]), names=drawing.names)
    indices = {n: k for k, n in enumerate(graph.nodes)}
    passes = []
    for p in swept.passes:
        bars = [one_notation(trace.names[n], scalar, drawing.barred) for n in (p.node, p.argument)]
        rule_text = rule(p, trace.names, bars[0], bars[1], trace.several(p.argument)).text
        passes.append(LivePass(indices[p.node], p.position, rule_text, kernels.pull(p.node, p.position)))
    within = within or (_Within(scalar, drawing.barred, frozenset(trace.names.values())) if formulas else None)
    return LivePage(
        insides={} if within is None else _insides(graph, indices, drawing, trace, kernels, within),
        title=", ".join(list(graph.outputs)[:_OUTPUTS]),
        scalar=scalar,
        nodes=tuple(_nodes(graph, indices, trace, kernels, scalar, drawing)),
        passes=tuple(passes),
        inputs={name: indices[graph.inputs[name]] for name in appearance(graph)},
        outputs={name: indices[n] for name, n in graph.outputs.items()},
        wrt=tuple(indices[graph.inputs[name]] for name in view.wrt),
        v=v,
        statements=tuple(indices[n] for n in _statements(loops.graph)),
        drawing=drawing,
        inside=tuple(tuple(indices[n] for n in box.nodes) for box in drawing.boxes),
        rounds=_rounds(drawing, indices, {(p.node, p.position): k for k, p in enumerate(swept.passes)}),
        recurrences=[line.sides for loop in loops.loops for line in recurrence_lines(loop)],
        corners=tuple(_corners(graph, indices, view.wrt, kernels)),
        command=command,
        pytorch=_pytorch(system, loops) if formulas else None,
        jacobian=_jacobian(graph, [name for name in appearance(graph) if name in view.wrt], formulas),
    )


class _Within(NamedTuple):
    """What a definition has of the page that it is in: the loss, the notation, the names that are taken, its depth."""

    loss: str
    barred: bool
    taken: frozenset[str]
    depth: int = 0


def _insides(
    graph: Graph, indices: Mapping[Node, int], drawing: Picture, trace: Trace, kernels: Kernels, within: _Within
) -> Mapping[int, LiveInside]:
    """Return what the boxes of a drawing open to, by their indices; of many boxes, none."""
    result: dict[int, LiveInside] = {}
    if len(drawing.boxes) > _OPENING or within.depth > _DEEPEST:
        return result
    for k, box in enumerate(drawing.boxes):
        inner = None
        if len(box.nodes) == 1 and is_call(box.nodes[0]):
            inner = _definition(box.nodes[0], indices, trace, kernels, within)
        elif (
            1 < len(box.nodes) <= _INSIDE
            and all(n.args for n in box.nodes)
            and drawing.names.get(box.nodes[0]) != drawing.names.get(box.nodes[-1])
        ):
            inner = _one_by_one(graph, box.nodes, indices, trace, within)
        if inner is not None:
            result[k] = inner
    return result


def _definition(
    node: Node, indices: Mapping[Node, int], trace: Trace, kernels: Kernels, within: _Within
) -> LiveInside | None:
    """Return the definition of a call, whose inputs are its arguments; None for one that is large, or no more."""
    names = trace.names
    read = [a for a in dict.fromkeys(node.args) if a in names and not a.is_constant]
    arguments = {a: leaf(a.shape, a.dtype) for a in read}
    result = definition_of(node.with_args(tuple(arguments.get(a, a) for a in node.args)))
    computed = [n for n in scheduled([result]) if n.args]
    if not 1 < len(computed) <= _INSIDE:
        return None
    taken = set(within.taken)
    fresh = fresh_names(taken)
    inner_names = {next(fresh): n for n in computed if n is not result}
    inputs = {names[a]: x for a, x in arguments.items()}
    inner = Graph.of(inputs, {names[node]: result}, names=inner_names | {names[node]: result})
    wrt = [names[p.argument] for p in trace.swept.passes if p.node is node and p.argument in arguments]
    adjoint = trace.calls[0].adjoints.get(node)
    view = View(
        [*dict.fromkeys(wrt)],
        {names[a]: trace.values[a] for a in read},
        {names[node]: np.ones(node.shape) if adjoint is None else adjoint},
        fold=False,
    )
    deeper = _Within(within.loss, within.barred, frozenset(taken | {*inner_names}), within.depth + 1)
    page = live(inner, view, kernels, within=deeper)
    args = tuple(indices[a] for name in page.inputs for a in read if names[a] == name)
    return LiveInside(page.drawing, page.inside, page, indices[node], args)


def _one_by_one(
    graph: Graph, nodes: Sequence[Node], indices: Mapping[Node, int], trace: Trace, within: _Within
) -> LiveInside:
    """Return the operations of a box, and what they read as leaves."""
    names, inside = trace.names, {*nodes}
    outer = dict.fromkeys(a for n in nodes for a in n.args if a not in inside and a in names and not a.is_constant)
    leaves = {a: leaf(a.shape, a.dtype) for a in outer}
    copies = dict(zip(nodes, substituted([*nodes], leaves), strict=True))
    read_outside = {a for n in graph.nodes if n not in inside for a in n.args} | {*graph.outputs.values()}
    ends = [n for n in nodes if n in read_outside or n is nodes[-1]]
    named = {names[n]: copy for n, copy in copies.items() if n in names}
    inner = Graph.of({names[a]: x for a, x in leaves.items()}, {names[n]: copies[n] for n in ends}, names=named)
    wrt = [names[p.argument] for p in trace.swept.passes if p.argument in leaves]
    drawing = picture(inner, View(wrt, fold=False), within.loss, within.barred)
    index = {copy: indices[n] for n, copy in (copies | leaves).items()} | dict(indices)
    return LiveInside(drawing, tuple(tuple(index[n] for n in box.nodes if n in index) for box in drawing.boxes))


def _rounds(
    drawing: Picture, indices: Mapping[Node, int], passes: Mapping[tuple[Node, int], int]
) -> Mapping[int, Sequence[str]]:
    """Return what has the sizes of each box's rounds."""

    def written(reads: Reads) -> str:
        return "+".join(f"p{passes[r]}" if isinstance(r, tuple) else f"a{indices[r]}" for r in reads)

    by_name = {drawing.names[n]: indices[n] for box in drawing.boxes if box.rounds for n in box.nodes}
    return {
        by_name[box.name]: [";".join(written(rounds.reads[k]) for k in sorted(rounds.reads)) for rounds in box.rounds]
        for box in drawing.boxes
        if box.rounds
    }


def _corners(graph: Graph, indices: Mapping[Node, int], wrt: Sequence[str], kernels: Kernels) -> Iterator[LiveCorner]:
    notation = Notation(readable_names(graph))
    active = active_nodes(graph, [graph.inputs[name] for name in wrt])
    for node in graph.nodes:
        corner = condition(node, active)
        if corner is None:
            continue
        argument, expression = corner.argument, notation.expression(node)
        if len(expression) > _LONG:
            expression = notation.names.get(node, f"{expression[: _LONG - 1]}…")
        name = notation.name(argument)
        name = f"({name})" if argument.shape and argument not in notation.names else name
        name = name if len(name) <= _LONG else ""
        yield LiveCorner(indices[node], indices[argument], name, expression, corner.taken, kernels.corner(node))


def _pytorch(graph: Graph, loops: Folded) -> tuple[Mapping[str, str], Sequence[str]] | None:
    """Return the statements of the system in PyTorch, and its names; None where PyTorch does not have an operation."""
    from gradcli.pages.backward.torch_script import statements

    try:
        names, lines = statements(graph)
    except InputError:
        return None
    return {loops.renamed.get(name, name): torch for name, torch in names.items()}, lines


def _jacobian(graph: Graph, wrt: Sequence[str], formulas: bool) -> Sequence[Sequence[str]] | None:
    """Return the formulas of J that can be read, an empty text for each of the others; None where J is large."""
    rows, columns = dimensions(graph, wrt)
    if not 0 < rows * columns <= _ENTRIES:
        return None
    texts = [[""] * columns for _ in range(rows)]
    if not formulas or formula_count(graph) > _ELEMENTS:
        return texts
    from gradcli.algebra.formulas import TooDeepError
    from gradcli.notation.formulas import code

    style = style_of(graph)
    try:
        entries_of = symbolic(graph, wrt)
        if not entries_of.where:
            for (i, j), entry in entries_of.entries.items():
                formula = code(entry, style.decimals, style.taken)
                texts[i][j] = formula if len(formula) <= _LETTERS else ""
    except (InputError, TooDeepError):
        pass
    return texts


def _statements(graph: Graph) -> list[Node]:
    """Return the nodes with a line each: computed nodes with a name, and outputs, which may be inputs."""
    outputs = set(graph.outputs.values())
    return [n for n in dict.fromkeys([*graph.names.values(), *graph.outputs.values()]) if n.args or n in outputs]


def _nodes(
    graph: Graph, indices: Mapping[Node, int], trace: Trace, kernels: Kernels, scalar: str, drawing: Picture
) -> Sequence[LiveNode]:
    outputs = {*graph.outputs.values()}
    # An addition within a sum has the sum's name, and no formula of its own.
    sums = {n: box.nodes[-1] for box in drawing.boxes for n in box.nodes[:-1] if trace.names[n] == box.name}
    notation = Notation({n: name for n, name in trace.names.items() if n not in sums})
    readable, reverse = Notation(readable_names(graph)), trace.calls[0]
    result = []
    for n in graph.nodes:
        name = trace.names.get(n, "")
        computed = bool(n.args)
        result.append(
            LiveNode(
                name=name,
                bar=one_notation(name, scalar, drawing.barred) if name else "",
                kind="output" if n in outputs else _KINDS.get(n.op, "intermediate"),
                shape=n.shape,
                single=n.dtype == "float32",
                formula=notation.expression(sums.get(n, n)) if computed else "",
                written=_written(graph, n, readable) if computed and n in graph.labels else "",
                args=tuple(indices[a] for a in n.args),
                call=kernels.forward(n) if computed else None,
                value=trace.values[n] if not n.is_constant else constant(n)[..., 0].astype(float),
                adjoint=reverse.adjoints.get(n),
                within=indices[sums[n]] if n in sums else -1,
                fix=safer_operation(n, trace.names) if SAFER.get(n.op) else "",
            )
        )
    return result


def _written(graph: Graph, node: Node, readable: Notation) -> str:
    """Return the formula of a node: the model's own text, or one in the user's names."""
    return graph.spans[node].line if graph.parts and node in graph.spans else readable.expression(node)


class Call(NamedTuple):
    """A call of a function: its index, and what it reads: arguments by their positions, or one of the above."""

    function: int
    reads: tuple[int, ...]


class Pull(NamedTuple):
    """The calls of a node's contribution to an argument and, for an elementwise node, of its local derivative."""

    contribution: Call
    slope: Call | None


@dataclass
class Kernels:
    """The functions of a program, which several pages may share.

    >>> x = leaf()
    >>> kernels = Kernels()
    >>> kernels.forward(x * x), kernels.forward(leaf() * leaf())
    (Call(function=0, reads=(0, 1)), Call(function=0, reads=(0, 1)))
    """

    functions: list[Function] = field(default_factory=list)
    _calls: dict[Any, Call] = field(default_factory=dict)
    _pulls: dict[Any, Pull] = field(default_factory=dict)

    def forward(self, node: Node) -> Call:
        """Return the call that computes a node from its arguments."""
        key = "forward", _signature(node)
        if key not in self._calls:
            self._calls[key] = self._add(*standing_alone(node))
        return self._calls[key]

    def pull(self, node: Node, position: int) -> Pull:
        """Return the calls of the VJP rule of a node for one argument."""
        key = _signature(node), position
        if key not in self._pulls:
            alone, arguments = standing_alone(node)
            adjoint = leaf(alone.shape, alone.dtype)
            active = {alone, alone.args[position]}
            graph = Graph.of({f"a{i}": a for i, a in arguments.items()}, {"y": alone})
            (contribution,) = reverse(graph, [(alone, adjoint)], active)[0]
            read = arguments | {ADJOINT: adjoint, RESULT: alone}
            slope = None if contribution.slope is None else self._add(contribution.slope, read)
            self._pulls[key] = Pull(self._add(contribution.contribution, read), slope)
        return self._pulls[key]

    def corner(self, node: Node) -> Call:
        """Return the call that computes at which elements a node has its corner, from the node and its arguments."""
        key = "corner", _signature(node)
        if key not in self._calls:
            alone, arguments = standing_alone(node)
            corner = OPERATIONS[node.op].corner
            assert corner is not None
            self._calls[key] = self._add(corner.at(alone, *alone.settings, *alone.args), arguments | {RESULT: alone})
        return self._calls[key]

    def _add(self, result: Node, read: Mapping[int, Node]) -> Call:
        """Add the function of a node that is computed from some others, which become its arguments."""
        known = {n: leaf(n.shape, n.dtype) for n in read.values() if not n.is_leaf}
        if known:
            (result,) = substituted([result], known)
        names = {known.get(n, n): k for k, n in read.items()}
        used = [(names[n], n) for n in scheduled([result]) if n in names]
        inputs = {f"a{k}" if k >= 0 else "gy"[-k - 1]: n for k, n in used}
        name = f"k{len(self.functions)}"
        self.functions.append(loop_function(name, Graph.of(inputs, {"r": result}), RESERVED | {name}))
        return Call(len(self.functions) - 1, tuple(k for k, _ in used))

    def program(self) -> str:
        """Return the functions as JavaScript: a list of them, in their order."""
        called: set[str] = set()
        tables: list[str] = []
        first: dict[str, int] = {}  # functions of different shapes may be the same program
        names = []
        for k, function in enumerate(self.functions):
            used, statements = body(function, called)
            tables += used
            text = f"({', '.join(function.arguments)}) {{\n" + "\n".join(statements)
            names.append(f"k{first.setdefault(text, k)}")
        helpers = [line for lines in needed(called, HELPERS) for line in lines]
        functions = [f"function k{k}{text}\n}}" for text, k in first.items()]
        lines = [*helpers, *tables, *functions, f"const KERNELS = [{', '.join(names)}];"]
        short = (line.strip() for line in "\n".join(lines).splitlines())
        return "\n".join(line for line in short if line and not line.startswith("//")) + "\n"


def standing_alone(node: Node) -> tuple[Node, dict[int, Node]]:
    """Return the same operation of leaves and of single constants, and these leaves by their positions."""
    arguments = {i: leaf(a.shape, a.dtype) for i, a in enumerate(node.args) if a.value is None}
    return node.with_args(tuple(arguments.get(i, a) for i, a in enumerate(node.args))), arguments


def _signature(node: Node) -> Sequence[Any]:
    """Return a key that is equal for operations with the same function."""
    arguments = tuple((a.shape, a.dtype, str(a.value) if a.value is not None else None) for a in node.args)
    return node.op, node.settings, arguments, node.shape, node.dtype
