"""A system of statements: which names are leaves, intermediates and outputs, and the graph that it describes."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from gradcli.errors import Fix, InputError, Source, Span, nearest
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.shapes import Shape
from gradcli.graph.subsystem import Subsystem
from gradcli.lang.assembly import Assembly, no_value
from gradcli.lang.characters import looks
from gradcli.lang.elements import largest_indices
from gradcli.lang.expressions import Expression
from gradcli.lang.indices import whole_key
from gradcli.lang.ranges import read_loops, rounds
from gradcli.lang.statements import Statement, read_statements
from gradcli.vocabulary import CONSTANTS

_SHOWN_NAMES = 4  # in advice
_SHOWN = 40  # characters of an expression in advice


@dataclass(frozen=True)
class System:
    """Statements in order, with what each name is.

    `uses` holds for each name that is read and never assigned the first span where it is read: the leaves, and
    `pi` and `e`, which are leaves only where the user supplies them.
    """

    statements: tuple[Statement, ...]
    defaults: Mapping[str, Statement]  # that declare inputs
    uses: Mapping[str, Span]
    assigned: tuple[str, ...]
    outputs: tuple[str, ...]
    inferred: Mapping[str, Shape] = field(default_factory=dict)  # of leaves that are only read by element
    subsystems: tuple[Subsystem, ...] = ()  # before the statements, which may read what they compute

    def leaves(self, supplied: Iterable[str] = ()) -> list[str]:
        """Return the names of the inputs, in natural order; a constant in `supplied` is an input, too.

        >>> read_system([Source("y = x10*x2 + pi")]).leaves()
        ['x2', 'x10']
        """
        constants = set(CONSTANTS) - set(supplied)
        return sorted({n for n in self.uses if n not in constants} | set(self.defaults), key=natural)

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of those inputs that are declared to be of one."""
        return {name: s.kind for name, s in self.defaults.items() if s.kind is not None}

    @property
    def fixed(self) -> set[str]:
        """The inputs without derivatives, whose values the structure of the graph depends on."""
        return {name for part in self.subsystems for name, p in part.parameters.items() if p.fixed}

    def graph(
        self, shapes: Mapping[str, Shape], outputs: Sequence[str] | None = None, values: Named | None = None
    ) -> Graph:
        """Return the graph of the system, with leaves of these shapes; the other shapes are inferred, or scalar.

        `values` has at least those of the inputs that are `fixed`, which are not inputs of the graph.

        Errors: `InputError` with its position, when shapes do not fit or a name is not known.

        >>> graph = read_system([Source("h = x**2; y = sum(h)")]).graph({"x": (3,)})
        >>> [(name, n.shape) for n, name in graph.labels.items()]
        [('x', (3,)), ('h', (3,)), ('y', ())]
        """
        fixed = self.fixed
        scope = {n: leaf(_shape(self, n, shapes)) for n in self.leaves(shapes) if n not in fixed}
        inputs = dict(scope)
        assembly = Assembly(scope)
        for part in self.subsystems:
            parameters = {name: scope[name] for name, p in part.parameters.items() if not p.fixed}
            known = {name: values[name] for name, p in part.parameters.items() if p.fixed and values and name in values}
            assembly.include(part, parameters, known)
        for together in rounds([s for s in self.statements if not s.declares]):
            assembly.add(*together)
        chosen = self._chosen(outputs)
        begun = {s.name for s in self.statements if (not s.key and s.loop is None) or _has_first(s)}
        assembly.finish(chosen, begun)
        if not inputs:
            message = "the system has no input to differentiate with respect to"
            integers = f"`{'`, `'.join(sorted(fixed)[:_SHOWN_NAMES])}` holds integers, which have no derivative"
            hint = f"{integers}: --wrt NAME differentiates by an initializer" if fixed else "for example `y = x**2`"
            raise InputError(message, hint=hint)
        for name in chosen:
            if name not in assembly.scope:
                raise InputError(
                    f"`--outputs` names `{name}`, which does not depend on the inputs",
                    options=("--outputs",),
                    text=name,
                )
        return assembly.graph(inputs, chosen)

    def _chosen(self, outputs: Sequence[str] | None) -> Sequence[str]:
        """Return the outputs, which are assigned names."""
        if outputs is None:
            return self.outputs
        assigned = set(self.assigned)
        for name in outputs:
            if name not in assigned:
                what = "an input" if name in self.uses else "not assigned in the system"
                raise InputError(
                    f"`--outputs` names `{name}`, which is {what}",
                    hint=nearest(name, self.assigned, "assigned names"),
                    options=("--outputs",),
                    text=name,
                )
        return outputs


def _shape(system: System, name: str, shapes: Mapping[str, Shape]) -> Shape:
    """Return the shape of a leaf: as it is known, inferred from its elements, or declared by a subsystem."""
    if name in shapes:
        return shapes[name]
    declared = next((p.parameters[name].shape for p in system.subsystems if name in p.parameters), ())
    if declared is None or None in declared:
        known = "×".join("?" if n is None else str(n) for n in declared or ())
        example = "x".join("1" if n is None else str(n) for n in declared or ()) or "3"
        raise InputError(
            f"the shape of the input `{name}` is open" + f": {known}" * bool(known),
            hint=f"give its value with --at, or its shape: --shape {name}={example}",
        )
    return system.inferred.get(name) or tuple(n for n in declared if n is not None)


_DIGITS = "0123456789"


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return the key of natural order, which sorts `x2` before `x10`."""
    return [(0, int(p), "") if p[0] in _DIGITS else (1, 0, p) for p in re.split("([0-9]+)", name) if p]


def read_system(sources: Iterable[Source], subsystems: Sequence[Subsystem] = ()) -> System:
    """Return the system of the subsystems and the texts together; texts use what subsystems compute.

    Errors: `InputError`, with its position: what cannot be read; a name assigned twice, used before it is assigned, or
    used in its own definition.

    >>> read_system([Source("h = x**2"), Source("y = sin(h)")]).outputs
    ('y',)
    """
    sources = list(sources)
    statements = read_loops(_name_bare([s for source in sources for s in read_statements(source)]))
    if all(s.declares for s in statements) and not subsystems:
        raise InputError("no system is given", hint="write a statement such as y = x**2")
    assigned = _assigned(statements)
    uses, read = _uses(statements, assigned)
    inputs, computed, results = _joined(subsystems, assigned)
    read |= computed.keys() & uses.keys()
    uses = {**inputs, **{n: span for n, span in uses.items() if n not in computed}}
    outputs = tuple(n for n in (*results, *assigned) if n not in read)
    defaults = {s.name or "": s for s in statements if s.declares}
    if not all(map(str.isascii, assigned.keys() | uses.keys() | defaults.keys())):
        _check_looks({s.name or "": s.span for s in statements} | dict(uses))
    inferred = _inferred(statements, uses) if any("[" in source.text for source in sources) else {}
    names = (*computed, *assigned)
    return System(tuple(statements), defaults, uses, names, outputs, inferred, tuple(subsystems))


def _joined(
    subsystems: Iterable[Subsystem], assigned: Mapping[str, Statement]
) -> tuple[dict[str, Span], dict[str, str], list[str]]:
    """Return the inputs of subsystems with where they are declared, what computes each name, and the results.

    An input that an earlier subsystem computes is that.

    Errors: `InputError` for a name that is computed twice, or is an input and assigned.
    """
    inputs: dict[str, Span] = {}
    computed: dict[str, str] = {}
    results: dict[str, None] = {}
    for part in subsystems:
        for name in part.parameters:
            results.pop(name, None)
            if name not in computed:
                inputs.setdefault(name, Span(Source(name, part.label), 0, len(name)))
        for name in part.names:
            if name in computed or name in inputs:
                what = f"computed by `{computed[name]}`" if name in computed else "an input of the system"
                raise InputError(f"`{name}` of `{part.label}` is {what} already")
            computed[name] = part.label
        results |= dict.fromkeys(part.outputs)
    for name, statement in assigned.items():
        if name in computed or name in inputs:
            what = f"computed by `{computed[name]}`" if name in computed else f"an input{inputs[name].place}"
            raise InputError(f"`{name}` is {what} already", statement.span, "every name is assigned once")
    return inputs, computed, [*results]


def _name_bare(statements: list[Statement]) -> list[Statement]:
    """Name bare expressions `y`, or `y0`, `y1`, … when there are several."""
    bare = [s for s in statements if s.name is None]
    if not bare:
        return statements
    taken = {n for s in statements for n in _reads(s)} | {s.name for s in statements}
    names = iter(["y"] if len(bare) == 1 else [f"y{i}" for i in range(len(bare))])
    named = []
    for s in statements:
        if s.name is None:
            if isinstance(s.expression.tree, ast.Compare | ast.BoolOp):
                raise _comparison_error(s)
            name = next(names)
            if name in taken:
                raise InputError(
                    f"a bare expression is called `{name}`, but the system has a `{name}` already",
                    s.span,
                    f"give it a name: `f = {s.span.text[:_SHOWN]}`",
                )
            s = s._replace(name=name)
        named.append(s)
    return named


def _comparison_error(statement: Statement) -> InputError:
    """Return the error of a condition as a statement: mostly a definition with one `=` too many."""
    left, sign, right = (part.strip() for part in statement.span.text.partition("=="))
    if not sign:
        return no_value(statement)
    short = left.isidentifier() and len(right) <= _SHOWN
    hint = f"write `{left} = {right}`" if short else "a statement is NAME = EXPRESSION"
    fix = Fix(statement.span, f"{left} = {right}") if left.isidentifier() else None
    return InputError("`==` is a comparison, not a definition", statement.span, hint, fix=fix)


def _reads(statement: Statement) -> set[str]:
    """Return the names that a statement reads, without the vector of which it assigns an element."""
    if statement.declares:
        return set()
    read = {n.id for n in statement.expression.names}
    return read - {statement.name or ""} if statement.assembles else read


def _assigned(statements: Sequence[Statement]) -> dict[str, Statement]:
    """Return the assigned names with their first statements; each is assigned once, and no input is."""
    first: dict[str, Statement] = {}
    elements: set[tuple[str, tuple[int, ...]]] = set()
    for s in statements:
        name = s.name or ""
        before = first.setdefault(name, s)
        if before is not s and not (s.assembles and before.assembles and (name, s.key) not in elements):
            what = "declared as an input" if before.declares else "assigned"
            already = " twice" if s.declares and before.declares else f" already{before.span.place}"
            raise InputError(f"`{s.span.text}` is {what}{already}", s.span, "every name is assigned once")
        if s.key is not None:
            elements.add((name, s.key))
    return {n: s for n, s in first.items() if not s.declares}


def _uses(statements: Sequence[Statement], assigned: Mapping[str, Statement]) -> tuple[dict[str, Span], set[str]]:
    """Return where each name that is never assigned is first read, and the assigned names that are read.

    A vector that is read where an element of its own is assigned, or in the same rounds, does not count, unless it has
    no element 0: it is what each round of a recurrence computes, and no vector.

    Errors: `InputError` for a use before the assignment.
    """
    uses: dict[str, Span] = {}
    read: set[str] = set()
    ready: set[str | None] = set()
    begun = {s.name for s in statements if (not s.key and s.loop is None) or _has_first(s)}
    for together in rounds([s for s in statements if not s.declares]):
        first, *more = together
        own = {s.name for s in together if s.assembles} if more or first.assembles else frozenset()
        if more:
            ready |= own
        for s in together:
            for tree in s.expression.names:
                name = tree.id
                if name not in assigned:
                    if name not in uses:
                        uses[name] = s.expression.span(tree)
                elif name not in ready and (s.loop is None or name != s.name):  # whose first round may read none
                    raise _too_early_error(name, s, assigned[name], s.expression.span(tree))
                elif name not in own or (name != s.name and name not in begun):
                    read.add(name)
            if s.loop is not None:
                read |= s.loop.reads
            ready.add(s.name)
    return uses, read


def _has_first(statement: Statement) -> bool:
    """Return whether a statement assigns a name, or an element with an index 0."""
    keys = statement.key if statement.loop is None else tuple(int(k.min()) for k in statement.loop.key)
    return not keys or 0 in keys


def _check_looks(names: Mapping[str, Span]) -> None:
    """Check that no two names look the same, as with letters of another script that look like ASCII."""
    seen: dict[str, str] = {}
    for name, span in names.items():
        other = seen.setdefault(looks(name), name)
        if other != name:
            letter = next(c or o for c, o in zip_longest(name, other, fillvalue="") if c != o)
            description = f"U+{ord(letter):04X} ({unicodedata.name(letter, 'unnamed')})"
            raise InputError(
                f"`{name}` looks like the other name `{other}`, but has {description}",
                span,
                "type the same letters, or others",
            )


def _too_early_error(name: str, user: Statement, definition: Statement, span: Span) -> InputError:
    if name == user.name and not user.assembles:
        return InputError(
            f"`{name}` is used in its own definition", span, f"call the new value something else: `{name}1 = …`"
        )
    if name == user.name:
        return InputError(f"an element of `{name}` is used before any is assigned", span)
    hint = f"statements are read in order: write `{name} = …` before it"
    value = definition.expression
    if not value.names:
        hint += f"; the value of an input is `--at {name}={value.span(value.tree).text[:_SHOWN]}`"
    return InputError(f"`{name}` is used before it is assigned{definition.span.place}", span, hint)


def _inferred(statements: Sequence[Statement], uses: Mapping[str, Span]) -> dict[str, Shape]:
    """Return the smallest shapes of leaves of which only elements are read: x[0], x[1] make a vector of 2."""
    keys: dict[str, set[tuple[int, ...]]] = {}
    whole: set[str] = set()
    for s in statements:
        if s.loop is None:
            elements = {id(n.value): whole_key(n.slice) for n in _subscripts(s.expression)}
        else:
            elements = largest_indices(s.expression, s.loop)
        for name in s.expression.names:
            key = elements.get(id(name))
            if key is None:
                whole.add(name.id)
            else:
                keys.setdefault(name.id, set()).add(key)
    return {
        n: tuple(max(k[i] for k in ks) + 1 for i in range(len(next(iter(ks)))))
        for n, ks in keys.items()
        if n in uses and n not in whole and len({len(k) for k in ks}) == 1
    }


def _subscripts(expression: Expression) -> list[ast.Subscript]:
    end = expression.start + (expression.tree.end_col_offset or 0)
    if expression.source.text.find("[", expression.start, end) < 0:
        return []
    return [n for n in ast.walk(expression.tree) if isinstance(n, ast.Subscript)]
