"""Expressions: `ast` → nodes, checked against a whitelist.

Nothing the user typed is ever evaluated by Python.  The walk keeps a stack of its own, as an expression may be
nested more deeply than Python recurses.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import Any

from gradcli.errors import Fix, InputError, Span, nearest
from gradcli.graph import construct
from gradcli.graph.index_arrays import pick
from gradcli.graph.names import element_name
from gradcli.graph.node import MAX_BITS, Constant, Exact, Node, compare, const, elementwise, fold
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import broadcast_shapes, check_size
from gradcli.lang.advice import (
    LANGUAGE,
    Advice,
    decimals,
    module_of,
    product,
    two_meanings,
    unknown_attribute,
    unknown_function,
    unsupported,
)
from gradcli.lang.expressions import Expression
from gradcli.lang.indices import (
    Key,
    arguments,
    complaint,
    index_of,
    plan,
    signature_of,
    take,
    takes_nodes,
    usage,
    whole_key,
)
from gradcli.vocabulary import CONSTANTS, FUNCTIONS, METHODS, Builder


def _operator(infix: str) -> type[ast.operator | ast.cmpop]:
    tree = ast.parse(f"a {infix} b", mode="eval").body
    assert isinstance(tree, ast.BinOp | ast.Compare)
    return type(tree.op if isinstance(tree, ast.BinOp) else tree.ops[0])


_OPERATORS = {_operator(row.infix): op for op, row in OPERATIONS.items() if row.infix and op not in ("neg", "not")}


def build(expression: Expression, scope: Mapping[str, Node], spans: dict[Node, Span] | None = None) -> Node:
    """Return the node of an expression; `scope` holds the nodes of the names it may read.

    The spans of the nodes that it makes go into `spans`.

    Errors: `InputError` at its position, for what is not in the language, unknown names, and shapes that do not fit.

    >>> from gradcli.errors import Source
    >>> from gradcli.graph.node import leaf
    >>> from gradcli.lang.expressions import read_expression
    >>> build(read_expression(Source("3*x^2")), {"x": leaf()})
    mul(const, pow), shape ()
    """
    return Walk(expression, scope, {} if spans is None else spans).run()


class Walk:
    """One walk over one expression."""

    def __init__(self, expression: Expression, scope: Mapping[str, Node], spans: dict[Node, Span]) -> None:
        self.expression = expression
        self.scope = scope
        self.spans = spans

    def run(self) -> Node:
        """Return the expression's node, by a stack of parts to visit and a stack of finished nodes."""
        done: list[Node] = []
        work: list[tuple[ast.expr, Callable[[list[Node]], Node] | None, int]] = [(self.expression.tree, None, 0)]
        while work:
            tree, finish, count = work.pop()
            try:
                if finish is not None:
                    first = len(done) - count
                    node = finish(done[first:])
                    del done[first:]
                elif isinstance(tree, ast.Name):
                    node = self.variable(tree)
                elif isinstance(tree, ast.Constant):
                    node = const(_constant(tree))
                else:
                    children, finish = self.call(tree) if isinstance(tree, ast.Call) else self.visit(tree)
                    work.append((tree, finish, len(children)))
                    work += [(child, None, 0) for child in reversed(children)]
                    continue
            except InputError as error:
                raise error.at(self.origin(error.about) or self.expression.span(tree)) from None
            if node not in self.spans and not node.is_leaf:
                self.spans[node] = self.expression.span(tree)
            done.append(node)
        return done.pop()

    def origin(self, node: Node | None) -> Span | None:
        """Return the span that a node was built from; of a leaf, the first that reads it."""
        if node is None:
            return None
        read = (name for name in self.expression.names if self.scope.get(name.id) is node)
        return self.spans.get(node) or next(map(self.expression.span, read), None)

    def visit(self, tree: ast.expr) -> tuple[Sequence[ast.expr], Callable[[list[Node]], Node]]:
        """Return the parts of an expression, and the function that builds its node from theirs."""
        match tree:
            case ast.BinOp(left, operator, right):
                op = self.operator(operator)
                return (left, right), lambda args: _operate(op, *args)
            case ast.UnaryOp(ast.USub(), operand):
                return (operand,), lambda args: _operate("neg", *args)
            case ast.UnaryOp(ast.UAdd(), operand):
                return (operand,), lambda args: _numeric(args[0])
            case ast.UnaryOp(ast.Invert() | ast.Not(), operand):
                return (operand,), lambda args: compare("not", _true_or_false(args[0]))
            case ast.BoolOp(operator, values):
                op = "and" if isinstance(operator, ast.And) else "or"
                return values, lambda args: _chain(op, [_true_or_false(a) for a in args])
            case ast.Compare(left, operators, comparators):
                ops = [_comparison(o) for o in operators]
                return (left, *comparators), lambda args: _compare(ops, args)
            case ast.List(elements):
                if not elements:
                    raise InputError("an empty list has no shape")
                # Numbers become no nodes: thousands of them are one constant.
                numbers = [_number(e) for e in elements]
                others = [e for e, number in zip(elements, numbers, strict=True) if number is None]
                return others, lambda args: _list(numbers, args)
            case ast.Subscript(value, key):
                return self.subscript(value, key)
            case ast.Attribute(value, "T" | "mT" as attribute):
                transpose = construct.swap if attribute == "mT" else FUNCTIONS["transpose"]
                return (value,), lambda args: transpose(_numeric(args[0]))
            case ast.Attribute():
                raise unknown_attribute(tree, module_of(tree))
            case ast.Tuple() if pointed := decimals(self.expression.span(tree).text):
                span = self.expression.span(tree)
                raise InputError(
                    "a comma in a number is not supported", None, f"write a decimal point: `{pointed}`",
                    fix=Fix(span, pointed),
                )  # fmt: skip
        raise unsupported(tree)

    def variable(self, tree: ast.Name) -> Node:
        """Return the node of a name."""
        name = tree.id
        if name in self.scope:
            return self.scope[name]
        if name in CONSTANTS:
            return const(CONSTANTS[name])
        if name in FUNCTIONS:
            raise InputError(f"`{name}` is a function", hint=f"call it: `{name}(…)`")
        raise InputError(
            f"unknown name `{name}`", hint=nearest(name, self.scope, "names here") or "a value is a number"
        )

    def operator(self, operator: ast.operator) -> str:
        """Return the operation of an operator."""
        op = _OPERATORS.get(type(operator))
        if op is None:
            hint = "write `floor(a/b)`" if isinstance(operator, ast.FloorDiv) else LANGUAGE
            raise InputError("this operator is not part of the language", hint=hint)
        return op

    def subscript(self, value: ast.expr, key: ast.expr) -> tuple[Sequence[ast.expr], Callable[[list[Node]], Node]]:
        """Return the parts of `value[key]`, and the function that builds its node from theirs."""
        if isinstance(value, ast.Name) and (whole := whole_key(key)) is not None:
            for n in range(len(whole), 0, -1):  # s[0,1] is an element of s[0], where that is assigned
                node = self.scope.get(element_name(value.id, whole[:n]))
                if node is not None:
                    rest = ast.Tuple([ast.Constant(k) for k in whole[n:]])
                    return (), partial(_part, node, rest, value)
        return (value,), lambda args: _element(args[0], index_of(key, _numeric(args[0]), value))

    def call(self, tree: ast.Call) -> tuple[Sequence[ast.expr], Callable[[list[Node]], Node]]:
        """Bind the arguments of a call to the function's parameters: expressions to nodes, settings to values."""
        function, name, operands = self.callee(tree)
        if not tree.keywords and len(operands) == takes_nodes(function):
            return operands, lambda args: function(*map(_numeric, args))
        signature = signature_of(function)
        try:
            bound = arguments(function, operands, tree.keywords)
        except TypeError as error:
            raise self.misfit(tree, complaint(name, str(error)), usage(name, signature)) from None
        parts: list[ast.expr] = []
        slots = [(p, plan(str(signature.parameters[p].annotation), v, parts)) for p, v in bound.items()]

        def finish(args: list[Node]) -> Node:
            rest = iter(args)
            ready = {p: take(slot, rest) for p, slot in slots}
            for p, value in ready.items():
                _check_argument(p, value)
            values = inspect.BoundArguments(signature, ready)
            if name in ("max", "min") and len(args) == len(tree.args) == 2 and type(args[1].value) is int:
                raise two_meanings(name, self.expression.span(tree.args[0]).text, args[1].value)
            try:
                return function(*values.args, **values.kwargs)
            except TypeError:
                raise InputError(f"`{name}` does not take these settings", hint=usage(name, signature)) from None

        return parts, finish

    def misfit(self, tree: ast.Call, message: str, hint: str) -> InputError:
        """Return the error of arguments that do not fit: a decimal comma makes two of one."""
        span = self.expression.span(tree)
        if (pointed := decimals(span.text)) is None:
            return InputError(message, hint=hint)
        return InputError(message, hint=f"write a decimal point: `{pointed}`; {hint}", fix=Fix(span, pointed))

    def callee(self, tree: ast.Call) -> tuple[Builder, str, list[ast.expr]]:
        """Return the function that is called, its name, and its arguments with the object of a method in front."""
        if isinstance(tree.func, ast.Name) and tree.func.id in FUNCTIONS:
            return FUNCTIONS[tree.func.id], tree.func.id, tree.args
        match tree.func:
            case ast.Name(name) if name in self.scope:
                advice = self.times(tree)
                hint, fix = f"`{name}` is a variable; {advice.hint}", advice.fix(self.expression.span(tree))
                raise InputError(f"unknown function `{name}`", self.expression.span(tree.func), hint, fix=fix)
            case ast.Name(name):
                raise unknown_function(name).at(self.expression.span(tree.func))
            case ast.Attribute(value, name):
                module = module_of(tree.func, tree)
                if name in METHODS and not module:
                    return METHODS[name], name, [value, *tree.args]
                raise unknown_attribute(tree.func, module).at(self.expression.span(tree.func))
            case ast.Call():
                self.callee(tree.func)  # of nn.ReLU()(x), the ReLU is the mistake
        advice = self.times(tree)
        raise InputError("only functions can be called", hint=advice.hint, fix=advice.fix(self.expression.span(tree)))

    def times(self, tree: ast.Call) -> Advice:
        """Return the advice to write what looks like a call as a product."""
        whole, function = self.expression.span(tree), self.expression.span(tree.func)
        return product(whole.text, function.end - whole.start)


# Operators


def _part(node: Node, rest: ast.Tuple, value: ast.Name, _: list[Node]) -> Node:
    """Return the element of an assigned element at the rest of an index, or all of it."""
    return _element(node, index_of(rest, _numeric(node), value)) if rest.elts else node


def _operate(op: str, *args: Node) -> Node:
    """Return an arithmetic operation as the user wrote it; one of numbers alone is computed exactly."""
    if op in ("and", "or"):
        return compare(op, *map(_true_or_false, args))
    if op == "mul":  # a condition is a mask
        args = tuple(elementwise("where", a, const(1), const(0)) if a.dtype == "bool" else a for a in args)
    args = tuple(map(_numeric, args))
    if op == "matmul":
        return construct.matmul(*args)
    values = [a.value for a in args]
    if op != "mod" and all(isinstance(v, Exact) for v in values):
        exact = fold(op, values)
        if exact is not None:
            _check_finite(exact)
            return const(exact, broadcast_shapes([a.shape for a in args]))
        _check_constant(op, *values)
    return elementwise(op, *args)


def _check_constant(op: str, *values: Any) -> None:
    """Check that float64 can hold a number before anything computes it: 9**9**9 has 370 million digits."""
    if values[-1] == 0 if op == "div" else op == "pow" and values[0] == 0:
        raise InputError("division by zero")
    a, b = float(values[0]), float(values[-1])
    try:
        result = {"add": a + b, "sub": a - b, "mul": a * b}.get(op, 0.0)
        if op == "pow" and a > 0:
            result = a**b
    except OverflowError:
        result = math.inf
    _check_finite(result)


def _check_finite(number: Constant) -> None:
    try:
        finite = not math.isinf(float(number))
    except OverflowError:
        finite = False
    if not finite:
        raise InputError("this number is too large", hint="float64 ends near 1.8e308")


def is_condition(node: Node) -> bool:
    """Return whether a node is true or false: a comparison, or the last condition of a Piecewise."""
    return node.dtype == "bool" or (node.is_constant and node.value is True)


def _numeric(node: Node) -> Node:
    """Return a node that is a number, or an array of them."""
    if is_condition(node):
        raise InputError(
            "a condition is not a number", None, "comparisons belong in `where(x > 0, a, b)` or `Piecewise`", node
        )
    return node


def _true_or_false(node: Node) -> Node:
    """Return a node that is a condition."""
    if node.dtype != "bool":
        raise InputError("a condition is needed here", None, "for example `x > 0`", node)
    return node


def _chain(op: str, args: Sequence[Node]) -> Node:
    return reduce(partial(compare, op), args)


def _comparison(operator: ast.cmpop) -> str:
    op = _OPERATORS.get(type(operator))
    if op is None:
        raise InputError("this comparison is not part of the language", hint="compare with < <= > >= == !=")
    return op


def _compare(ops: Sequence[str], args: Sequence[Node]) -> Node:
    args = [_numeric(a) for a in args]
    return _chain("and", [compare(op, a, b) for op, a, b in zip(ops, args, args[1:], strict=False)])


# Numbers and elements


def _constant(tree: ast.Constant) -> Constant:
    value = tree.value
    if value is True:
        return True  # the last condition of a Piecewise
    if type(value) is int:
        if value.bit_length() > MAX_BITS:
            raise InputError("this number is too large", hint="float64 ends near 1.8e308")
        return value
    if type(value) is float:
        if math.isinf(value):
            raise InputError("this number is too large", hint="float64 ends near 1.8e308; infinity is `inf`")
        return Decimal(repr(value))
    kind = {str: "text", bytes: "text", complex: "a complex number"}.get(type(value), f"`{value!r}`")
    raise InputError(f"{kind} is not a number", hint="the language has real numbers and arrays of them")


def _number(tree: ast.expr) -> Constant | None:
    """Return the value of a number as it is typed, with a minus or without; None for anything that is more."""
    minus = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub)
    plain = tree.operand if minus and isinstance(tree, ast.UnaryOp) else tree
    if not isinstance(plain, ast.Constant) or type(plain.value) not in (int, float):
        return None
    value = _constant(plain)
    return fold("neg", [value]) if minus else value


def _list(elements: Sequence[Constant | None], others: Sequence[Node]) -> Node:
    """Return the array of these elements; the `others` fill the indices that have no number."""
    if not others:
        return const(tuple(e for e in elements if e is not None), check_size((len(elements),)))
    rest = iter(others)
    return construct.stack([_numeric(next(rest)) if e is None else const(e) for e in elements])


def _element(x: Node, key: Sequence[Key]) -> Node:
    node = pick(x, key)
    if not node.size:
        raise InputError("this slice is empty", hint=f"the array has shape {x.shape}, counted from 0")
    return node


# Calls


def _check_argument(parameter: str, value: Any) -> None:
    """Check that an argument is a condition where the function takes one, and a number elsewhere."""
    if parameter == "condition":
        _true_or_false(value)
    elif parameter == "pairs":
        for result, *conditions in filter(None, value):
            _numeric(result)
            for condition in conditions:
                if condition.value is not True:
                    _true_or_false(condition)
    elif parameter != "attn_mask":  # which holds conditions, or numbers that are added
        for a in value if isinstance(value, list | tuple) else (value,):
            if isinstance(a, Node):
                _numeric(a)
