"""Derivations of systems of arrays, line by line as people write them, and the slips in their lines."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from slips_of_scalars import Slip, statements

COUNT = 5  # random points at which claims are compared
NEIGHBOURS = {"sin": "cos", "cos": "sin", "sigmoid": "tanh", "tanh": "sigmoid", "softmax": "sigmoid", "log": "exp"}


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


NAMES = "exp log sqrt sin cos tanh sum mean outer diag eye trace abs concatenate zeros"
NUMPY = {name: getattr(np, name) for name in NAMES.split()} | {
    "inv": np.linalg.inv, "det": np.linalg.det, "softmax": _softmax, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """A change of one part of a line: the kind of the slip, the line, the part's number in it, and what is written."""

    kind: str
    line: int
    part: int
    new: ast.expr


@dataclass(frozen=True, eq=False)
class ArrayDerivation:
    """The derivation of one derivative of a system of arrays; each line is a derivative by an intermediate."""

    system: str
    shapes: Mapping[str, tuple[int, ...]]
    left: str
    lines: tuple[tuple[str, str], ...]

    @cached_property
    def trees(self) -> list[ast.expr]:
        return [ast.parse(formula, mode="eval").body for _, formula in self.lines]

    @cached_property
    def points(self) -> list[dict[str, np.ndarray]]:
        rng = np.random.default_rng(7)
        return [
            {name: rng.uniform(0.3, 1.4, shape) for name, shape in self.shapes.items()} for _ in range(COUNT)
        ]  # fmt: skip

    def run(self, point: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the values of the inputs and of all that the system assigns."""
        values = dict(point)
        with np.errstate(all="ignore"):
            for name, formula in statements(self.system):
                values[name] = evaluated(ast.parse(formula, mode="eval").body, values)
        return values

    @cached_property
    def values(self) -> list[dict[str, np.ndarray]]:
        return [self.run(point) for point in self.points]

    def numbers(self, tree: ast.expr) -> np.ndarray | None:
        """Return the values of a claim at the points, or None where it has none, or not the shape of the derivative."""
        with np.errstate(all="ignore"):
            try:
                found = [evaluated(tree, values) for values in self.values]
            except (ValueError, IndexError, TypeError, np.exceptions.AxisError, np.linalg.LinAlgError):
                return None
        return np.array(found) if {x.shape for x in found} == {self.shape} else None

    def read_numbers(self, text: str) -> np.ndarray:
        """Return the values of a formula that is typed in the names of the system, of the shape of the derivative."""
        tree = ast.parse(text, mode="eval").body
        return np.array([np.broadcast_to(evaluated(tree, values), self.shape) for values in self.values])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return evaluated(self.derivative(), self.values[0]).shape

    def differences(self) -> np.ndarray:
        """Return the central differences of the output, by entries of the variable."""
        of, by = re.fullmatch(r"d(\w+)/d(\w+)", self.left).groups()  # type: ignore[union-attr]
        whole = []
        for point in self.points:
            x = point[by]
            entries = []
            for key in np.ndindex(*x.shape):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = x.copy()
                    moved[key] += step
                    ends.append(self.run(dict(point) | {by: moved})[of])
                entries.append((ends[0] - ends[1]) / 2e-5)
            whole.append(np.moveaxis(np.array(entries), 0, -1).reshape(np.shape(entries[0]) + x.shape))
        return np.array(whole)

    def derivative(self, edits: Sequence[Edit] = ()) -> ast.expr:
        """Return the last line, with the others in the places of their names, and with some parts replaced."""
        done: dict[str, ast.expr] = {}
        for name, tree in self.edited(edits):
            done[name] = _substituted(tree, done)
        return done[self.lines[-1][0]]

    def edited(self, edits: Sequence[Edit]) -> list[tuple[str, ast.expr]]:
        found = []
        for k, ((name, _), tree) in enumerate(zip(self.lines, self.trees, strict=True)):
            here = {edit.part: edit.new for edit in edits if edit.line == k}
            found.append((name, _replaced(tree, here)))
        return found

    @cached_property
    def singles(self) -> list[tuple[str, list[Edit]]]:
        """The slips: each at one place, and at all places where the same part stands, if these are several."""
        found: list[tuple[str, list[Edit]]] = []
        alike: dict[tuple[str, str, str], list[Edit]] = {}
        for k, tree in enumerate(self.trees):
            for edit in _edits(k, tree, self):
                found.append((edit.kind, [edit]))
                part = [*ast.walk(tree)][edit.part]
                alike.setdefault((edit.kind, ast.dump(part), ast.dump(edit.new)), []).append(edit)
        return found + [(key[0], edits) for key, edits in alike.items() if len(edits) > 1]

    def slips(self, edits: Sequence[Edit]) -> list[Slip]:
        return [
            Slip(e.kind, *self.lines[e.line], ast.unparse(e.new), ast.unparse([*ast.walk(self.trees[e.line])][e.part]))
            for e in edits
        ]

    def guises(self, tree: ast.expr) -> dict[str, Callable[[], ast.expr]]:
        """Return the ways to write a claim."""
        whole: dict[str, ast.expr] = {}
        for name, formula in statements(self.system):
            whole[name] = _substituted(ast.parse(formula, mode="eval").body, whole)
        return {
            "as composed": lambda: tree,
            "in inputs": lambda: _substituted(tree, whole),
            "commuted": lambda: Commuted().visit(copy.deepcopy(tree)),
            "distributed": lambda: Distributed().visit(copy.deepcopy(tree)),
            "differences turned": lambda: Turned().visit(copy.deepcopy(tree)),
            "distributed in inputs": lambda: Distributed().visit(_substituted(tree, whole)),
        }


def evaluated(tree: ast.expr, values: Mapping[str, np.ndarray]) -> np.ndarray:
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(tree))), "", "eval")
    return np.asarray(eval(code, dict(NUMPY), dict(values)), float)  # the test's own formulas


def _substituted(tree: ast.expr, formulas: Mapping[str, ast.expr]) -> ast.expr:
    class Substituted(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that `ast` calls
            return copy.deepcopy(formulas.get(node.id, node))

    return Substituted().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


def _replaced(tree: ast.expr, parts: Mapping[int, ast.expr]) -> ast.expr:
    """Return a formula with parts replaced, which are numbered as `ast.walk` comes to them."""
    tree = copy.deepcopy(tree)
    new = {id(node): parts[k] for k, node in enumerate(ast.walk(tree)) if k in parts}

    class Replaced(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return copy.deepcopy(new[id(node)]) if id(node) in new else self.generic_visit(node)

    return Replaced().visit(tree)  # type: ignore[no-any-return]


# Slips


def _edits(line: int, tree: ast.expr, d: ArrayDerivation) -> Iterator[Edit]:
    """Yield the slips in a line: of the whole, and of its parts."""
    nodes = [*ast.walk(tree)]
    top = _terms(tree)
    for part, node in enumerate(nodes):
        for kind, new in _whole(node, d) if part == 0 else ():
            yield Edit(kind, line, part, new)
        if isinstance(node, ast.expr):
            for kind, new in _of_part(node, node in top, d):
                yield Edit(kind, line, part, new)


def _terms(tree: ast.expr) -> list[ast.expr]:
    """Return the sums at the top of a formula: their terms are paths of the derivative."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add | ast.Sub):
        return [tree, *_terms(tree.left), *_terms(tree.right)]
    return []


def _number(value: int) -> ast.Constant:
    return ast.Constant(value)


Kinds = Iterator[tuple[str, ast.expr]]


def _whole(tree: ast.expr, d: ArrayDerivation) -> Kinds:
    yield "sign", ast.UnaryOp(ast.USub(), tree)
    yield "constant factor", ast.BinOp(_number(2), ast.Mult(), tree)
    yield "constant factor", ast.BinOp(tree, ast.Div(), _number(2))
    yield "transposed", ast.Attribute(tree, "T", ast.Load())


def _of_part(node: ast.expr, top: bool, d: ArrayDerivation) -> Kinds:
    match node:
        case ast.BinOp(a, ast.Add() | ast.Sub() as op, b):
            yield from _of_sums(node, a, op, b, top)
        case ast.BinOp(a, ast.Mult(), b):
            for left, kept in ((a, b), (b, a)):
                yield "constant left out" if isinstance(left, ast.Constant) else "local derivative left out", kept
            yield "@ for *", ast.BinOp(a, ast.MatMult(), b)
        case ast.BinOp(a, ast.Div(), b):
            yield "constant left out" if isinstance(b, ast.Constant) else "factor left out", a
            yield "inverted", ast.BinOp(a, ast.Mult(), b)
        case ast.BinOp(a, ast.MatMult(), b):
            yield "transposed", ast.BinOp(b, ast.MatMult(), a)
            yield "@ for *", ast.BinOp(a, ast.Mult(), b)
            yield "local derivative left out", b
            yield "local derivative left out", a
        case ast.BinOp(x, ast.Pow(), ast.Constant(n)):
            yield "power not lowered", ast.BinOp(x, ast.Pow(), _number(n + 1))
            yield "power not lowered", ast.BinOp(x, ast.Pow(), _number(n - 1)) if n > 2 else x
        case ast.Attribute(x, "T"):
            yield "transposed", x
        case ast.Call(ast.Name(name), args, keywords):
            yield from _of_calls(node, name, args, keywords)
        case ast.Name(name):
            yield from _of_names(name, d)
        case ast.Subscript(x, ast.Slice()):
            yield from _of_slices(x, node.slice)  # type: ignore[arg-type]


def _of_sums(node: ast.expr, a: ast.expr, op: ast.operator, b: ast.expr, top: bool) -> Kinds:
    turned = ast.Add() if isinstance(op, ast.Sub) else ast.Sub()
    yield "sign" if top else "sign within parentheses", ast.BinOp(a, turned, b)
    alone = isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "diag"
    missing = "diagonal alone" if alone else "path left out" if top else "term left out"
    yield missing, a
    yield "path left out" if top else "term left out", b if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), b)


def _of_calls(node: ast.expr, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Kinds:
    if name in NEIGHBOURS:
        yield "neighbouring function", ast.Call(ast.Name(NEIGHBOURS[name], ast.Load()), args, [])
    if name == "eye":
        yield "eye left out", _number(1)
    if name in ("sum", "mean", "softmax"):
        for k, keyword in enumerate(keywords):
            if keyword.arg == "axis":
                other = ast.keyword("axis", _number(1 - keyword.value.value))  # type: ignore[attr-defined]
                yield "wrong axis", ast.Call(ast.Name(name), args, [*keywords[:k], other, *keywords[k + 1 :]])
    if name in ("sum", "mean"):
        other_name = "mean" if name == "sum" else "sum"
        yield "constant factor", ast.Call(ast.Name(other_name, ast.Load()), args, keywords)
    if name == "outer":
        yield "transposed", ast.Call(node.func, args[::-1], keywords)  # type: ignore[attr-defined]


def _of_names(name: str, d: ArrayDerivation) -> Kinds:
    """Yield a value's argument in its place, another input, and a square matrix's transpose."""
    value = d.values[0].get(name)
    if value is None:
        return
    for other, formula in statements(d.system):
        tree = ast.parse(formula, mode="eval").body
        if other == name and isinstance(tree, ast.Call) and isinstance(tree.args[0], ast.Name):
            yield "wrong value", tree.args[0]
    if name in d.shapes:
        alike = [n for n, shape in d.shapes.items() if shape == d.shapes[name] and n != name]
        for n in alike[:2]:
            yield "wrong value", ast.Name(n, ast.Load())
    if value.ndim == 2 and value.shape[0] == value.shape[1]:
        yield "transposed", ast.Attribute(ast.Name(name, ast.Load()), "T", ast.Load())


def _of_slices(x: ast.expr, part: ast.Slice) -> Kinds:
    if part.lower is not None and part.upper is None:
        yield "index one off", ast.Subscript(x, ast.Slice(None, ast.UnaryOp(ast.USub(), part.lower)), ast.Load())
    if part.upper is not None and part.lower is None and isinstance(part.upper, ast.UnaryOp):
        yield "index one off", ast.Subscript(x, ast.Slice(part.upper.operand, None), ast.Load())


# Other ways to write a claim


class Commuted(ast.NodeTransformer):
    """Exchanges the factors of products of elements, and the terms of sums."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.BinOp(node.right, node.op, node.left) if isinstance(node.op, ast.Mult | ast.Add) else node


class Turned(ast.NodeTransformer):
    """Writes `a - b` as `-(b - a)`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Sub):
            return node
        return ast.UnaryOp(ast.USub(), ast.BinOp(node.right, ast.Sub(), node.left))


class Distributed(ast.NodeTransformer):
    """Multiplies sums out."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        a, b, op = node.left, node.right, node.op
        if not isinstance(op, ast.Mult | ast.Div | ast.MatMult):
            return node
        if _is_sum(a):
            return ast.BinOp(ast.BinOp(a.left, op, b), a.op, ast.BinOp(a.right, op, b))
        if _is_sum(b) and not isinstance(op, ast.Div):
            return ast.BinOp(ast.BinOp(a, op, b.left), b.op, ast.BinOp(a, op, b.right))
        return node


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
