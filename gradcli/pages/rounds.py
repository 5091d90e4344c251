"""What a page says of the rounds of its loops beside the statements: gradients without what is inside a loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.graph.names import AdjointName, adjoint_name, array_name, element_name
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.pages.mentions import DEFINITIONS, mentioned, names_in
from gradcli.pages.recurrence import Folded, Recurrence
from gradcli.pages.results import Array, Shown
from gradcli.pages.sections import (
    Block,
    Computed,
    Equal,
    Equations,
    Grad,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Typed,
    Value,
    sentence,
)
from gradcli.text.wrapping import in_words

_CLOSED = 200  # operations whose formula is worked out, to see whether it is short
_SHORT = 24  # characters of such a formula
_DIGITS = 8  # of a number that is written in full
_LISTED = 8  # rounds whose numbers are listed

Adjoints = Mapping[Node, Array]
Contributions = Mapping[tuple[Node, int], Array]  # by the operation, and the position of the operand
Reads = Sequence[Node | tuple[Node, int]]  # adjoints, and contributions

ROUNDS = Text(
    sentence("A formula through all rounds of a loop is not written out; {} writes each round.", Typed("--unroll"))
)


def without_rounds(
    sections: Sequence[Section], result: Shown, shown: Iterable[str], unwritten: Collection[str] = ()
) -> Iterator[Section]:
    """Yield the sections of a page without formulas that mention the inside of a loop; other names are `shown`.

    `unwritten` are the inputs of whose gradients the page may have left out the formulas itself.
    """
    names = {*result.graph.names}.difference(shown) | (set(result.symbolic.defined) if result.symbolic else set())
    written = False
    for section in sections:
        if section.title == DEFINITIONS:
            continue  # of parts of rounds
        if section.name == "system":
            yield section
        elif section.name == "grad":
            plain = tuple(_plain(section.blocks, names))
            written = written or (plain == section.blocks and not _is_bare(plain, unwritten))
            yield replace(section, blocks=plain)
        else:
            is_whole = section.name == "jacobian" and any(not isinstance(block, Text) for block in section.blocks)
            written = written or (is_whole and names.isdisjoint(mentioned([section])))
            yield section
    if not written:
        yield Section("grad", (ROUNDS,))


def _is_bare(blocks: Sequence[Block], inputs: Collection[str]) -> bool:
    """Return whether the gradient of one of the inputs has no formula."""
    lines = [line.sides for block in blocks if isinstance(block, Equations) for line in block.lines]
    lines = [sides for sides in lines if _input_of(sides[0]) in inputs]
    return not all(any(map(_is_formula, sides)) for sides in lines)


def _input_of(gradient: Math) -> str | tuple[str, ...]:
    match gradient:
        case Grad(name) | Partial(_, name):
            return name
    return ""


def _is_formula(math: Math) -> bool:
    match math:
        case Value(array):
            return bool(array.dtype == object)
        case Product(parts) | Sum(parts) | Equal(parts):
            return any(map(_is_formula, parts))
    return isinstance(math, Computed)


def by_round(folded: Folded, adjoints: Adjoints, contributions: Contributions, loss: str) -> list[Text]:
    """Return for each quantity that all rounds of a loop read what each of them adds to its adjoint.

    And for each list that a loop carries on the adjoint of each element, which shows whether gradients vanish.
    """
    several = len(folded.written_loops) > 1
    known = folded.graph, adjoints, contributions, loss
    return [text for loop in folded.written_loops for text in _of_loop(loop, *known, of=several)]


def _of_loop(
    loop: Recurrence, graph: Graph, adjoints: Adjoints, contributions: Contributions, loss: str, of: bool
) -> Iterator[Text]:
    added: dict[str, dict[int, Array]] = {}
    carried: dict[str, dict[int, Array]] = {}
    elsewhere = [] if of else [adjoint_name(name, loss) for name in _read_elsewhere(loop, graph)]
    for name, reads in read_by_round(loop, graph).items():
        if (known := numbers_by_round(reads, adjoints, contributions)) is not None:
            if name in loop.carried:
                carried[name] = known
            else:
                added[adjoint_name(name, loss)] = known
    if not added and not carried:
        return
    what = [f"what it adds to {in_words(list(added))}"] if added else []
    what += [f"{adjoint_name(stem, loss)} = ∂{loss}/∂{stem}[{loop.index}]" for stem in carried]
    all_rounds = [*added.items(), *((adjoint_name(stem, loss), known) for stem, known in carried.items())]
    arrays = any(np.shape(a) for _, rounds in all_rounds for a in rounds.values())
    if partly := [bar for bar in added if bar in elsewhere]:
        what[0] += f" (operations outside of these rounds may add to {in_words(partly)}, too)"
    which = f" of {loop.statements[-1].name}" * (of or bool(partly))
    yield Text((f"By round{which}, the last one first{' (norms)' * arrays}: {', and '.join(what)}",))
    for name, rounds in all_rounds:
        yield Text((Name(name), f" by round: {_numbers(loop.index, rounds)}"))


def _read_elsewhere(loop: Recurrence, graph: Graph) -> Iterator[str]:
    """Yield the names of what all rounds read, and other operations too."""
    times = Counter(a for n in graph.nodes for a in n.args)
    for node, reads in loop.shared.items():
        if node in graph.labels and times[node] > len(reads) * len(loop.rounds):
            yield graph.labels[node]


def read_by_round(loop: Recurrence, graph: Graph) -> dict[str, dict[int, Reads]]:
    """Return what says of each quantity that all rounds read what each of them adds to its adjoint, by the index.

    And of each list that the loop carries on, the adjoint of each element.
    """
    result: dict[str, dict[int, Reads]] = {
        graph.labels[node]: {loop.first + r: [(part[p], i) for p, i in reads] for r, part in enumerate(loop.rounds)}
        for node, reads in loop.shared.items()
        if node in graph.labels
    }
    for stem in sorted(loop.carried):
        result[stem] = {k: [n] for k, n in loop.members[stem].items()}
    return result


def numbers_by_round(
    reads: Mapping[int, Reads], adjoints: Adjoints, contributions: Contributions
) -> dict[int, Array] | None:
    """Return the number or array of each round; None where one of them is not known."""
    result = {}
    for k, mine in reads.items():
        parts = [contributions.get(r) if isinstance(r, tuple) else adjoints.get(r) for r in mine]
        known = [a for a in parts if a is not None]
        if not known or len(known) < len(parts):
            return None
        result[k] = known[0] if len(known) == 1 else np.sum(known, axis=0)
    return result


def _numbers(index: str, rounds: Mapping[int, Array]) -> str:
    """Return a number a round, the last round first: of arrays their norms."""
    last, *others = sorted(rounds, reverse=True)
    shown = [last, *others] if len(rounds) <= _LISTED else [last, *others[: _LISTED // 2 - 1], None, *others[-2:]]
    return " · ".join("…" if k is None else f"{index}={k} {norm_of(rounds[k]):.3g}" for k in shown)


def norm_of(a: Array) -> float:
    """Return a number as it is, and the norm of an array."""
    return float(np.linalg.norm(a)) if np.shape(a) else float(a)


def _plain(blocks: Sequence[Block], hidden: set[str]) -> Iterator[Block]:
    """Yield the gradients without formulas that mention what is hidden, and the adjoints that are left."""
    hidden = set(hidden)
    heading: list[Block] = []  # waits for the equations below it
    for block in blocks:
        if not isinstance(block, Equations):
            heading.append(block)
            continue
        lines = []
        for line in block.lines:
            left, *rest = line.sides
            kept = [side for side in rest if hidden.isdisjoint(n for x in names_in(side) for n in (x, array_name(x)))]
            if len(kept) < len(rest):
                if isinstance(left, Grad) and left.key:  # one entry in full
                    continue
                # Also v times the number of a derivative, whose formula said how it comes.
                kept = [side for side in kept if not (isinstance(side, Sum) and len(side.terms) == 1)]
            inner = isinstance(left, Name) and isinstance(left.name, AdjointName) and left.name.by in hidden
            if isinstance(left, Name) and (inner or not kept):  # an adjoint in a round, or what is computed of it
                hidden.add(left.name)
            else:
                lines.append(replace(line, sides=(left, *kept)))
        if lines:
            yield from (*heading, Equations(tuple(lines)))
        heading = []
    yield from heading


def closed_form(loop: Recurrence, names: Mapping[Node, str]) -> Iterator[Math]:
    """Yield the result of a loop as a formula in its start, 1024*x, if it is arithmetic and the formula is short."""
    nodes = [n for part in loop.rounds for n in part]
    if len(loop.starts) != 1 or len(loop.carried) != 1 or len(nodes) > _CLOSED:
        return
    (start,), (stem,) = loop.starts, loop.carried
    if not _is_arithmetic(nodes, start):
        return
    element = element_name(stem, (loop.first - 1,))
    name, before = names.get(start, element), _beside_numbers(start)
    if name == element and before is not start and before in names:  # y[0] = 2*x: the formula is one in x
        nodes, start, name = [start, *nodes], before, names[before]
    import sympy

    from gradcli.algebra.formulas import TooDeepError, formulas, symbols
    from gradcli.notation.formulas import code

    x = leaf()  # the operations are element by element, so that each element has the formula of one number
    copies: dict[Node, Node] = {start: x}
    for n in nodes:
        copies[n] = Node(n.op, tuple(copies.get(a, a) for a in n.args), (), n.settings, n.dtype)
    end = copies[loop.members[stem][max(loop.members[stem])]]
    try:
        expr = formulas([end], {x: symbols(name, ())}, {}).exprs[end].item()
    except (TooDeepError, InputError):
        return
    long = {
        n: sympy.Rational(f"{float(n):.6g}") for n in expr.atoms(sympy.Rational) if n.q > 1 and len(str(n)) > _DIGITS
    }
    expr = expr.xreplace(long)
    if len(code(expr, True, frozenset(names.values()))) <= _SHORT:
        yield Value.of(expr)


def _beside_numbers(node: Node) -> Node:
    """Return x of 2*x, x + 1 and the like, whose other operands are numbers; of any other node the node itself."""
    args = [a for a in node.args if not a.is_constant]
    return args[0] if len(args) == 1 and _is_arithmetic([node], args[0]) else node


def _is_arithmetic(nodes: Sequence[Node], start: Node) -> bool:
    """Return whether nodes are arithmetic, element by element, with what a loop begins with and numbers alone."""
    known = {*nodes, start}
    read = {a for n in nodes for a in n.args if a not in known}
    numbers = all(a.is_constant and a.value is not None for a in read)
    return numbers and all(OPERATIONS[n.op].broadcasts and n.shape == start.shape for n in nodes)
