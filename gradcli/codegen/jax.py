"""JAX: NumPy's functions under another name, arrays that are never written to, and a function with its own gradient."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gradcli.codegen.array_rules import (
    einsum,
    index_text,
    inserted,
    mask_of,
    numbers_text,
    of_matrices,
    recurrence,
    shared,
    untouched,
)
from gradcli.codegen.arrays import ArrayLanguage, ArrayWriter, Rule, Text
from gradcli.codegen.program import Program
from gradcli.codegen.python import RESERVED as RESERVED
from gradcli.codegen.python import assembled, function_lines, self_test
from gradcli.graph.node import Node


def _scatter(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    shape, keys = node.settings
    name = w.named(f"jnp.zeros({shape})", w.own_name(node))
    for key, part, new in zip(keys, args, untouched(shape, keys), strict=True):
        w.line(f"{name} = {name}.at[{index_text(key, shape)}].{'set' if new else 'add'}({w.short(part)})")
    return name


def _scatter_add(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, indices, _ = node.settings
    zeros = w.named(f"jnp.zeros({node.shape})")
    at = w.short(f"jnp.array({w.indices(indices.numbers)})")
    return f"{zeros}.at[{':, ' * axis}{at}].add({w.short(args[0])})"


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    indices = w.named(f"jnp.arange({min(node.shape[:2])})")
    zeros = w.named(f"jnp.zeros({node.shape})")
    return f"{zeros}.at[{indices}, {indices}].set({w.short(args[0])})"


def _stack(op: str, w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis = f", axis={node.settings[0]}" if node.settings[0] else ""
    return f"jnp.{op}([{', '.join(args)}]{axis})"


def _put_along(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    (axis,) = node.settings
    order = w.named(f"jnp.argsort({args[1]}, axis={axis})")  # the inverse of an order
    return f"jnp.take_along_axis({args[0]}, {order}, axis={axis})"


def _polygamma(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    order = node.args[0].value
    whole = str(order) if isinstance(order, int) else f"{args[0].atom}.astype(int)"
    return f"jax.scipy.special.polygamma({whole}, {args[1]})"


RULES: dict[str, Rule | str] = {
    **shared("jax", "jnp"),
    "polygamma": _polygamma,
    "recurrence": recurrence("jnp.moveaxis({}, {}, 0)", "jnp.stack({}, axis={})"),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "take": lambda w, node, args: (
        f"jnp.take({args[0]}, {w.short(f'jnp.array({w.indices(node.settings[1].numbers)})')}, axis={node.settings[0]})"
    ),
    "from_diagonal": _from_diagonal,
    "put_along": _put_along,
    "argsort": lambda w, node, args: (
        f"jnp.argsort({args[0]}, axis={node.settings[0]}{', descending=True' * node.settings[1]})"
    ),
    "argmax_mask": mask_of("jnp", "jnp.argmax({x}, axis={axis}, keepdims=True)"),
    "argmin_mask": mask_of("jnp", "jnp.argmin({x}, axis={axis}, keepdims=True)"),
    "argmedian_mask": mask_of("jnp", "jnp.take(jnp.argsort({x}, axis={axis}), jnp.array([{middle}]), axis={axis})"),
    "matmul": "jnp.matmul({}, {})",
    "einsum": einsum("jnp"),
    **of_matrices("jnp", "jax"),
    "eigvalsh": "jnp.linalg.eigvalsh({})",
    "eigvecsh": "jnp.linalg.eigh({})[1]",
    "svd_u": "jnp.linalg.svd({}, full_matrices={full_matrices})[0]",
    "svd_vh": "jnp.linalg.svd({}, full_matrices={full_matrices})[2]",
    "reshape": lambda w, node, args: (
        f"jnp.reshape({args[0]}, {node.shape})"
        if (key := inserted(node.args[0].shape, node.shape)) is None
        else f"{args[0].atom}[{key}]"
    ),
    "broadcast": "jnp.broadcast_to({}, {shape})",
    "triu": "jnp.triu({}, {diagonal})",
    "tril": "jnp.tril({}, {diagonal})",
    "concatenate": partial(_stack, "concatenate"),
    "stack": partial(_stack, "stack"),
}


LANGUAGE = ArrayLanguage(
    "jax",
    RULES,
    lambda w, node, value: f"jnp.array({numbers_text(node)})" if value is None else f"jnp.full({node.shape}, {value})",
    lambda w, node, text: f"jnp.array({text})" if node.is_constant and not node.shape else text,
)
NUMBERS = False  # whether its functions have numbers and flat arrays alone


def source(program: Program) -> str:
    """Return the file."""
    functions = [function_lines(f, LANGUAGE) for f in program.functions]
    tested = self_test(program, ["jnp.array"], "jnp", ['jax.config.update("jax_enable_x64", True)'])
    imports = ["import jax", "import jax.numpy as jnp"]
    about = ['For float64, call jax.config.update("jax_enable_x64", True) first.']
    return assembled(program, "JAX", imports, functions, [*_custom(program), *tested], about)


def _custom(program: Program) -> list[str]:
    """Return a function that differentiates by the generated vjp."""
    value, vjp = program.of("value"), program.of("vjp")
    if value is None or vjp is None or len(vjp.results) != len(value.arguments):
        return []
    name, several = program.name, len(value.results) > 1
    grads = f"{name}_vjp(*saved, {'*' * several}v)"
    grads = grads if len(vjp.results) > 1 else f"({grads},)"
    return [
        "", "",
        f"# {name} with its own derivative, for jax.grad and jax.jit.",
        f"{name}_op = jax.custom_vjp({name})",
        f"{name}_op.defvjp(",
        f"    lambda *inputs: ({name}(*inputs), inputs),",
        f"    lambda saved, v: {grads},",
        ")",
    ]  # fmt: skip
