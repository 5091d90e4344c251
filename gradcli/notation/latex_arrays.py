"""Arrays in LaTeX: constants written out, matrices and their products, and what moves elements."""

from __future__ import annotations

import re
from fractions import Fraction

from gradcli.graph.node import Constant, Node, operand, operands
from gradcli.notation.latex_names import WORDS, latex_number
from gradcli.notation.latex_writer import ALL, LatexNodeWriter, applied, call, function, matrix, setting, times
from gradcli.notation.numbers import quotient
from gradcli.notation.text import (
    PARTS,
    exact_text,
    index_key,
    is_hidden,
    listed,
    only_element,
    padding,
    reduction_with_keepdims,
    solved_for_vector,
    subscript,
    taken,
)
from gradcli.notation.writer import Binds, Rule, Written

_ENDS_IN_WORD = re.compile(r"\\math(it|tt)\{[^{}]*\}(_\{(?:[^{}]|\{:\})+\})?(\^\{\\top\})?$")

# Constants


def constant(w: LatexNodeWriter, node: Node) -> Written:
    """Return a constant: a number, an array filled with one, or one written out."""
    if node.value is None:
        return _listed(w, node)
    number = exact_number(node.value)
    if not w.rank(node):
        return number
    filled = rf"\mathbf{{{number.text}}}" if number.text in ("0", "1") else rf"{number.text} \cdot \mathbf{{1}}"
    return Written(f"{filled}_{{{times(node.shape)}}}", Binds.PRODUCT)


def _listed(w: LatexNodeWriter, node: Node) -> Written:
    if (element := only_element(node, w.shown)) is not None:
        index, number = element[0], exact_number(element[1])
        hot = applied(function("one_hot"), [str(index), str(node.size)])
        return hot if number.text == "1" else Written(beside(number.text, hot.text), Binds.PRODUCT)
    if is_hidden(node, w.shown):
        return applied(r"\operatorname{constant}", [times(node.shape)])
    rows = list(node.shape[:-1])
    if len(rows) > 1:
        text = listed(node.shape, node.values, lambda v: exact_number(v).text, w.shown)
        return Written(text.replace("[", r"\left[").replace("]", r"\right]").replace("…", r"\dots"))
    count, width = (rows or [1])[0], node.shape[-1]
    lines = [node.values[i * width : (i + 1) * width][: w.shown] for i in range(count)[: w.shown]]
    cells = [[exact_number(v).text for v in line] + [r"\dots"] * (width > w.shown) for line in lines]
    cells += [[r"\vdots"]] * (count > w.shown)
    return Written(matrix(cells) + ("" if rows else r"^{\top}"), Binds.ATOM if rows else Binds.POWER)


def exact_number(value: Constant) -> Written:
    """Return an exact number.

    >>> exact_number(Fraction(-1, 3)).text, exact_number("e").text
    ('-\\\\frac{1}{3}', '\\\\mathrm{e}')
    """
    if isinstance(value, Fraction):
        parts = [latex_number(part) for part in quotient(abs(value))]
        sign = "-" if value < 0 else ""
        return Written(rf"{sign}\frac{{{parts[0]}}}{{{parts[1]}}}", Binds.SUM if sign else Binds.POWER)
    signs = {"pi": r"\pi", "e": r"\mathrm{e}", "inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}
    text = signs.get(exact_text(value), exact_text(value))
    written = latex_number(text)
    return Written(written, Binds.SUM if text[0] == "-" else Binds.ATOM if written == text else Binds.PRODUCT)


# Movement


def _index(w: LatexNodeWriter, node: Node) -> Written:
    (x,) = node.args
    key = _slices(subscript(node.settings[0], x.shape)).replace(", ", ",")
    return Written(w.latex.indexed(w.argument(x, Binds.ATOM), key))


def _slices(key: str) -> str:
    return key.replace(":", ALL).replace("…", r"\dots").replace("×", r" \times ").replace("None", r"\mathrm{None}")


def _take(w: LatexNodeWriter, node: Node) -> Written:
    x, key = taken(node, w.names)
    return Written(f"{w.argument(x, Binds.ATOM)}[{_indices(key)}]")


def _of_arguments(w: LatexNodeWriter, node: Node) -> Written:
    return applied(rf"\operatorname{{{node.op.replace('_', ' ')}}}", w.arguments(node))


def _indices(key: str) -> str:
    return _slices(key).replace("places", r"\text{ places}")


def _reshape(w: LatexNodeWriter, node: Node) -> Written:
    """Return a reshape as a reduction with `keepdims=True`, as `A⁻¹b` of a vector b, else as a reshape."""
    if (reduced := reduction_with_keepdims(node, w)) is not None:
        return call(w, w.with_explicit_broadcasts(reduced), setting("keepdims", True))
    if (system := solved_for_vector(node, w)) is not None:
        return _solution(w, *system)
    return _shaped("reshape")(w, node)


def _shaped(name: str) -> Rule:
    return lambda w, node: applied(
        rf"\operatorname{{{name}}}", w.arguments(node), times(node.shape) or r"\text{scalar}"
    )


def _stack(w: LatexNodeWriter, node: Node) -> Written:
    (axis,) = node.settings
    if len(node.shape) > 2 or len(node.args) > w.shown:
        return _joined(w, node)
    if axis == 1:
        return Written(matrix([w.arguments(node)]))
    if len(node.shape) == 2:
        return Written(matrix([_row(w, a) for a in node.args]))
    return Written(matrix([[name] for name in w.arguments(node)]))


def _row(w: LatexNodeWriter, vector: Node) -> list[str]:
    """Return a vector as a row of a matrix: its elements where they are written."""
    if 0 < len(operands(vector, "stack")) <= w.shown and vector not in w.names:
        return w.arguments(vector)
    return [transposed(w, vector)]


def _concatenate(w: LatexNodeWriter, node: Node) -> Written:
    (axis,) = node.settings
    if axis > 1 or len(node.shape) > 2 or len(node.args) > w.shown:
        return _joined(w, node)
    names = w.arguments(node)
    return Written(matrix([names] if axis else [[name] for name in names]))


def _joined(w: LatexNodeWriter, node: Node) -> Written:
    names = [*map(w.name, node.args[: w.shown]), *[r"\dots"] * (len(node.args) > w.shown)]
    (axis,) = node.settings
    return applied(rf"\operatorname{{{node.op}}}", names, *([setting("axis", axis)] if axis else []))


def _scatter(w: LatexNodeWriter, node: Node) -> Written:
    shape, keys = node.settings
    if len(keys) == 1 and not any(isinstance(k, int) for k in keys[0]) and (around := padding(keys[0], shape)):
        return applied(r"\operatorname{pad}", w.arguments(node), f"({', '.join(map(str, around))})")
    parts = [
        rf"[{_slices(subscript(k, shape))}] \mathrel{{+}}= {w.name(a)}" for k, a in zip(keys, node.args, strict=True)
    ]
    return _into(node, parts[:PARTS] + [r"\dots"] * (len(parts) > PARTS))


def _scatter_add(w: LatexNodeWriter, node: Node) -> Written:
    return _into(node, [rf"[{_indices(index_key(*node.settings[:2]))}] \mathrel{{+}}= {w.name(node.args[0])}"])


def _into(node: Node, parts: list[str]) -> Written:
    """Return zeros with parts added at their indices."""
    return Written(rf"\mathbf{{0}}_{{{times(node.shape)}}} \text{{ with }} {', '.join(parts)}", Binds.CONDITION)


# Linear algebra


def side_by_side(w: LatexNodeWriter, a: Node, b: Node, numbers: bool = False) -> Written:
    """Return two factors side by side."""
    # A sign in front needs no brackets: -(a + b) c.
    left = w.operand(a, Binds.SUM if a.is_constant or operand(a, "neg") is not None else Binds.PRODUCT, last=False)
    right = w.operand(b, Binds.LOOSE if numbers else Binds.PRODUCT, first=False)
    # A number beside itself, or a power of it, would read as one name: xx.
    again = numbers and right.text.partition("^")[0] == left.text.rpartition(" ")[2].lstrip("-")
    text = rf"{left.text} \cdot {right.text}" if again else beside(left.text, right.text)
    return Written(text, min(Binds.PRODUCT, right.binds), right.open)


def beside(left: str, right: str) -> str:
    r"""Return factors with what parts them: a dot in front of digits, some space beside a word.

    >>> beside("a", "b"), beside("a", "2"), beside("x", r"\mathtt{model.0.weight}")
    ('a b', 'a \\cdot 2', 'x \\, \\mathtt{model.0.weight}')
    """
    if right[0].isdigit():
        return rf"{left} \cdot {right}"
    words = right.startswith(WORDS) or _ENDS_IN_WORD.search(left)
    return rf"{left} \, {right}" if words else f"{left} {right}"


def _matmul(w: LatexNodeWriter, node: Node) -> Written:
    a, b = node.args
    if len(a.shape) > 1:
        return side_by_side(w, a, b)
    # Vectors are columns.
    first, second = (a, b) if len(b.shape) == 1 else (b, a)
    plain = turns(first) and first not in w.names
    left = w.argument(first.args[0], Binds.PRODUCT) if plain else transposed(w, first)
    right = w.operand(second, Binds.PRODUCT)
    return Written(beside(left, right.text), Binds.PRODUCT, right.open)


def turns(node: Node) -> bool:
    """Return whether a node exchanges the last two axes."""
    return node.op == "transpose" and node.settings[0] == (*range(len(node.shape) - 2), *range(len(node.shape))[:-3:-1])


def transposed(w: LatexNodeWriter, node: Node) -> str:
    """Return the transpose of an array, or of a vector, which is a column."""
    return rf"{w.argument(node, Binds.ATOM)}^{{\top}}"


def _transpose(w: LatexNodeWriter, node: Node) -> Written:
    if turns(node):
        return Written(transposed(w, node.args[0]), Binds.POWER)
    return applied(r"\operatorname{permute}", w.arguments(node), ",".join(map(str, node.settings[0])))


def _einsum(w: LatexNodeWriter, node: Node) -> Written:
    key = node.settings[0].replace("->", r" \to ")
    return applied(r"\operatorname{einsum}", w.arguments(node), rf"\mathrm{{{key}}}")


def _outer(w: LatexNodeWriter, node: Node) -> Written:
    a, b = node.args
    return Written(beside(w.operand(a, Binds.PRODUCT, last=False).text, transposed(w, b)), Binds.PRODUCT)


def _solution(w: LatexNodeWriter, a: Node, b: Node) -> Written:
    right = w.operand(b, Binds.PRODUCT)
    return Written(beside(f"{w.argument(a, Binds.ATOM)}^{{-1}}", right.text), Binds.PRODUCT, right.open)


def _cross(w: LatexNodeWriter, node: Node) -> Written:
    a, b = (w.argument(x, Binds.POWER) for x in node.args)
    (axis,) = node.settings
    below = "" if axis == len(node.shape) - 1 else rf"_{{\mathrm{{axis}} = {axis}}}"
    return Written(rf"{a} \times{below} {b}", Binds.SUM)


def _from_diagonal(w: LatexNodeWriter, node: Node) -> Written:
    shape = [times(node.shape)] if len(set(node.shape)) > 1 else []
    if node.args[0].value == 1 and not shape:
        return Written(f"I_{{{node.shape[0]}}}")
    return applied(r"\operatorname{diag}", w.arguments(node), *shape)


ARRAYS: dict[str, Rule] = {
    "const": constant,
    "matmul": _matmul,
    "outer": _outer,
    "einsum": _einsum,
    "inv": lambda w, node: Written(f"{w.argument(node.args[0], Binds.ATOM)}^{{-1}}", Binds.POWER),
    "solve": lambda w, node: _solution(w, *node.args),
    "cross": _cross,
    "cast": lambda w, node: applied(rf"\operatorname{{{node.dtype}}}", w.arguments(node)),
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": _shaped("expand"),
    "index": _index,
    "take": _take,
    **dict.fromkeys(("index_add", "dynamic_slice", "dynamic_scatter"), _of_arguments),
    "scatter_add": _scatter_add,
    "scatter": _scatter,
    "diagonal": lambda w, node: applied(r"\operatorname{diag}", w.arguments(node)),
    "from_diagonal": _from_diagonal,
    "stack": _stack,
    "concatenate": _concatenate,
}
