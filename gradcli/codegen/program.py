"""The exported program, for all languages: functions with arguments, results and steps, and a point to test them at."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from math import isfinite
from pathlib import Path

import numpy as np

from gradcli.codegen.elements import Unrolled, in_elements
from gradcli.codegen.kinds import KINDS, matrix, sparse
from gradcli.codegen.lines import filled, wrapped
from gradcli.codegen.tidy import tidied
from gradcli.engine.evaluate import at_point
from gradcli.engine.lowering import DEFINITIONS, RULES
from gradcli.errors import InputError, option_error
from gradcli.graph.array import Named
from gradcli.graph.construct import broadcast
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import Sparse
from gradcli.graph.matrices import SMALL
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, Rule, const, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter, common_subexpressions

MAX_NODES = 20_000  # steps of a function

# Operations that are written out for small matrices where a language has no linear algebra of its own.
_MATRICES = ("det", "inv", "solve")
_LACKING = ("product_of_others", "cofactors")  # what libraries lack


@dataclass(frozen=True)
class Function:
    """One function: its arguments and results with their shapes, and its steps in the order in which they are computed.

    `names` has the identifiers of inputs and of the nodes that the user named; `readers` counts who reads a node.
    `test` holds the arguments and the results at the point, where there is one; `pattern` holds the indices of the
    entries if the result is those of a matrix.
    """

    name: str
    about: str
    arguments: Mapping[str, Node]
    results: Mapping[str, Node]
    nodes: tuple[Node, ...]
    names: Mapping[Node, str]
    readers: Mapping[Node, int]
    test: tuple[Named, Named] | None
    pattern: Sparse | None = None


@dataclass(frozen=True)
class Program:
    """A file: the system as the user wrote it, and its functions."""

    name: str
    system: tuple[str, ...]
    functions: tuple[Function, ...]

    @property
    def tests(self) -> list[tuple[Function, Named, Named]]:
        """Each function with its arguments and results at the point; none where there is no point."""
        return [(f, *f.test) for f in self.functions if f.test is not None]

    def of(self, kind: str) -> Function | None:
        """Return the function of a kind, if it is exported."""
        wanted = self.name if kind == "value" else f"{self.name}_{kind}"
        return next((f for f in self.functions if f.name == wanted), None)


@dataclass(frozen=True)
class Request:
    """The request of an export: the functions, their name, the inputs by which they differentiate, and a test point.

    `target` is the language, whose own functions are kept where operations have a definition for targets without.
    `numbers` says that the language has no arrays of its own, `sparse` that of matrices those entries are wanted that
    are not zero everywhere; names of the system must not be the `reserved` ones.
    """

    name: str
    what: Sequence[str]
    wrt: Sequence[str]
    at: Named | None = None
    numbers: bool = False
    reserved: frozenset[str] = frozenset()
    sparse: bool = False
    target: str = ""


def source_code(graph: Graph, system: Sequence[str], request: Request) -> str:
    """Return the file that a request asks for, in its target.

    Errors: `InputError` for a name that has a meaning there, and for matrices and functions that would be too large.
    """
    language, name, to = import_module(f"gradcli.codegen.{request.target}"), request.name, request.target
    if name in language.RESERVED:
        raise option_error("--name", f"`{name}` has a meaning in {to}", f"call it {name}_", name)
    request = replace(request, numbers=language.NUMBERS, reserved=language.RESERVED | {name})
    text: str = language.source(program(graph, system, request))
    return text


def program(graph: Graph, system: Sequence[str], request: Request) -> Program:
    """Return the program of a graph.

    Errors: `InputError` for matrices and functions that would be too large.
    """
    return Program(request.name, tuple(system), tuple(_function(kind, graph, request) for kind in request.what))


def _about(kind: str, graph: Graph, request: Request) -> str:
    """Return the description of a function's result; for a matrix, of its rows and columns."""
    row = KINDS[kind]
    if not row.matrix:
        return row.about
    if request.sparse:
        return f"the entries of {row.about} that are not zero, row after row"
    rows, columns = (", ".join(map(identifier, names)) for names in (graph.outputs, request.wrt))
    if kind == "hessian":
        return f"{row.about}; rows and columns are those of {columns}"
    return f"{row.about}; rows are those of {rows}, columns those of {columns}"


def _function(kind: str, graph: Graph, request: Request) -> Function:
    row, about, pattern = KINDS[kind], _about(kind, graph, request), None
    graph = row.graph(graph, request.wrt)
    if row.matrix and request.sparse:
        graph, pattern = sparse(row.matrix, graph, request.wrt)
    elif row.matrix:
        graph = matrix(row.matrix, graph, request.wrt)
    name = request.name if kind == "value" else f"{request.name}_{kind}"
    return replace(_of_graph(name, about, graph, request), pattern=pattern)


def loop_function(name: str, graph: Graph, reserved: frozenset[str]) -> Function:
    """Return the function of a graph in a language of numbers, with a loop over each array.

    Its results are those of the engines, nan included: no product by a structural zero is left out.
    """
    return _of_graph(name, "", graph, Request(name, (), (), numbers=True, reserved=reserved), unrolled=False)


def _of_graph(name: str, about: str, graph: Graph, request: Request, unrolled: bool = True) -> Function:
    new = rewritten_for_files(graph, request.numbers, request.target)
    taken = set(request.reserved - _HIDDEN)
    called = {name: _own(name, taken) for name in graph.outputs}
    results: Mapping[str, Node] = {called[name]: new[n] for name, n in graph.outputs.items()}
    hidden = graph.outputs if request.numbers else ()  # results there have a memory of their own
    named = [(new[n], name) for name, n in graph.names.items() if n in new and name not in hidden]
    nodes = scheduled(results.values())
    if request.numbers and unrolled and (written := in_elements(results)) is not None:
        results, nodes, named = written.results, written.nodes, _elements_named(written, named)
    if len(nodes) > MAX_NODES:
        raise InputError(
            f"`{name}` takes {len(nodes):,} steps, and a readable function has {MAX_NODES:,} at most",
            hint="choose with --what, --outputs and --wrt",
        )
    names = _names(graph.inputs, named, set(nodes), {*request.reserved, *(results if request.numbers else ())})
    arguments = {names[n]: n for n in graph.inputs.values()}
    readers = Counter(a for n in nodes for a in n.args)
    readers.update(results.values())
    test = None if request.at is None else _tested(graph, names, called, request.at)
    return Function(name, about, arguments, results, nodes, names, readers, test)


def _elements_named(written: Unrolled, named: Iterable[tuple[Node, str]]) -> list[tuple[Node, str]]:
    """Return the elements of the nodes that have names, with names of their own."""
    elements = written.elements
    inner = [(elements[n].flat, element_names(name, n.shape)) for n, name in named if n in elements]
    return [pair for pairs in inner for pair in zip(*pairs, strict=True)]


def _tested(graph: Graph, names: Mapping[Node, str], called: Mapping[str, str], at: Named) -> tuple[Named, Named]:
    """Return the arguments at a point and the results there; cotangents and tangents are 1."""
    values = {name: np.ones(n.shape) if name not in at else at[name] for name, n in graph.inputs.items()}
    result = at_point(graph, values, graph.outputs.values())
    numbers = {names[graph.inputs[name]]: value for name, value in values.items()}
    return numbers, {called[name]: result[y] for name, y in graph.outputs.items()}


def rewritten_for_files(
    graph: Graph, numbers: bool, target: str = "", whole: Callable[[Node], bool] = lambda node: False
) -> dict[Node, Node]:
    """Return for each node an equal one in operations that a target has, without common subexpressions.

    Where there are `numbers` alone, small matrices are written out.  `whole` nodes are not lowered.
    """
    inputs, outputs = graph.inputs.values(), graph.outputs.values()
    new = _lowering(numbers, target, whole).rewritten(graph.nodes)

    def tidy(nodes: Sequence[Node]) -> dict[Node, Node]:
        return tidied(nodes, [new[y] for y in outputs])

    for step in (_worked_out, tidy, common_subexpressions):
        done = step(scheduled([new[y] for y in outputs], inputs))
        new = {n: done[node] for n, node in new.items() if node in done}  # what no output needs is left out
    return new


def _worked_out(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Return for each node one in which functions of given numbers are numbers: log(2); where(1 < 2, x, z) is x."""
    settled: dict[Node, bool] = {}  # the conditions on given numbers

    def choice(node: Node) -> Node:
        condition, yes, no = node.args
        return broadcast(yes if settled[condition] else no, node.shape) if condition in settled else number(node)

    def number(node: Node) -> Node:
        if not node.args or node.shape or any(not a.is_constant and a not in settled for a in node.args):
            return node
        value = at_point(Graph.of({}, {}), {}, [node])[node]
        if node.dtype == "bool":
            settled[node] = bool(value)
        if node.dtype != "float64":
            return node
        return const(Decimal(repr(float(value))) if isfinite(value) else float(value))

    return Rewriter({"where": choice}, sharing=False, every=number).rewritten(nodes)


def _lowering(matrices: bool, target: str, whole: Callable[[Node], bool]) -> Rewriter:
    """Return the rewriter to operations that a target has; if asked, it writes small matrices out."""
    called = {op for op, row in OPERATIONS.items() if row.spelling_in(target) and not row.infix}
    kept = {op: _unless(whole, rule) for op, rule in DEFINITIONS.items() if op not in called}
    small = {op: _written_out(op, SMALL) for op in _MATRICES if matrices}
    return Rewriter(RULES, kept | small | {op: _written_out(op) for op in _LACKING})


def _unless(whole: Callable[[Node], bool], rule: Rule) -> Rule:
    return lambda node: None if whole(node) else rule(node)


def _written_out(op: str, largest: int | None = None) -> Rule:
    """Return the rule of an operation's formula, for matrices of `largest` rows at most, and else of its definition."""
    formula, definition = OPERATIONS[op].formula, DEFINITIONS.get(op)
    assert formula is not None

    def rule(node: Node) -> Node | None:
        fits = largest is None or node.args[0].shape[-1] <= largest
        simpler = formula(*node.settings, *node.args) if fits else None
        return definition(node) if simpler is None and definition is not None else simpler

    return rule


# Names

_HIDDEN = frozenset(("j0", "j1", "jn", "y0", "y1", "yn"))  # functions of C's that no file calls: results may hide them


def identifier(name: str) -> str:
    """Return a name as an identifier of any language: `y[0].v` is y_0_v, and Greek letters have their names.

    A letter that has no name has its number; compilers keep `_X` for themselves.

    >>> [identifier(name) for name in ("y[0,1].v", "x.grad", "λ", "é", "中", "_X")]
    ['y_0_1_v', 'x_grad', 'lambda_', 'e_', 'u4e2d_', 'v_X']
    """
    letters = []
    for c in unicodedata.normalize("NFKC", name):
        if c.isascii():
            letters.append(c if c.isalnum() or c == "_" else "_")
        else:
            letters.append(_spelled(c) + "_")
    text = re.sub(r"_+", "_", "".join(letters).replace("]", ""))
    text = text if name.endswith("_") or not name.isascii() else text.rstrip("_")
    return f"v{text}" if not text or text[0].isdigit() or (text[0] == "_" and text[1:2].isupper()) else text


def _spelled(letter: str) -> str:
    """Return the name of a letter, without accents, in ASCII."""
    word = unicodedata.name(letter, "").partition(" WITH ")[0].rpartition(" ")[2].lower().replace("lamda", "lambda")
    return word if word.isascii() and word.isalpha() else f"u{ord(letter):x}"


def _own(name: str, taken: set[str]) -> str:
    """Return an identifier for a name that none has taken, and take it."""
    result = identifier(name)
    while result in taken:
        result += "_"
    taken.add(result)
    return result


def _names(
    inputs: Mapping[str, Node], named: Iterable[tuple[Node, str]], nodes: set[Node], taken: set[str]
) -> dict[Node, str]:
    """Return a distinct identifier for each input, and for each node that has a name."""
    leaves = set(inputs.values())
    result = {node: _own(name, taken) for name, node in inputs.items()}
    for node, name in named:
        fixed = not node.args or (not node.shape and operand(node, "index") in leaves)
        if node in nodes and node not in result and not fixed:
            result[node] = _own(name, taken)
    return result


def shape_words(function: Function) -> list[str]:
    """Return the shapes of arguments and results that are arrays as words of a sentence: `x: 3,` and `M: 3 × 4.`."""
    both = {**function.arguments, **function.results}
    shapes = [f"{name}: {' × '.join(map(str, n.shape))}" for name, n in both.items() if n.shape]
    return [*(f"{shape}," for shape in shapes[:-1]), *(f"{shape}." for shape in shapes[-1:])]


def about_lines(function: Function) -> list[str]:
    """Return the comment of a function: its result, and the shapes of arrays."""
    about = f"{function.about[:1].upper()}{function.about[1:]}."
    words = shape_words(function)
    return [about, *(wrapped("Arrays, row after row: ", words, 76) if words else [])]


def pattern_lines(function: Function, comment: str, table: str, times: str, indent: str) -> list[str]:
    """Return the tables of the rows and columns of a sparse matrix, with a comment.

    `comment` has a field for its sentence, in which `times` is between rows and columns; `table` has fields for its
    name and size, and | where the numbers go.
    """
    if function.pattern is None:
        return []
    rows, columns = function.pattern.rows, function.pattern.columns
    shape = times.join(map(str, function.pattern.shape))
    lines = [comment.format(f"Where the {len(rows)} entries of {function.name} stand in a matrix of {shape}.")]
    for name, numbers in (("rows", rows), ("columns", columns)):
        start, end = table.format(name=f"{function.name}_{name}", size=len(rows)).split("|")
        lines += filled(start, end, [str(k) for k in numbers], indent)
    return [*lines, ""]


def self_test(file: str, tested: Callable[..., list[str]], program: Program) -> list[str]:
    """Return the lines of a test of a program, from a file of this folder; `tested` returns those of a function."""
    if not program.tests:
        return []
    text = Path(__file__).with_name(file).read_text("utf-8").replace("NAME_TEST", f"{program.name.upper()}_TEST")
    before, after = text.split("TESTS\n")
    lines = [line for test in program.tests for line in tested(*test)]
    return [*before.splitlines(), *lines, *after.splitlines()]
