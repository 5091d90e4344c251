"""Nodes as text, in the language of gradcli: what a forward step computes, what a pullback passes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli.graph.graph import Graph
from gradcli.graph.names import LATEX_INFIX, fresh_names, latex_index, latex_name, latex_number
from gradcli.graph.node import Constant, Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, broadcast_shapes
from gradcli.notation.decimals import whole_text

_LEVELS = {"add": 1, "sub": 1, "mul": 2, "div": 2, "matmul": 2, "mod": 2, "neg": 2, "pow": 3}
_ATOM = 9
_DEEP = 40


def node_names(graph: Graph) -> dict[Node, str]:
    """Return the names under which the nodes of a system are shown: the user's, `t1`, `t2`, … for the others.

    Constants are shown as they are, and have no name.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> list(node_names(Graph.of({"x": x}, {"y": 3 * x**2})).values())
    ['x', 't1', 'y']
    """
    fresh = fresh_names({*graph.inputs, *graph.names})
    return {n: graph.labels.get(n) or next(fresh) for n in graph.nodes if n.op != "const" or n in graph.labels}


def readable_names(graph: Graph) -> dict[Node, str]:
    """Return the user's names, and names for the parts of expressions that would be too deep to read as one.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> list(readable_names(Graph.of({"x": x}, {"y": 3 * x**2})).values())
    ['x', 'y']
    """
    fresh = fresh_names({*graph.inputs, *graph.names})
    names: dict[Node, str] = {}
    depths: dict[Node, int] = {}
    for node in graph.nodes:
        depths[node] = 1 + max((depths[a] for a in node.args if a not in names), default=0)
        if node in graph.labels or (depths[node] > _DEEP and node.op != "const"):
            names[node] = graph.labels.get(node) or next(fresh)
    return names


def written_size(node: Node, names: Mapping[Node, str]) -> int:
    """Return how many operations the text of a node has; shared ones are written out each time."""
    sizes: dict[Node, int] = {}

    def measure(part: Node) -> int:
        if part not in sizes:
            sizes[part] = 1 + sum(1 if a in names else measure(a) for a in part.args)
        return sizes[part]

    return measure(node)


def spread_argument(node: Node) -> Node | None:
    """Return what a node broadcasts, as the rules of reductions do, or None for any other node."""
    if node.op == "reshape" and [n for n in node.shape if n > 1] == [n for n in node.args[0].shape if n > 1]:
        return node.args[0]
    return node.args[0] if node.op == "broadcast" else None


class Notation:
    """Writes nodes; those in `names` by their names, the others in terms of them."""

    def __init__(self, names: Mapping[Node, str], times: str = "·", implicit: bool = False) -> None:
        """`implicit` leaves out what broadcasting does by itself."""
        self.names = names
        self.implicit = implicit
        self.infix = {"mul": times, "div": "/", "pow": "**", "add": " + ", "sub": " - ", "matmul": " @ "}

    def name(self, node: Node) -> str:
        """Return a node's name, or what stands for it."""
        return self.names.get(node) or self.expression(node)

    def expression(self, node: Node) -> str:
        """Return what a node computes, in terms of named nodes.

        >>> from gradcli.graph.node import leaf
        >>> x = leaf()
        >>> Notation({x: "x"}).expression(2 * x**3)
        '2·x**3'
        """
        return self._write(node)[0]

    def assigned(self, name: str, node: Node) -> str:
        """Return what a name was given: what its node computes, or the name that the node has already."""
        known = self.names.get(node)
        return self.expression(node) if known in (None, name) else known

    def _write(self, node: Node) -> tuple[str, int]:
        """Return the text of a node and how tightly it binds."""
        if self.implicit and (inner := spread_argument(node)) is not None and node not in self.names:
            return (self.names[inner], _ATOM) if inner in self.names else self._write(inner)
        if node.op == "const":
            return _constant(node)
        if node.op in self.infix:
            level = _LEVELS[node.op]
            left, right = _plain(node, self.names)
            # Powers group to the right, the others to the left.
            a = self._argument(left, level + (node.op == "pow"))
            b = self._argument(right, level + (node.op not in ("add", "mul", "pow")), first=False)
            return f"{a}{self.infix[node.op]}{b}", level
        if node.op == "neg":
            return f"-{self._argument(node.args[0], 2)}", 1
        if OPERATIONS[node.op].broadcasts:
            infix = OPERATIONS[node.op].infix
            if infix and len(node.args) == 2 and node.op != "mod":
                return f" {infix} ".join(self._argument(a, 1) for a in _plain(node, self.names)), 0
            return f"~{self._argument(node.args[0], 3)}" if node.op == "not" else self._function(node), _ATOM
        write: Callable[[Notation, Node], str] = _STRUCTURAL.get(node.op, _call)
        return write(self, node), _ATOM

    def _argument(self, node: Node, level: int, first: bool = True) -> str:
        """Return an operand, in brackets if it binds less tightly, or begins with a sign behind another sign."""
        if node in self.names:
            return self.names[node]
        text, binds = self._write(node)
        return text if binds >= level and (first or not text.startswith("-")) else f"({text})"

    def _function(self, node: Node) -> str:
        if node.op in ("identity", "corner"):
            return self.name(node.args[-1])
        return f"{node.op}({', '.join(self.arguments(node))})"

    def arguments(self, node: Node) -> list[str]:
        """Return the names of a node's arguments."""
        return [self.name(a) for a in _plain(node, self.names)]


def _plain(node: Node, names: Mapping[Node, str]) -> tuple[Node, ...]:
    """Return a node's arguments, an array filled with one number as that number where the others have the shape."""
    args = list(node.args)
    for i, a in enumerate(args if args and OPERATIONS[node.op].broadcasts else ()):
        others = [b.shape for b in args[:i] + args[i + 1 :]]
        if a.shape and a.value is not None and a not in names and others and broadcast_shapes(others) == node.shape:
            args[i] = const(a.value)
    return tuple(args)


def _constant(node: Node) -> tuple[str, int]:
    """Return the text of a constant, and how tightly it binds."""
    if node.value is None:
        return _nested(node.shape, node.values, _number_text, "[{}]", "…"), _ATOM
    text = _number_text(node.value)
    if node.shape:
        filled = {"0": "zeros", "1": "ones"}.get(text)
        sizes = ", ".join(map(str, node.shape))
        return f"{filled}({sizes})" if filled else f"full({_size(node.shape)}, {text})", _ATOM
    return text, 1 if text.startswith("-") else 2 if "/" in text else _ATOM


def _nested(shape: Shape, values: Sequence[Constant], write: Callable[[Constant], str], list_: str, more: str) -> str:
    """Return an array as a list of lists, of which only the first elements are shown."""
    if not shape:
        return write(values[0])
    size = len(values) // shape[0]
    parts = [values[i * size : (i + 1) * size] for i in range(min(_SHOWN, shape[0]))]
    shown = [_nested(shape[1:], part, write, list_, more) for part in parts]
    return list_.format(", ".join(shown + [more] * (shape[0] > _SHOWN)))


def _number_text(value: Constant) -> str:
    if isinstance(value, Fraction):
        return f"{whole_text(value.numerator)}/{whole_text(value.denominator)}"
    return whole_text(value) if isinstance(value, int) else str(value)


def _call(notation: Notation, node: Node) -> str:
    return f"{node.op}({', '.join(notation.arguments(node))})"


def _reduction(notation: Notation, node: Node) -> str:
    (x,) = node.args
    axes = node.settings[0]
    if len(axes) == len(x.shape):
        return _call(notation, node)
    return f"{node.op}({notation.name(x)}, axis={axes[0] if len(axes) == 1 else axes})"


def _along(notation: Notation, node: Node) -> str:
    more = f", axis={node.settings[0]}" if len(node.args[0].shape) > 1 else ""
    more += ", descending=True" if node.op in ("sort", "argsort") and node.settings[1] else ""
    return f"{node.op}({', '.join(notation.arguments(node))}{more})"


def _triangle(notation: Notation, node: Node) -> str:
    return f"{node.op}({notation.name(node.args[0])}{f', {k}' if (k := node.settings[0]) else ''})"


def _joined(notation: Notation, node: Node) -> str:
    parts = notation.arguments(node)
    shown = ", ".join(parts[:6]) + (", …" if len(parts) > 6 else "")
    if node.op == "stack" and node.settings[0] == 0:
        return f"[{shown}]"
    return f"{node.op}([{shown}], axis={node.settings[0]})"


def subscript(key: Any) -> str:
    """Return an index as it is written between brackets.

    >>> subscript((0, range(1, 3)))
    '0, 1:3'
    """
    return ", ".join(_slice(k) if isinstance(k, range) else str(k) for k in key)


def places_key(node: Node) -> str:
    """Return the index of a node that takes or puts slices, as it is written between brackets."""
    axis, places, *_ = node.settings
    return f"{':, ' * axis}{places}"


def _slice(k: range) -> str:
    stop = "" if k.stop < 0 else str(k.stop)
    return f"{k.start}:{stop}" + (f":{k.step}" if k.step != 1 else "")


def _scatter(notation: Notation, node: Node) -> str:
    parts = [f"[{subscript(k)}] += {notation.name(a)}" for k, a in zip(node.settings[1], node.args, strict=True)]
    return f"zeros{_size(node.shape)} with " + ", ".join(parts[:4]) + (", …" if len(parts) > 4 else "")


def _put(notation: Notation, node: Node) -> str:
    return f"zeros{_size(node.shape)} with [{places_key(node)}] += {notation.name(node.args[0])}"


def _size(shape: Any) -> str:
    return str(tuple(shape))


def _transpose(notation: Notation, node: Node) -> str:
    (order,) = node.settings
    inner = notation._argument(node.args[0], _ATOM)
    return f"{inner}.T" if order == tuple(reversed(range(len(order)))) else f"permute({inner}, {order})"


def _shaped(notation: Notation, node: Node) -> str:
    return f"{node.op}({notation.name(node.args[0])}, {_size(node.shape)})"


_STRUCTURAL = {
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "norm", "var", "std", "logsumexp"), _reduction),
    "median": _reduction,
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "recurrence", "sort", "argsort"), _along),
    **dict.fromkeys(("take_along", "put_along", "argmax", "argmin", "cross"), _along),
    **dict.fromkeys(("triu", "tril"), _triangle),
    **dict.fromkeys(("stack", "concatenate"), _joined),
    **dict.fromkeys(("reshape", "broadcast"), _shaped),
    "index": lambda n, node: f"{n._argument(node.args[0], _ATOM)}[{subscript(node.settings[0])}]",
    "scatter": _scatter,
    "take": lambda n, node: f"{n._argument(node.args[0], _ATOM)}[{places_key(node)}]",
    "put": _put,
    "einsum": lambda n, node: f'einsum("{node.settings[0]}", {", ".join(n.arguments(node))})',
    "transpose": _transpose,
    "cast": lambda n, node: f"{node.dtype}({n.name(node.args[0])})",
    "diagonal": lambda n, node: f"diag({n.name(node.args[0])})",
    "from_diagonal": lambda n, node: f"diag({n.name(node.args[0])})",
}


class LatexNotation:
    """Writes nodes as LaTeX for math mode; those in `names` by their names."""

    def __init__(self, names: Mapping[Node, str], implicit: bool = False) -> None:
        self.names = names
        self.implicit = implicit

    def name(self, node: Node) -> str:
        """Return a node's name, or what stands for it."""
        return latex_name(self.names[node]) if node in self.names else self.expression(node)

    def expression(self, node: Node) -> str:
        """Return what a node computes, in terms of named nodes.

        >>> from gradcli.graph.node import leaf
        >>> x = leaf()
        >>> LatexNotation({x: "x0"}).expression(2 * x**3)
        '2 x_{0}^{3}'
        """
        return self._write(node)[0]

    def _write(self, node: Node) -> tuple[str, int]:
        if self.implicit and (inner := spread_argument(node)) is not None:
            return (latex_name(self.names[inner]), _ATOM) if inner in self.names else self._write(inner)
        if node.op == "const":
            return _latex_constant(node)
        name = self.name
        match node.op, _plain(node, self.names):
            case "add", (a, b):
                return f"{self._argument(a, 1)} + {self._argument(b, 1, first=False)}", 1
            case "sub", (a, b):
                return f"{self._argument(a, 1)} - {self._argument(b, 2, first=False)}", 1
            case "mul" | "matmul", (a, b):
                dot = r" \cdot " if b.op == "const" else " "
                # A sign in front needs no brackets: -(a + b) c.
                return f"{self._argument(a, 1 if a.op == 'neg' else 2)}{dot}{self._argument(b, 2, first=False)}", 2
            case "div", (a, b):
                return rf"\frac{{{name(a)}}}{{{name(b)}}}", 3
            case "pow", (a, b):
                return f"{self._argument(a, _ATOM)}^{{{name(b)}}}", 3
            case "neg", (a,):
                return f"-{self._argument(a, 2)}", 1
            case "identity" | "corner", (*_, a):
                return name(a), _ATOM
            case "sqrt", (a,):
                return rf"\sqrt{{{name(a)}}}", _ATOM
            case "abs" | "norm", (a,):
                bars = r"\|" if node.op == "norm" else "|"
                return rf"\left{bars}{name(a)}\right{bars}", _ATOM
            case "exp", (a,):
                return f"e^{{{name(a)}}}", 3
            case "transpose", (a,):
                return rf"{self._argument(a, _ATOM)}^{{\top}}", 3
            case "index", (a,):
                return latex_index(self._argument(a, _ATOM), _latex_text(subscript(node.settings[0]))), 3
            case "take", (a,):
                return latex_index(self._argument(a, _ATOM), places_key(node)), 3
            case "put", (a,):
                return rf"\operatorname{{put}}_{{{places_key(node)}}}\left({name(a)}\right)", _ATOM
            case "einsum", (a, b):
                terms = node.settings[0].replace("->", r" \to ")
                return rf"\operatorname{{einsum}}_{{{terms}}}\left({name(a)}, {name(b)}\right)", _ATOM
            case "inv", (a,):
                return f"{self._argument(a, _ATOM)}^{{-1}}", 3
            case "cross", (a, b):
                return rf"{self._argument(a, 3)} \times {self._argument(b, 3)}", 2
            case "where", (c, a, b):
                cases = rf"{name(a)} & {name(c)} \\ {name(b)} & \text{{otherwise}}"
                return rf"\begin{{cases}} {cases} \end{{cases}}", 2
        infix = OPERATIONS[node.op].infix
        sign = LATEX_INFIX.get(infix, infix)
        if infix and len(node.args) == 2:
            # Sums may be compared; the operands of other signs are in brackets unless they are simple.
            level = 1 if infix in _COMPARISONS else 3
            return f" {sign} ".join(self._argument(a, level) for a in node.args), 0
        if infix:
            return f"{sign} {self._argument(node.args[0], 3)}", _ATOM
        return self._call(node), _ATOM

    def _argument(self, node: Node, level: int, first: bool = True) -> str:
        """Return an operand, in brackets if it binds less tightly, or begins with a sign behind another sign."""
        if node in self.names:
            return latex_name(self.names[node])
        text, binds = self._write(node)
        return text if binds >= level and (first or not text.startswith("-")) else rf"\left({text}\right)"

    def _call(self, node: Node) -> str:
        arguments = [self.name(a) for a in _plain(node, self.names)[:_SHOWN]] + [r"\dots"] * (len(node.args) > _SHOWN)
        if node.op in ("stack", "concatenate"):
            return rf"\left[{', '.join(arguments)}\right]"
        function = rf"\{node.op}" if node.op in _LATEX_FUNCTIONS else rf"\operatorname{{{_latex_text(node.op)}}}"
        return rf"{function}\left({', '.join(arguments)}\right)"


_SHOWN = 6
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LATEX_FUNCTIONS = frozenset(
    ["sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "log", "max", "min", "det"]
)


def _latex_constant(node: Node) -> tuple[str, int]:
    if node.value is None:
        numbers = _nested(node.shape, node.values, lambda v: _latex_number(v)[0], r"\left[{}\right]", r"\dots")
        return numbers, _ATOM
    text, binds = _latex_number(node.value)
    if node.shape:
        filled = rf"\mathbf{{{text}}}" if text in ("0", "1") else rf"{text} \cdot \mathbf{{1}}"
        sizes = r" \times ".join(map(str, node.shape))
        return f"{filled}_{{{sizes}}}", 2
    return text, binds


def _latex_number(value: Constant) -> tuple[str, int]:
    if isinstance(value, Fraction):
        parts = [latex_number(whole_text(part)) for part in abs(value).as_integer_ratio()]
        sign = "-" if value < 0 else ""
        return rf"{sign}\frac{{{parts[0]}}}{{{parts[1]}}}", 1 if sign else 3
    text = _number_text(value)
    text = {"pi": r"\pi", "inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}.get(text, text)
    written = latex_number(text)
    return written, 1 if text.startswith("-") else 2 if written != text else _ATOM


def _latex_text(text: str) -> str:
    return text.replace("_", r"\_")
