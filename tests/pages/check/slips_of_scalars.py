"""Derivations of systems of scalars, whose local derivatives SymPy's `diff` writes, and the slips in them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import sympy
from sympy import Expr, Symbol

COUNT = 7  # random points at which claims are compared
SHORT = 70  # operations of a formula that SymPy may take apart


class Slip(NamedTuple):
    """A slip: its kind, the operation and the operand, as the user wrote them, and the local derivatives."""

    kind: str
    step: str
    by: str
    wrote: str
    right: str
    edges: int = 1


class sigmoid(sympy.Function):  # its name is the user's
    """The logistic function, whose derivative is written by its value, as people do."""

    def fdiff(self, argindex: int = 1) -> Expr:
        return self * (1 - self)


NAMES = "exp log sqrt sin cos tan sinh cosh tanh asin acos atan erf Abs"
FUNCTIONS = {name: getattr(sympy, name) for name in NAMES.split()} | {"sigmoid": sigmoid}
# What people write for the derivative of a function by its argument u and its value y: a neighbouring function's.
NEIGHBOURS = {
    "sin": ("sin(u)", "-cos(u)"), "cos": ("cos(u)", "sin(u)"), "sinh": ("sinh(u)", "-cosh(u)"),
    "cosh": ("cosh(u)", "-sinh(u)"), "tan": ("1 - y**2", "1/cosh(u)**2"), "tanh": ("y*(1 - y)", "1/cos(u)**2"),
    "sigmoid": ("1 - y**2",), "asin": ("-1/sqrt(1 - u**2)", "1/(1 + u**2)"), "acos": ("1/sqrt(1 - u**2)",),
    "atan": ("1/(1 - u**2)", "1/sqrt(1 + u**2)"), "log": ("log(u)", "-1/u**2"), "erf": ("exp(-u**2)",),
}  # fmt: skip
NUMPY = {"sigmoid": lambda x: 1 / (1 + np.exp(-x))}


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of a system: its function, its operands, and the name of its value, if it has one.

    A leaf and a number have no operands; `text` is what stands in the system.
    """

    function: str
    args: tuple[Operation, ...]
    text: str
    name: str = ""

    @cached_property
    def value(self) -> Expr:
        """The value in the user's names."""
        return Symbol(self.name, real=True) if self.name else self.formula

    @cached_property
    def formula(self) -> Expr:
        """The value by those of the operands."""
        if self.function == "number":
            return sympy.pi if self.text == "pi" else sympy.Rational(self.text)
        return applied(self.function, *(a.value for a in self.args))

    def local(self, position: int, args: Sequence[Expr] = ()) -> Expr:
        """Return the derivative by one operand, as `diff` writes it, perhaps at other operands."""
        dummies = [a.formula if a.function == "number" else sympy.Dummy(real=True) for a in self.args]
        f = applied(self.function, *dummies)
        slope = f.diff(dummies[position])
        if self.name and not args:
            slope = slope.subs(f, self.value)
        return slope.subs(dict(zip(dummies, args or [a.value for a in self.args], strict=True)))


def applied(function: str, *args: Expr) -> Expr:
    if function in FUNCTIONS:
        return FUNCTIONS[function](*args)
    if function == "neg":
        return -args[0]
    if len(args) == 1:  # what `check` may name: `sech`, `atanh`
        return getattr(sympy, function)(args[0])
    return {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
            "pow": operator.pow}[function](*args)  # fmt: skip


def operations(system: str) -> dict[str, Operation]:
    """Return the operations of a system by their names, leaves first used are first; loops are unrolled."""
    named: dict[str, Operation] = {}
    for name, formula in statements(system):
        whole = read(ast.parse(formula, mode="eval").body, named)
        if whole.name or whole.function == "number":  # another name of the same: an operation of its own
            whole = Operation("mul", (whole, Operation("number", (), "1")), whole.text)
        named[name] = Operation(whole.function, whole.args, whole.text, name)
    return named


def statements(system: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the formulas of a system's statements, a loop's round by round."""
    for statement in filter(None, re.split(r"\s*[;\n]\s*", system)):
        if loop := re.fullmatch(r"(.*) for (\w+) in (\d+)\.\.(\d+)", statement):
            body, k, first, last = loop.groups()
            for n in range(int(first), int(last) + 1):
                yield _statement(re.sub(rf"\b{k}\b(?:([+-])(\d+))?", lambda m, n=n: _shifted(n, m), body))
        else:
            yield _statement(statement)


def _shifted(n: int, match: re.Match[str]) -> str:
    return str(n + int((match[1] or "+") + (match[2] or "0")))


def _statement(text: str) -> tuple[str, str]:
    name, _, formula = text.partition("=")
    return name.strip(), formula.strip()


def read(node: ast.expr, named: dict[str, Operation]) -> Operation:
    text = ast.unparse(node)
    match node:
        case ast.Constant(value):
            return Operation("number", (), str(value))
        case ast.Name("pi"):
            return Operation("number", (), text)
        case ast.Name() | ast.Subscript():
            return named.setdefault(text, Operation("leaf", (), text, text))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return Operation("number", (), f"-{value}")
        case ast.UnaryOp(ast.USub(), x):
            return Operation("neg", (read(x, named),), text)
        case ast.Call(ast.Name(name), [x]):
            return Operation("Abs" if name == "abs" else name, (read(x, named),), text)
        case ast.BinOp(left, op, right):
            function = {ast.Mult: "mul"}.get(type(op), type(op).__name__.lower())
            return Operation(function, (read(left, named), read(right, named)), text)
    raise AssertionError(text)


def read_formula(named: Mapping[str, Operation], text: str) -> Operation:
    """Return what a text says in the names of a system."""
    return read(ast.parse(text, mode="eval").body, dict(named))


Edge = tuple[Operation, int]
Edit = tuple[str, Expr, bool]  # the kind, the local derivative, and whether the chain goes on behind it


@dataclass(frozen=True, eq=False)
class ScalarDerivation:
    """The derivation of one derivative of a system of scalars."""

    system: str
    of: str
    by: str
    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def named(self) -> dict[str, Operation]:
        return operations(self.system)

    @property
    def left(self) -> str:
        return f"d{self.of}/d{self.by}"

    @cached_property
    def order(self) -> list[Operation]:
        """The operations that the output is made of, operands first."""
        order: dict[Operation, None] = {}

        def visit(node: Operation) -> None:
            for a in node.args:
                if a not in order:
                    visit(a)
            order.setdefault(node)

        visit(self.named[self.of])
        return list(order)

    @cached_property
    def edges(self) -> list[Edge]:
        """The edges on paths from the variable to the output."""
        active = {self.named[self.by]}
        found = []
        for node in self.order:
            inner = [(node, i) for i, a in enumerate(node.args) if a in active]
            if inner:
                active.add(node)
            found += inner
        return found

    def derivative(self, edits: Mapping[Edge, Edit] | None = None) -> Expr:
        """Return the derivative by the chain rule, with some local derivatives replaced."""
        edits = edits or {}
        tangents: dict[Operation, Expr] = {self.named[self.by]: sympy.Integer(1)}
        for node, i in self.edges:
            _, local, chained = edits.get((node, i), ("", None, True))
            local = node.local(i) if local is None else local
            inner = tangents[node.args[i]] if chained else sympy.Integer(1)
            tangents[node] = tangents.get(node, sympy.Integer(0)) + local * inner
        return tangents[self.named[self.of]]

    @cached_property
    def singles(self) -> list[tuple[str, dict[Edge, Edit]]]:
        """The slips: each at one edge, and at all edges where it can be made, if these are several."""
        found: list[tuple[str, dict[Edge, Edit]]] = []
        alike: dict[tuple[str, int, str, int], dict[Edge, Edit]] = {}
        active = {node.args[i] for node, i in self.edges}
        for edge in self.edges:
            count: dict[str, int] = {}
            for edit in slips_of(edge, active, self.edges):
                kind = edit[0]
                count[kind] = count.get(kind, 0) + 1
                found.append((kind, {edge: edit}))
                node, i = edge
                form = node.function + (node.args[1].text if node.function == "pow" else "")
                alike.setdefault((form, i, kind, count[kind]), {})[edge] = edit
        functions = [(key[2], edits) for key, edits in alike.items() if len(edits) > 1 and _is_told_apart(key)]
        rounds = [(key[2], edits) for key, edits in alike.items() if len(edits) > 1 and _is_one_a_round(edits)]
        return found + functions + rounds

    def slips(self, edits: Mapping[Edge, Edit]) -> list[Slip]:
        """Return the slips of edits, equal ones as one."""
        return [
            Slip(kind, node.text, node.args[i].text, str(local) if chained else f"{local}, without the chain behind",
                 str(node.local(i)))
            for (node, i), (kind, local, chained) in dict(edits).items()
        ]  # fmt: skip

    # Numbers

    @cached_property
    def leaves(self) -> list[str]:
        return sorted({n.name for n in self.named.values() if n.function == "leaf"} | {self.by})

    @cached_property
    def points(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(11)
        return {name: rng.uniform(0.25, 0.95, COUNT) for name in self.leaves}

    def run(self, points: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the values of all that has a name."""
        values = dict(points)
        for name, node in self.named.items():
            if name not in values:
                values[name] = evaluated(node.formula, values)
        return values

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """The values at the points of all that has a name."""
        return self.run(self.points)

    def numbers(self, expr: Expr) -> np.ndarray:
        return evaluated(expr, self.values)

    def read_numbers(self, text: str) -> np.ndarray:
        """Return the values of a formula that is typed in the names of the system."""
        return self.numbers(read_formula(self.named, text).value)

    def differences(self) -> np.ndarray:
        """Return the central differences."""
        step = 1e-5
        ends = (self.run(self.points | {self.by: self.points[self.by] + s})[self.of] for s in (step, -step))
        return np.subtract(*ends) / (2 * step)

    # Texts

    @cached_property
    def definitions(self) -> dict[Expr, Expr]:
        """What has a name, in inputs alone."""
        found: dict[Expr, Expr] = {}
        for node in self.order:
            if node.name and node.function != "leaf":
                found[node.value] = node.formula.xreplace(found)
        return found

    def expanded(self, expr: Expr) -> Expr:
        """Return a formula in inputs alone."""
        return expr.xreplace(self.definitions)

    @cached_property
    def forms(self) -> dict[Operation, Expr]:
        """The operations' values in inputs alone."""
        return {node: self.expanded(node.value) for node in self.order}

    def guises(self, expr: Expr) -> dict[str, Callable[[], Expr]]:
        """Return the ways to write a formula, in names of the system or of inputs alone."""
        leaves = [n.value for n in self.order if n.function == "leaf"]
        ways: dict[str, Callable[[], Expr]] = {
            "as composed": lambda: expr,
            "expanded": lambda: sympy.expand(expr),
            "collected": lambda: sympy.collect(sympy.expand(expr), leaves),
        }
        if sympy.count_ops(expr) < SHORT:
            ways |= {"factored": lambda: sympy.factor(expr), "together": lambda: sympy.together(expr)}
        inputs = self.expanded(expr)
        if sympy.count_ops(inputs) < SHORT:
            ways |= {"in inputs": lambda: inputs, "expanded in inputs": lambda: sympy.expand(inputs)}
        return ways


def _is_told_apart(key: tuple[str, int, str, int]) -> bool:
    """Return whether a slip is one that is made wherever a function stands, and not by chance."""
    function, _, kind, _ = key
    return function not in ("add", "sub", "neg", "mul", "div") and kind not in ("sign", "constant factor")


def _is_one_a_round(edits: Mapping[Edge, Edit]) -> bool:
    """Return whether edges are one in each round of a loop: their texts are one but for indices."""
    return len({re.sub(r"\[\d+\]", "[]", node.text) for node, _ in edits}) == 1 and all("[" in n.text for n, _ in edits)


def evaluated(expr: Expr, values: Mapping[str, np.ndarray]) -> np.ndarray:
    symbols = sorted(expr.free_symbols, key=str)
    replaced = {s: Symbol(f"v{i}") for i, s in enumerate(symbols)}
    f = sympy.lambdify(list(replaced.values()), expr.xreplace(replaced), ["numpy", NUMPY, {"erf": _erf}])
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(f(*(values[str(s)] for s in symbols)), float), (COUNT,))


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf)(x)


def text(expr: Expr) -> str:
    """Return a formula as a user types it."""
    return str(expr).replace("Abs(", "abs(")


def slips_of(edge: Edge, active: set[Operation], edges: Sequence[Edge]) -> Iterator[Edit]:
    """Yield the slips at an edge."""
    node, i = edge
    right = node.local(i)
    u = node.args[i]
    seen = {right}
    for kind, wrong, chained in _candidates(node, i, right, u, active):
        if (chained and wrong in seen) or wrong.has(sympy.zoo, sympy.nan, sympy.oo):
            continue
        seen |= {wrong} if chained else set()
        yield kind, wrong, chained


def _candidates(node: Operation, i: int, right: Expr, u: Operation, active: set[Operation]) -> Iterator[Edit]:
    others = [a for j, a in enumerate(node.args) if j != i]
    if any(a in active for a in others):
        yield "path left out" if node.function in ("add", "sub") else "product rule", sympy.Integer(0), True
    yield "sign", -right, True
    if node.function in ("add", "sub", "neg"):
        return
    if u.function not in ("leaf", "number", "add", "sub", "neg") and node.function not in ("mul", "div"):
        yield "inner derivative left out", right, False
    if node.name and not right.is_number:
        yield "local derivative left out", sympy.Integer(1), True
    yield "constant factor", 2 * right, True
    yield "constant factor", right / 2, True
    if node.function in ("mul", "div"):
        yield from _of_products(node, i, right, u, others[0])
    elif node.function == "pow":
        yield from _of_powers(node, i, u)
    else:
        yield from _of_functions(node, right, u)
    yield from _one_off(right)


def _of_products(node: Operation, i: int, right: Expr, u: Operation, other: Operation) -> Iterator[Edit]:
    if node.function == "mul":
        if other.function != "number":
            yield "wrong value", u.value, True
            yield "inverted", 1 / right, True
        else:
            yield "constant left out", sympy.Integer(1), True
        return
    if i == 0:
        yield "inverted", 1 / right, True
        return
    yield "power not lowered", -other.value / u.value, True
    if other.function != "number" or other.text != "1":
        yield "factor left out", -1 / u.value**2, True


def _of_powers(node: Operation, i: int, u: Operation) -> Iterator[Edit]:
    if i == 1:
        yield "neighbouring function", node.value, True  # as if the base were e
        return
    n = node.args[1].value
    yield "power not lowered", n * u.value**n, True
    yield "factor of the power", u.value ** (n - 1), True
    if n.is_negative:
        yield "power not lowered", n * u.value ** (n + 1), True
    yield from _of_arguments(node, u)


def _of_functions(node: Operation, right: Expr, u: Operation) -> Iterator[Edit]:
    u_, y_ = sympy.symbols("u y", real=True)
    for wrong in NEIGHBOURS.get(node.function, ()):
        local = sympy.sympify(wrong, locals={"u": u_, "y": y_}).subs({u_: u.value, y_: node.value}, simultaneous=True)
        yield "neighbouring function", local, True
    if node.name and right.has(node.value):
        yield "wrong value", right.subs(node.value, u.value), True
    if node.function == "sqrt":
        yield "power not lowered", sympy.sqrt(u.value) / 2, True
        yield "factor of the power", 1 / sympy.sqrt(u.value), True
    if not right.is_number and node.function != "exp":
        yield "inverted", 1 / right, True
    if node.function == "tanh":
        yield "sign within parentheses", 1 + node.value**2, True
    if node.function == "sigmoid":
        yield "sign within parentheses", node.value * (1 + node.value), True
    yield from _of_arguments(node, u)


def _of_arguments(node: Operation, u: Operation) -> Iterator[Edit]:
    """Yield what a local derivative is if its argument is shortened, or has another sign within."""
    if u.name or u.function not in ("add", "sub", "mul", "div"):
        return
    a, b = (x.value for x in u.args)
    rest = [x.value for x in node.args[1:]]
    for part in (a, b) if u.function != "div" else (a,):
        if part.free_symbols:
            yield "argument shortened", node.local(0, args=[part, *rest]), True
    if u.function in ("add", "sub"):
        other = a - b if u.function == "add" else a + b
        yield "sign within parentheses", node.local(0, args=[other, *rest]), True


def _one_off(right: Expr) -> Iterator[Edit]:
    """Yield local derivatives with an index one off."""
    for symbol in sorted(right.free_symbols, key=str):
        if found := re.fullmatch(r"(\w+)\[(\d+)\]", str(symbol)):
            name, k = found[1], int(found[2])
            if k > 0:
                yield "index one off", right.subs(symbol, Symbol(f"{name}[{k - 1}]", real=True)), True
