"""JAX: NumPy's functions under another name, arrays that are never written to, and a function with its own gradient."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.export import numpy
from gradcli.export.arrays import Argument, ArrayLanguage, ArrayWriter, Rule
from gradcli.export.numpy import index_text
from gradcli.export.program import Program
from gradcli.export.python import RESERVED as RESERVED
from gradcli.export.python import assembled, function_lines, self_test
from gradcli.graph.node import Node


def _renamed(rule: Rule | str) -> Rule | str:
    """Return NumPy's rule with JAX's NumPy in it."""
    if isinstance(rule, str):
        return rule.replace("np.", "jnp.")
    return lambda w, node, args: rule(w, node, args).replace("np.", "jnp.").replace("jjnp.", "jnp.")


def _scatter(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    shape, keys = node.settings
    text = f"jnp.zeros({shape})"
    for key, part in zip(keys, args, strict=True):
        text = w.named(f"{text}.at[{index_text(key)}].add({part})").text
    return text


def _put(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    axis, places, _ = node.settings
    return f"jnp.zeros({node.shape}).at[{':, ' * axis}jnp.array({places.numbers.tolist()})].add({args[0]})"


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    places = f"jnp.arange({min(node.shape[:2])})"
    return f"jnp.zeros({node.shape}).at[{places}, {places}].set({args[0]})"


def _recurrence(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    (axis,) = node.settings
    a, b = (w.named(f"list(jnp.moveaxis({x}, {axis}, 0))").text for x in args)
    w.lines.append(f"for k in range(1, len({b})):")
    w.lines.append(f"    {b}[k] = {b}[k] + {a}[k - 1]*{b}[k - 1]")
    return f"jnp.stack({b}, axis={axis})"


def _put_along(w: ArrayWriter, node: Node, args: Sequence[Argument]) -> str:
    (axis,) = node.settings
    order = f"jnp.argsort({args[1]}, axis={axis})"  # the inverse of an order
    return f"jnp.take_along_axis({args[0]}, {order}, axis={axis})"


RULES: dict[str, Rule | str] = {
    **{op: _renamed(rule) for op, rule in numpy.RULES.items()},
    "erf": "jax.scipy.special.erf({})",
    "erfc": "jax.scipy.special.erfc({})",
    "gamma": "jax.scipy.special.gamma({})",
    "lgamma": "jax.scipy.special.gammaln({})",
    "digamma": "jax.scipy.special.digamma({})",
    "recurrence": _recurrence,
    "scatter": _scatter,
    "put": _put,
    "from_diagonal": _from_diagonal,
    "put_along": _put_along,
}


def _array(node: Node) -> str:
    return numpy.LANGUAGE.array(node).replace("np.", "jnp.")


LANGUAGE = ArrayLanguage("jax", RULES, _array, numpy.CONDITIONS, "jnp.array({})".format)


def source(program: Program) -> str:
    """Return the file."""
    functions = [function_lines(f, LANGUAGE) for f in program.functions]
    close = "jnp.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)"
    tested = self_test(program, "jnp.array({}, dtype=float)", close)
    if tested:
        tested.insert(4, '    jax.config.update("jax_enable_x64", True)')
    return assembled(program, "JAX", ["import jax", "import jax.numpy as jnp"], functions, [*_custom(program), *tested])


def _custom(program: Program) -> list[str]:
    """Return a function that differentiates by the generated vjp."""
    value, vjp = program.of("value"), program.of("vjp")
    if value is None or vjp is None or len(vjp.results) != len(value.arguments):
        return []
    name, several = program.name, len(value.results) > 1
    grads = f"{name}_vjp(*saved, {'*' * several}v)"
    return [
        "", "",
        f"{name}_op = jax.custom_vjp({name})",
        f"{name}_op.defvjp(",
        f"    lambda *inputs: ({name}(*inputs), inputs),",
        f"    lambda saved, v: {grads if len(vjp.results) > 1 else f'({grads},)'},",
        ")",
    ]  # fmt: skip
