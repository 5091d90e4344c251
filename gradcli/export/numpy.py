"""NumPy: what each operation is there, and the file of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import number
from gradcli.export.arrays import Argument, ArrayLanguage, ArrayWriter, Rule, number_text
from gradcli.export.program import Program
from gradcli.export.python import RESERVED as RESERVED
from gradcli.export.python import assembled, function_lines, self_test
from gradcli.graph.node import Node

CONDITIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "not": "~"}


def index_text(key: Sequence[Any]) -> str:
    """Return an index as Python writes it.

    >>> index_text((0, range(1, 3), None, range(2, -1, -1)))
    '0, 1:3, None, 2::-1'
    """
    parts = []
    for k in key:
        if isinstance(k, range):
            stop = str(k.stop) if k.stop >= 0 else ""
            parts.append(f"{k.start}:{stop}" + (f":{k.step}" if k.step != 1 else ""))
        else:
            parts.append(str(k))
    return ", ".join(parts)


def _along(op: str, axis: int) -> Rule:
    return lambda w, node, args: f"np.{op}({args[0]}, axis={node.settings[axis]})"


def _scatter(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    shape, keys = node.settings
    name = w.named(f"np.zeros({shape})").text
    for key, part in zip(keys, args, strict=True):
        w.lines.append(f"{name}[{index_text(key)}] += {part}")
    return name


def _put(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    axis, places, _ = node.settings
    name = w.named(f"np.zeros({node.shape})").text
    w.lines.append(f"np.add.at({name}, ({'slice(None), ' * axis}{_places(places)}), {args[0]})")
    return name


def _places(places: Any) -> str:
    return f"np.array({places.numbers.tolist()})"


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    name = w.named(f"np.zeros({node.shape})").text
    count = min(node.shape[:2])
    w.lines.append(f"{name}[range({count}), range({count})] = {args[0]}")
    return name


def _scan(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    """Write a recurrence as a loop along the axis, which is moved to the front."""
    (axis,) = node.settings
    a, b = (w.named(f"np.moveaxis({x}, {axis}, 0)").text for x in args)
    name = w.named(f"np.array({b})").text
    w.lines.append(f"for k in range(1, len({name})):")
    w.lines.append(f"    {name}[k] += {a}[k - 1]*{name}[k - 1]")
    return f"np.moveaxis({name}, 0, {axis})"


def _mask(op: str) -> Rule:
    def rule(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
        (axis,) = node.settings
        x = args[0] if args[0].isidentifier() else w.named(args[0]).text
        rest = (1,) * (len(node.shape) - axis - 1)
        places = f"np.arange({node.shape[axis]}).reshape({(node.shape[axis], *rest)})"
        return f"({places} == np.expand_dims({op.format(x=x, axis=axis)}, {axis}))"

    return rule


_ORDER = "np.argsort({x}, axis={axis}, kind='stable')"


def _sorted(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    axis, descending = node.settings
    text = f"np.sort({args[0]}, axis={axis})"
    return f"np.flip({text}, {axis})" if descending else text


def _argsort(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    axis, descending = node.settings
    if not descending:
        return _ORDER.format(x=args[0], axis=axis)
    # Of equal elements the first stays the first.
    flipped = _ORDER.format(x=f"np.flip({args[0]}, {axis})", axis=axis)
    return f"{node.shape[axis] - 1} - np.flip({flipped}, {axis})"


def _middle(node: Node) -> int:
    (axis,) = node.settings[0] if isinstance(node.settings[0], tuple) else (node.settings[0],)
    return (node.args[0].shape[axis] - 1) // 2


def _median(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    (axis,) = node.settings[0]
    return f"np.take(np.sort({args[0]}, axis={axis}), {_middle(node)}, axis={axis})"


def _median_mask(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    (axis,) = node.settings
    order = _ORDER.format(x=args[0], axis=axis)
    return _mask(f"np.take({order}, {(node.shape[axis] - 1) // 2}, axis={axis})".replace("{", "{{").replace("}", "}}"))(
        w, node, args
    )


def _put_along(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    (axis,) = node.settings
    name = w.named(f"np.zeros({node.shape})").text
    w.lines.append(f"np.put_along_axis({name}, {args[1].atom}.astype(int), {args[0]}, axis={axis})")
    return name


RULES: dict[str, Rule | str] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "pow", "mod", "floor_divide"), "infix"),
    "neg": "-{}",
    **dict.fromkeys(CONDITIONS, "comparison"),
    "identity": "{}",
    **{op: f"np.{op}({{}})" for op in ("sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos")},
    **{op: f"np.{op}({{}})" for op in ("tan", "sinh", "cosh", "tanh", "floor", "ceil", "abs")},
    **{op: f"np.arc{op[1:]}({{}})" for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "atan2": "np.arctan2({}, {})",
    "hypot": "np.hypot({}, {})",
    "erf": "_special('erf')({})",
    "erfc": "_special('erfc')({})",
    "gamma": "_special('gamma')({})",
    "lgamma": "_special('lgamma')({})",
    "digamma": "refused",
    "polygamma": "refused",
    "softplus": "np.logaddexp(0., {})",
    "where": "np.where({}, {}, {})",
    "maximum": "np.maximum({}, {})",
    "minimum": "np.minimum({}, {})",
    "clamp": "np.clip({}, {}, {})",
    "heaviside": "np.heaviside({}, {})",
    "sign": "np.nan_to_num(np.sign({}))",
    "round": "np.rint({})",
    "sum": _along("sum", 0),
    "prod": _along("prod", 0),
    "max": _along("max", 0),
    "min": _along("min", 0),
    "cumsum": _along("cumsum", 0),
    "cumprod": _along("cumprod", 0),
    "recurrence": _scan,
    "prod_others": "refused",  # written out
    "argmax": _along("argmax", 0),
    "argmin": _along("argmin", 0),
    "argmax_mask": _mask("np.argmax({x}, axis={axis})"),
    "argmin_mask": _mask("np.argmin({x}, axis={axis})"),
    "argmedian_mask": _median_mask,
    "median": _median,
    "sort": _sorted,
    "argsort": _argsort,
    "take_along": lambda w, node, args: (
        f"np.take_along_axis({args[0]}, {args[1].atom}.astype(int), axis={node.settings[0]})"
    ),
    "put_along": _put_along,
    "matmul": lambda w, node, args: f"np.matmul({args[0]}, {args[1]})",
    "einsum": lambda w, node, args: f"np.einsum({node.settings[0]!r}, {args[0]}, {args[1]})",
    "det": "np.linalg.det({})",
    "inv": "np.linalg.inv({})",
    "solve": "np.linalg.solve({}, {})",
    "cofactors": "refused",
    "transpose": lambda w, node, args: f"np.transpose({args[0]}, {node.settings[0]})",
    "reshape": lambda w, node, args: f"np.reshape({args[0]}, {node.shape})",
    "broadcast": lambda w, node, args: f"np.broadcast_to({args[0]}, {node.shape})",
    "index": lambda w, node, args: f"np.asarray({args[0]})[{index_text(node.settings[0])}]",
    "cast": "{}",
    "diagonal": lambda w, node, args: f"np.moveaxis(np.diagonal({args[0]}), -1, 0)",
    "from_diagonal": _from_diagonal,
    "triu": lambda w, node, args: f"np.triu({args[0]}, {node.settings[0]})",
    "tril": lambda w, node, args: f"np.tril({args[0]}, {node.settings[0]})",
    "take": lambda w, node, args: f"np.take({args[0]}, {_places(node.settings[1])}, axis={node.settings[0]})",
    "put": _put,
    "scatter": _scatter,
    "concatenate": lambda w, node, args: f"np.concatenate([{', '.join(args)}], axis={node.settings[0]})",
    "stack": lambda w, node, args: f"np.stack([{', '.join(args)}], axis={node.settings[0]})",
}


def _array(node: Node) -> str:
    if node.value is not None:
        return f"np.full({node.shape}, {number_text(number(node.value), 'numpy')})"
    numbers = np.array([number(v) for v in node.values]).reshape(node.shape)
    return f"np.array({numbers.tolist()})".replace("inf", "np.inf").replace("nan", "np.nan")


LANGUAGE = ArrayLanguage("numpy", RULES, _array, CONDITIONS, "np.float64({})".format)
_SPECIAL = """
def _special(name):
    return np.vectorize(getattr(math, name), otypes=[float])

"""


def source(program: Program) -> str:
    """Return the file."""
    functions = [function_lines(f, LANGUAGE) for f in program.functions]
    special = any("_special(" in line for lines in functions for line in lines)
    imports = ["import math", "", "import numpy as np"] if special else ["import numpy as np"]
    tested = self_test(program, "np.array({}, dtype=float)", "np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)")
    return assembled(
        program, "NumPy", [*imports, *(_SPECIAL.rstrip().split("\n") if special else [])], functions, tested
    )
