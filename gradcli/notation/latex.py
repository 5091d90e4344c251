"""The operations as LaTeX for math mode: a rule each, most of them derived from the operation's row."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import starmap

from gradcli.graph.node import Node, is_const, operands
from gradcli.graph.operation import Operation
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of
from gradcli.notation.latex_arrays import ARRAYS, side_by_side
from gradcli.notation.latex_writer import ALL, LETTERS, SIGNS, LatexNodeWriter, applied, call, function, setting
from gradcli.notation.writer import EXTREMA, SETTINGS, Binds, Rule, Written, one_hot_of, settings_of, through

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def derived(row: Operation) -> Rule | None:
    """Return the rule that follows from an operation's row: a condition's sign, or a call with its settings."""
    if row.infix:
        return _condition(row.infix) if row.arity == 2 and row.kind == "condition" else None
    if "{}" in (text := row.spelling_in("latex")):
        return lambda w, node: Written(text.format(*map(w.name, node.args)))
    return call if set(row.settings) <= SETTINGS else None


def _condition(infix: str) -> Rule:
    # Sums may be compared; the operands of other signs are in brackets unless they are simple.
    level = Binds.SUM if infix in _COMPARISONS else Binds.ATOM
    sign = SIGNS.get(infix, infix)
    return lambda w, node: Written(f" {sign} ".join(w.argument(a, level) for a in node.args), Binds.CONDITION)


# Arithmetic


def _mul(w: LatexNodeWriter, node: Node) -> Written:
    a, b = w.plain(node)
    for choice, other in ((a, b), (b, a)):  # a choice between 0 and 1 chooses the other factor
        match operands(choice, "where"):
            case condition, yes, no if choice not in w.names and _is_0_or_1(yes) and _is_0_or_1(no):
                branches = [w.name(other) if is_const(c, 1) else "0" for c in (yes, no)]
                return _choice(w.name(condition), *branches)
    if w.rank(a) and w.rank(b):
        left, right = w.operand(a, Binds.LOOSE, last=False), w.operand(b, Binds.LOOSE, first=False)
        return Written(rf"{left.text} \odot {right.text}", Binds.LOOSE, right.open)
    return side_by_side(w, a, b, numbers=True)


def _is_0_or_1(node: Node) -> bool:
    return is_const(node, 0) or is_const(node, 1)


def _div(w: LatexNodeWriter, node: Node) -> Written:
    a, b = map(w.name, w.plain(node))
    return Written(rf"\frac{{{a}}}{{{b}}}", Binds.POWER)


def _pow(w: LatexNodeWriter, node: Node) -> Written:
    a, b = w.plain(node)
    if b.value == Fraction(1, 2) and b not in w.names:
        return Written(rf"\sqrt{{{w.name(a)}}}")
    each = r"\circ " if w.rank(a) else ""  # of each element: no power of a matrix
    return Written(f"{w.argument(a, Binds.ATOM)}^{{{each}{w.name(b)}}}", Binds.POWER)


def _exp(w: LatexNodeWriter, node: Node) -> Written:
    (x,) = node.args
    if w.rank(x):
        return Written(rf"\exp\left({w.name(x)}\right)")
    return Written(rf"\mathrm{{e}}^{{{w.name(x)}}}", Binds.POWER)


def _abs(w: LatexNodeWriter, node: Node) -> Written:
    (x,) = node.args
    return applied(r"\operatorname{abs}", [w.name(x)]) if w.rank(x) > 1 else Written(function("abs").format(w.name(x)))


def _between_terms(sign: str, right: Binds) -> Rule:
    def write(w: LatexNodeWriter, node: Node) -> Written:
        a, b = w.plain(node)
        return Written(f"{w.argument(a, Binds.SUM)} {sign} {w.argument(b, right, first=False)}", Binds.SUM)

    return write


def _where(w: LatexNodeWriter, node: Node) -> Written:
    if (result := one_hot_of(node, w.names)) is not None:
        called = applied(function("one_hot"), [w.at((), ()).name(result[0]), str(result[1])])
        return called._replace(text=w.at_indices(called.text, node))
    return _choice(*map(w.name, w.plain(node)))


def _choice(*parts: str) -> Written:
    return Written(cases(*parts), Binds.PRODUCT, open=True)


def cases(condition: str, yes: str, no: str) -> str:
    """Return a choice."""
    return rf"\begin{{cases}} {yes} & \text{{if }} {condition} \\ {no} & \text{{otherwise}} \end{{cases}}"


def _mod(w: LatexNodeWriter, node: Node) -> Written:
    a, b = w.plain(node)
    return Written(rf"{w.argument(a, Binds.ATOM)} \bmod {w.argument(b, Binds.ATOM)}", Binds.CONDITION)


def _letter(op: str, before: str = "") -> Rule:
    return lambda w, node: applied(before + w.latex.symbol(LETTERS[op], op), w.arguments(node))


def _polygamma(w: LatexNodeWriter, node: Node) -> Written:
    order, x = map(w.name, w.plain(node))
    return applied(rf"{w.latex.symbol(LETTERS[node.op], node.op)}^{{({order})}}", [x])


# Reductions: over the elements, each written at the index of the sum


def _over(sign: str, binds: Binds) -> Callable[[LatexNodeWriter, Node], Written]:
    """Return the rule of a sum, or of a product, over the axes that are its first setting."""

    def write(w: LatexNodeWriter, node: Node) -> Written:
        (x,) = node.args
        axes = node.settings[0]
        if not axes:
            return through(w, node)
        letters = w.fresh_indices(len(axes))
        indices = [ALL] * len(x.shape)
        for axis, letter in zip(axes, letters, strict=True):
            indices[axis] = letter
        # From where to where is said of one index; of several, the elements tell it.
        limits = f"_{{{letters[0]}=0}}^{{{x.shape[axes[0]] - 1}}}" if len(axes) == 1 else f"_{{{','.join(letters)}}}"
        return Written(f"{sign}{limits} {w.at(x.shape, indices).argument(x, binds)}", Binds.PRODUCT, open=True)

    return write


_sum = _over(r"\sum", Binds.LOOSE)


def _mean(w: LatexNodeWriter, node: Node) -> Written:
    shape = node.args[0].shape
    count = size_of(tuple(shape[axis] for axis in node.settings[0]))
    return Written(rf"\frac{{1}}{{{count}}} {_sum(w, node).text}", Binds.PRODUCT, open=True)


def _norm(w: LatexNodeWriter, node: Node) -> Written:
    (x,) = node.args
    inside = rf"\left\|{w.name(x)}\right\|"
    if axis := next(starmap(setting, settings_of(node)), None):
        return Written(f"{inside}_{{{axis}}}", Binds.POWER)
    return Written(inside + (r"_{\mathrm{F}}" if len(x.shape) > 1 else ""), Binds.POWER)


LATEX: dict[str, Rule] = {op: rule for op, row in OPERATIONS.items() if (rule := derived(row)) is not None} | {
    "identity": through,
    "corner": through,
    "add": _between_terms("+", Binds.SUM),
    "sub": _between_terms("-", Binds.LOOSE),
    "neg": lambda w, node: Written(f"-{w.argument(node.args[0], Binds.LOOSE, first=False)}", Binds.SUM),
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "mod": _mod,
    "floor_divide": lambda w, node: Written(rf"\left\lfloor{_div(w, node).text}\right\rfloor"),
    "not": lambda w, node: Written(rf"\neg {w.argument(node.args[0], Binds.POWER)}"),
    "where": _where,
    "exp": _exp,
    "abs": _abs,
    "gamma": _letter("gamma"),
    "digamma": _letter("digamma"),
    "polygamma": _polygamma,
    "lgamma": _letter("gamma", r"\log "),
    "sum": _sum,
    "mean": _mean,
    "prod": _over(r"\prod", Binds.POWER),
    "norm": _norm,
    **dict.fromkeys(EXTREMA, call),
    **ARRAYS,
}


class LatexNotation(LatexNodeWriter):
    """Writes nodes as LaTeX for math mode; those in `names` by their names.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> LatexNotation({x: "x0"}).expression(2 * x**3)
    '2 x_{0}^{3}'
    """

    rules = LATEX
