"""What is exported, whatever the language: functions with arguments, results and steps, and a point to test them at."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.engine.lowering import lower
from gradcli.errors import InputError
from gradcli.graph.construct import reshape, scatter
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.hessian import gradient, hvp, scalar_output
from gradcli.graph.jacobian import jacobian
from gradcli.graph.jvp import jvp
from gradcli.graph.matrices import SMALL
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.passes import representatives
from gradcli.graph.shapes import Shape
from gradcli.graph.vjp import vjp

Array = np.ndarray[Any, Any]

WHAT = ("value", "vjp", "jacobian", "jvp", "hessian", "hvp")
MAX_ENTRIES = 10**6  # of a matrix that a function returns
MAX_NODES = 20_000  # steps of a function

# Operations that are written out for small matrices where a language has no linear algebra of its own.
_MATRICES = ("det", "inv", "solve", "cofactors")


@dataclass(frozen=True)
class Function:
    """One function: its arguments and results with their shapes, and its steps in the order in which they are computed.

    `names` has the identifiers of inputs and of the nodes that the user named; `readers` counts who reads a node.
    `test` holds the arguments and the results at the point, where there is one.
    """

    name: str
    about: str
    arguments: Mapping[str, Node]
    results: Mapping[str, Node]
    nodes: tuple[Node, ...]
    names: Mapping[Node, str]
    readers: Mapping[Node, int]
    test: tuple[Mapping[str, Array], Mapping[str, Array]] | None


@dataclass(frozen=True)
class Program:
    """A file: the system as the user wrote it, and its functions."""

    name: str
    system: tuple[str, ...]
    functions: tuple[Function, ...]

    def of(self, kind: str) -> Function | None:
        """Return the function of a kind, if it is exported."""
        wanted = self.name if kind == "value" else f"{self.name}_{kind}"
        return next((f for f in self.functions if f.name == wanted), None)


@dataclass(frozen=True)
class Wanted:
    """What is to be exported: which functions under what name, by which inputs, and a point to test them at."""

    name: str
    what: Sequence[str]
    wrt: Sequence[str]
    at: Mapping[str, Array] | None = None
    expand: bool = (
        False  # for a language of numbers: small inverses are written out, and results have names of their own
    )
    reserved: frozenset[str] = frozenset()


def program(graph: Graph, system: Sequence[str], wanted: Wanted) -> Program:
    """Return the program of a graph.

    Errors: `InputError` for matrices and functions that would be too large.
    """
    found = []
    for kind in wanted.what:
        about, of_kind = _KINDS[kind]
        found.append(_function(kind, about, of_kind(graph, wanted.wrt), wanted))
    return Program(wanted.name, tuple(system), tuple(found))


def _jacobian(graph: Graph, wrt: Sequence[str]) -> Graph:
    """Return the graph of the whole matrix J: rows are the elements of the outputs, columns those of the inputs."""
    blocks = jacobian(graph, wrt)
    return _matrix("J", graph.outputs, wrt, blocks, lambda y, x: f"d{y}/d{x}")


def _hessian(graph: Graph, wrt: Sequence[str]) -> Graph:
    slopes = gradient(graph, wrt)
    return _matrix("H", slopes.outputs, wrt, jacobian(slopes, wrt), lambda y, x: f"d{y}/d{x}")


def _matrix(
    name: str, rows: Mapping[str, Node], wrt: Sequence[str], blocks: Graph, block: Callable[[str, str], str]
) -> Graph:
    """Return the graph of a matrix made of blocks."""
    columns = {x: blocks.inputs[x].size for x in wrt}
    shape = (sum(y.size for y in rows.values()), sum(columns.values()))
    if shape[0] * shape[1] > MAX_ENTRIES:
        raise InputError(
            f"{name} would have {shape[0]:,} × {shape[1]:,} entries",
            hint="choose with --outputs and --wrt, or --what vjp",
        )
    parts = []
    i = 0
    for y, node in rows.items():
        j = 0
        for x, size in columns.items():
            found = blocks.outputs.get(block(y, x))
            if found is not None:
                key = (range(i, i + node.size), range(j, j + size))
                parts.append((key, reshape(found, (node.size, size))))
            j += size
        i += node.size
    whole = scatter(shape, parts) if parts else const(0, shape)
    return Graph.of(blocks.inputs, {name: whole}, names=blocks.names)


def _value(graph: Graph, wrt: Sequence[str]) -> Graph:
    return graph


_KINDS: dict[str, tuple[str, Callable[[Graph, Sequence[str]], Graph]]] = {
    "value": ("the outputs", _value),
    "vjp": ("the gradients: the cotangents times the Jacobian", vjp),
    "jvp": ("the Jacobian times the tangents", jvp),
    "jacobian": ("the Jacobian: a row for each element of the outputs, a column for each of the inputs", _jacobian),
    "hessian": ("the Hessian: a row and a column for each element of the inputs", _hessian),
    "hvp": ("the Hessian times the tangents", hvp),
}


def check(graph: Graph, what: Sequence[str]) -> None:
    """Refuse second derivatives of what is no scalar.

    Errors: `InputError`.
    """
    if {"hessian", "hvp"} & set(what):
        scalar_output(graph)


def _function(kind: str, about: str, graph: Graph, wanted: Wanted) -> Function:
    new = _simplified(graph, wanted.expand)
    results = {identifier(name): new[n] for name, n in graph.outputs.items()}
    nodes = scheduled(results.values())
    if len(nodes) > MAX_NODES:
        raise InputError(
            f"`{kind}` takes {len(nodes):,} steps, and a readable function has {MAX_NODES:,} at most",
            hint="choose with --what, --outputs and --wrt",
        )
    names = _names(graph, new, set(nodes), wanted.reserved | (set(results) if wanted.expand else set()))
    arguments = {names[n]: n for n in graph.inputs.values()}
    test = None
    if wanted.at is not None:
        values = {
            name: np.ones(n.shape) if name not in wanted.at else wanted.at[name] for name, n in graph.inputs.items()
        }
        found = evaluate(graph, {name: value[..., None] for name, value in values.items()})
        given = {names[graph.inputs[name]]: value for name, value in values.items()}
        test = (given, {identifier(name): np.asarray(v[..., 0], dtype=float) for name, v in found.items()})
    readers = Counter(a for n in nodes for a in n.args)
    readers.update(results.values())
    name = wanted.name if kind == "value" else f"{wanted.name}_{kind}"
    return Function(name, about, arguments, results, nodes, names, readers, test)


def _simplified(graph: Graph, expand: bool) -> dict[Node, Node]:
    """Return for each node what stands for it: in the few operations of engines, each written once."""
    first = representatives(graph.nodes)
    wanted = scheduled([first[n] for n in graph.nodes], graph.inputs.values())
    written = _written_out(wanted, expand)
    lowered = lower(scheduled([written[n] for n in wanted], graph.inputs.values()))
    low = {n: lowered[written[n]] for n in wanted}
    last = representatives(scheduled([low[n] for n in wanted], graph.inputs.values()))
    return {n: last[low[first[n]]] for n in graph.nodes}


def _written_out(nodes: Iterable[Node], matrices: bool) -> dict[Node, Node]:
    """Return for each node one in which what libraries lack is written out, and small matrices if they are to be."""
    new: dict[Node, Node] = {}
    for node in nodes:
        own = replace(node, args=tuple(new[a] for a in node.args)) if node.args else node
        new[node] = _in_elements(own, matrices) if _is_written(own, matrices) else own
    return new


def _in_elements(node: Node, matrices: bool) -> Node:
    """Return what a node is by its formula, in which there may be others that have one."""
    formula = OPERATIONS[node.op].formula
    simpler = formula(*node.settings, *node.args) if formula is not None else None
    if simpler is None:
        return node
    known = {a: a for a in node.args}
    for n in scheduled([simpler], known):
        if n not in known:
            inner = replace(n, args=tuple(known[a] for a in n.args)) if n.args else n
            known[n] = _in_elements(inner, matrices) if _is_written(inner, matrices) else inner
    return known[simpler]


def _is_written(node: Node, matrices: bool) -> bool:
    small = node.op in _MATRICES and node.args[0].shape[-1] <= SMALL
    return node.op in ("prod_others", "cofactors") or (small and matrices)


# Names


def identifier(name: str) -> str:
    """Return a name as an identifier of any language: `y[0].v` is y_0_v, and Greek letters have their names.

    >>> identifier("y[0,1].v"), identifier("x.grad"), identifier("λ")
    ('y_0_1_v', 'x_grad', 'lambda_')
    """
    letters = []
    for c in unicodedata.normalize("NFKC", name):
        if c.isascii():
            letters.append(c if c.isalnum() or c == "_" else "_")
        else:
            letters.append(unicodedata.name(c, f"u{ord(c):x}").split()[-1].lower().replace("lamda", "lambda") + "_")
    text = re.sub(r"_+", "_", "".join(letters).replace("]", ""))
    text = text if name.endswith("_") or not name.isascii() else text.rstrip("_")
    return text if text and not text[0].isdigit() else f"v{text}"


def _names(graph: Graph, new: Mapping[Node, Node], nodes: set[Node], reserved: Iterable[str]) -> dict[Node, str]:
    """Return identifiers for the inputs and for the nodes that have names, each its own."""
    taken = set(reserved)
    found: dict[Node, str] = {}
    wanted = [(n, name) for name, n in graph.inputs.items()]
    wanted += [(new[n], name) for name, n in graph.names.items() if n in new]
    for node, name in wanted:
        if node in found or (node.op != "input" and (node not in nodes or node.op == "const")):
            continue
        own = identifier(name)
        while own in taken:
            own += "_"
        taken.add(own)
        found[node] = own
    return found


def size_text(shape: Shape) -> str:
    """Return a shape in a comment: nothing for a scalar."""
    return " × ".join(map(str, shape))
