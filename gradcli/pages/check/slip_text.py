"""Slips in words: at their step, in the user's own names, in two lines at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gradcli.graph.construct import index, spread
from gradcli.graph.graph import Graph, computed_from
from gradcli.graph.node import ARITHMETIC, Node, const
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.vjp import reverse, textbook_slope
from gradcli.notation.nodes import Notation, written_size
from gradcli.pages.check.derivation import SELECTS, Derivation, Slip, taken

if TYPE_CHECKING:
    from gradcli.pages.forms.rules import ArrayForms

LONGEST = 158  # characters of a reason: two lines
_TERM = 60  # characters of a term that is shown
_READABLE = 60  # operations of an expression that is written at all
_PLAINLY = 2  # characters
_COTANGENT = "for the cotangent v "
_FIRST = 2  # quantities on the left of a claim about a first derivative
_OFTEN = {2: "twice"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@dataclass(frozen=True)
class SlipText:
    """A slip at one place, as text: its kind, the operation and its operand, what was written and what is right.

    `of` and `by` are the names of the statement and of the variable of its step ∂of/∂by, and `times` is at how many
    places the slip was made alike.
    """

    kind: str
    of: str
    by: str
    node: str
    operand: str
    wrote: str
    right: str
    times: int = 1

    @property
    def step(self) -> str:
        """The step at which the slip was made, or ""."""
        return f"∂{self.of}/∂{self.by}" if self.of else ""

    def data(self) -> dict[str, object]:
        """Return its JSON object."""
        return {
            "kind": self.kind, "step": self.step, "node": self.node, "operand": self.operand, "wrote": self.wrote,
            "right": self.right, "times": self.times,
        }  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """Why a claim is wrong, in words, and the slips that made it where these are known."""

    text: str
    slips: tuple[SlipText, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


class SlipWriter:
    """Writes slips of a derivation."""

    def __init__(self, derivation: Derivation) -> None:
        self.derivation = derivation
        self.names = derivation.quantities.names
        self.letters = self.names | {derivation.cotangent: "v"} if derivation.y.shape else self.names

    @cached_property
    def _algebra(self) -> ArrayForms:
        from gradcli.pages.forms.rules import ArrayForms

        nodes = dict.fromkeys([*self.derivation.nodes, *self.letters])  # letters stand in the order of the system
        return ArrayForms({n: self.letters[n] for n in nodes if n in self.letters}, as_built=True)

    def reason(self, slips: Sequence[Slip]) -> Reason:
        """Return one slip, one at several places alike, or two, in words."""
        if pair := taken(slips):
            return Reason(self._taken(slips[0], *pair), tuple(self._text_of(slip, len(slips)) for slip in slips))
        if text := self._indexed(slips):
            return Reason(text, tuple(self._text_of(slip, len(slips)) for slip in slips))
        groups = [slips] if set.intersection(*(set(slip.keys) for slip in slips)) else [[slip] for slip in slips]
        entries = tuple(self._text_of(slip, len(group)) for group in groups for slip in group)
        sentences = [self._sentences(group[0], len(group)) for group in groups]
        texts = ["; and ".join(words) if all(words) else "" for words in zip(*sentences, strict=True)]
        if len(groups) > 1 and self.derivation.y.shape:  # cotangents are for one slip enough to follow
            texts = [text for text in texts if _COTANGENT not in text]
        return Reason(next((text for text in texts if len(text) <= LONGEST and "…" not in text), ""), entries)

    def _taken(self, slip: Slip, node: Node, new: Node) -> str:
        """Return that a node is taken for one of its arguments: for a branch of it, or without a term."""
        of, by = self._step(slip)
        step = f"in ∂{of}/∂{by} " if of else ""
        if node.op not in SELECTS:
            return f"{step}you wrote {self.write(new)} for {self.expression(node)}"
        text = f"{step}you took {self.expression(node)} for {self.write(new)}"
        a, b = (*node.args, const(0))[:2]
        match node.op:
            case "where":
                holds = a if new is b else replace(a, op=opposite) if (opposite := _OPPOSITE.get(a.op)) else None
            case "relu" | "abs" | "leaky_relu":
                holds = new > const(0)
            case "maximum" | "minimum":
                a, b = (a, b) if new is a else (b, a)
                holds = a > b if node.op == "maximum" else a < b
            case _:
                holds = None
        return text if holds is None else f"{text}: right only where {self.write(holds)}"

    def _indexed(self, slips: Sequence[Slip]) -> str:
        """Return which element stands for which, where this is what several slips have in common; else ""."""
        shared = set.intersection(*(set(slip.keys) for slip in slips)) if len(slips) > 1 else set()
        for _, array, key in (k for k in shared if k[0] == "indexed"):
            right = {s.edge.node for s in slips if s.edge.node.op == "index" and s.edge.argument is array}
            text = " in place of ".join(map(self.expression, (index(array, key), *right)))
            if len(right) == 1 and len(text) <= _TERM and "…" not in text:
                return f"yours is the derivative with {text}"
        return ""

    def _text_of(self, slip: Slip, times: int) -> SlipText:
        edge = slip.edge
        wrote, right = ("" if n is None else self.write(n) for n in (slip.wrote, slip.right))
        of, by = self._step(slip)
        return SlipText(slip.kind, of, by, self.expression(edge.node), self.write(edge.argument), wrote, right, times)

    def _step(self, slip: Slip) -> tuple[str, str]:
        """Return the names of the statement of a slip, and of the variable that its derivative is by."""
        d, argument = self.derivation, slip.edge.argument
        variable = self.names.get(d.x, "")
        if argument in self.names:
            return d.statement(slip.edge.node), self.names[argument]
        inner = computed_from(self.names, [argument])
        read = dict.fromkeys(a for n in inner for a in n.args if a in self.names and a in d.active)
        return d.statement(slip.edge.node), variable if d.x in read or len(read) != 1 else self.names[next(iter(read))]

    def _sentences(self, slip: Slip, times: int) -> tuple[str, str]:
        """Return what is said of a slip, and in fewer words."""
        of, by = self._step(slip)
        step = f"in ∂{of}/∂{by} " if of else ""
        often = f" ({_OFTEN.get(times, f'{times} times')})" if times > 1 else ""
        long, short = (f"{step}{words}{often}" if words else "" for words in self._words(slip, times))
        return long, short

    def _words(self, slip: Slip, times: int) -> tuple[str, str]:
        edge, node = slip.edge, slip.edge.node
        a, slope = self.write(edge.argument), edge.slope
        linear = slope is None or (slope.is_constant and slope.value in (1, -1))
        others = [b for b in node.args if b is not edge.argument and not b.is_constant]
        what = f"the derivative of {self.expression(node)}{f' with respect to {a}' if others else ''}"
        match slip.kind:
            case "path left out":
                term = self._missing(slip) if times == 1 else ""
                text = f"the path through {a} is left out"
                return (f"a term is missing: {term}" if term else text), text
            case "sign" if linear and slope is not None and slope.value == -1:
                is_sum = edge.argument.op in ("add", "sub") and edge.argument not in self.letters
                text = f"the minus before {f'({a})' if is_sum else a} is left out"
                return text, text
            case "sign" if linear:
                text = f"the sign of the derivative of {a} is wrong"
                return text, text
            case "chain left out":
                tangent = self._tangent(edge.argument)
                text = "the inner derivative is missing"
                return f"{text}: times {tangent}, the derivative of {a}" if tangent else f"{text}, that of {a}", text
            case "left out" if slip.right in self.derivation.seeds:
                v = self.write(slip.right)
                text = f"the incoming gradient {v} is missing"
                return f"{text}: {self.derivation.case.text} = vᵀJ, and yours is for {v} = ones", text
            case "left out" if node not in self.names:
                text = f"the inner derivative is missing: times {self.write(slip.right)}"
                return f"{text}, the derivative of {self.expression(node)}", text.partition(":")[0]
            case "constant" | "size" if slip.right is not None:
                factor = self.write(slip.right)
                text = f"{what} is {factor} times the right one"
                return text, text
        wrote, right = (self._shorter(n) for n in (slip.wrote, slip.right))
        wrote = self.expression(node) if slip.wrote is node else wrote
        if slope is None or slip.right is not slope:
            return self._of_arrays(slip)
        formula = textbook_slope(node, edge.position)
        whole = Notation({n: name for n, name in self.names.items() if n is not node}, implicit=True).name(formula)
        same = f", that is {right}" if node in self.names and whole != right and len(right) < len(whole) else ""
        if slip.kind == "left out":
            return f"the factor {right} is missing: {what} is {whole}{same}", f"the factor {right} is missing"
        if slip.kind == "sign":
            return f"the sign is wrong: {what} is {whole}{same}", "the sign is wrong"
        return f"you wrote {wrote}: {what} is {whole}{same}", f"you wrote {wrote} for {right}"

    def _of_arrays(self, slip: Slip) -> tuple[str, str]:
        """Return what is said of a slip in what an operation on arrays passes on; "" where nobody would read it.

        What is passed on within a first derivative, in a claim about a second one, the claim has no name for.
        """
        if len(self.derivation.case.left) > _FIRST and self.derivation.y.shape:
            return "", ""
        for wrong, right in ((slip.wrong, slip.edge.contribution), (slip.wrote, slip.right)):
            texts = [self._short(n) for n in (wrong, right) if n is not None]
            if len(texts) == 2 and all(texts):
                cotangent = _COTANGENT if self.derivation.y.shape else ""
                text = f"{cotangent}you wrote {texts[0]}: it is {texts[1]}"
                return text, text
        return "", ""

    def write(self, node: Node | None) -> str:
        """Return a node in the user's names."""
        return "" if node is None else self._text(self._plain(node), self.letters)

    def _shorter(self, node: Node | None) -> str:
        """Return a node in the user's names, as it is or as textbooks write it, whichever is plainly shorter."""
        text, short = self.write(node), "" if node is None else self._short(node)
        return short if 0 < len(short) < len(text) - _PLAINLY else text

    def expression(self, node: Node) -> str:
        """Return a node's formula, also where it has a name."""
        return self._text(node, {n: name for n, name in self.names.items() if n is not node})

    def _text(self, node: Node, names: Mapping[Node, str]) -> str:
        if written_size(node, names) > _READABLE:
            return "…"
        return Notation(names, implicit=True).name(node)

    def _plain(self, node: Node) -> Node:
        """Return a node of the reverse pass as it is without what the search needs: 1 is passed on from the output."""
        d = self.derivation
        known = {n: n for n in self.names} | {v: const(0, v.shape) for v in d.added.values()}
        known[d.tangent] = const(1, d.x.shape)
        if not d.y.shape:
            known[d.cotangent] = const(1)
        rules = {**ARITHMETIC, "broadcast": _filled}
        result = Rewriter(rules, sharing=False).rewritten(computed_from(known, [node]), known)
        return result.get(node, node)

    def _tangent(self, node: Node) -> str:
        """Return the derivative of a node by a scalar variable, if that is short."""
        d = self.derivation
        if d.x.shape or node.shape:
            return ""
        return self._short(d.tangents[node])

    def _missing(self, slip: Slip) -> str:
        """Return what goes through an edge, as a term with its sign, if that is short."""
        d, edge = self.derivation, slip.edge
        if d.y.shape:
            return ""
        if not d.x.shape and not edge.argument.shape:
            term: Node | None = edge.contribution * d.tangents[edge.argument]
        else:
            term = reverse(Graph(d.nodes, {}, {}), [(edge.argument, edge.contribution)], d.active)[1].get(d.x)
        text = "" if term is None else self._short(term)
        return text and (f"- {text[1:]}" if text.startswith("-") else f"+ {text}")

    def _short(self, node: Node) -> str:
        """Return the text of a derivative as textbooks write it, if that is short."""
        from gradcli.pages.forms.gradients import is_readable  # a reason alone needs it

        form = self._algebra(self._plain(node))
        if not is_readable(form, self.letters):
            return ""
        if form not in self.letters:
            form = spread(form, node.shape) if form.value is None else const(form.value)
        text = Notation(self.letters, implicit=True).name(form)
        return text if len(text) <= _TERM else ""


def _filled(node: Node) -> Node | None:
    """Return a number that is broadcast as an array of it."""
    (a,) = node.args
    return None if a.value is None else const(a.value, node.shape)
