"""Mistakes, made from right claims: each yields its kind and the right side as it would be."""

import ast
import copy
import re


def mutations(right, inner, shapes, names):
    """Yield the kinds and texts of the mistakes that can be made in a right side, of a result of some shape."""
    tree = ast.parse(right, mode="eval").body
    shape, inputs = shapes
    yield "factor", f"2*({right})"
    yield "factor", f"({right})/3"
    yield "sign", f"-({right})"
    if inner:
        yield "inner", inner
    yield from terms(tree, inputs, shape)
    yield from exponents(tree)
    yield from exchanged(right, inputs, names)
    if len(shape) == 2 and shape[0] == shape[1]:
        yield "transposed", f"({right}).T"
    if len(shape) == 1:
        yield "indices", f"({right})[{[1, 0, *range(2, shape[0])]}]"
        yield "batch", f"({right})*{shape[0]}"
        yield "batch", f"({right})/{shape[0]}"
    if len(shape) == 1 and shape[0] > 2:
        yield "entry", f"({right}) + {[0, 1, *[0] * (shape[0] - 2)]}"
    if "axis=0" in right:
        yield "axis", right.replace("axis=0", "axis=1")


def terms(tree, inputs, shape):
    """Leave out a term of a sum, turn its sign, or add one."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add | ast.Sub):
        left, right = ast.unparse(tree.left), ast.unparse(tree.right)
        minus = isinstance(tree.op, ast.Sub)
        yield "missing", left
        yield "missing", f"-({right})" if minus else right
        yield "term's sign", f"{left} {'+' if minus else '-'} ({right})"
    own = next(name for name, s in inputs.items() if s in ((), shape))
    yield "extra", f"{ast.unparse(tree)} + 7*{own}**5"


def exponents(tree):
    """Raise or lower an exponent by one."""
    powers = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)]
    for k, power in enumerate(powers):
        if not isinstance(power.right, ast.Constant):
            continue
        for step in (1, -1):
            other = copy.deepcopy(tree)
            own = [n for n in ast.walk(other) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)][k]
            own.right = ast.Constant(own.right.value + step)
            yield "exponent", ast.unparse(other)


def exchanged(right, inputs, names):
    """Exchange two inputs of one shape."""
    used = [name for name in inputs if re.search(rf"\b{name}\b", right) and name in names]
    for a in used:
        for b in used:
            if a < b and inputs[a] == inputs[b]:
                swap = {a: b, b: a}
                yield "exchanged", re.sub(rf"\b({a}|{b})\b", lambda m, swap=swap: swap[m[1]], right)


SAID = {
    "factor": ("times the right value", "times that"),
    "sign": ("the sign", "wrong sign"),
    "inner": ("inner function",),
    "missing": ("missing",),
    "term's sign": ("the sign of the term",),
    "extra": ("extra",),
    "exponent": ("exponent",),
    "exchanged": ("inputs exchanged",),
    "transposed": ("transposed",),
    "indices": ("indices exchanged",),
    "batch": ("1/n",),
    "entry": ("right except for",),
    "axis": ("wrong axis",),
}
