"""PyTorch: what each operation is there, and an `autograd.Function` whose backward is the generated one."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.codegen.array_rules import einsum, index_text, mask_of, numbers_text, of_matrices, recurrence, scattered
from gradcli.codegen.arrays import CONDITIONS, ArrayLanguage, ArrayWriter, Rule, Text, unsupported
from gradcli.codegen.helpers import calls_in
from gradcli.codegen.lines import listed
from gradcli.codegen.program import Program
from gradcli.codegen.python import RESERVED as RESERVED
from gradcli.codegen.python import assembled, function_lines, self_test
from gradcli.graph.index_arrays import IndexArray
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape


def _prod(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    text = str(args[0])
    for axis in sorted(node.settings[0], reverse=True):
        text = f"torch.prod({text}, dim={axis})"
    return text


def _index(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write an index; PyTorch has no negative steps, so an axis is flipped before."""
    (key,) = node.settings
    sizes = node.args[0].shape
    plain: list[int | range | None] = []
    moved: list[int] = []
    axis = 0
    for k in key:
        if isinstance(k, range) and k.step < 0:
            moved.append(axis)
            last = sizes[axis] - 1
            k = range(last - k.start, last - k.stop, -k.step)
        plain.append(k)
        axis += k is not None
    x = f"torch.flip({args[0]}, {tuple(moved)})" if moved else args[0].atom
    return f"{x}[{index_text(plain, sizes)}]"


def _scatter(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    shape, keys = node.settings
    name = w.named(_zeros(shape), w.own_name(node))
    if not any(isinstance(k, range) and k.step < 0 for key in keys for k in key):
        return scattered(w, node, args, name)
    shape_of = {part: arg.shape for part, arg in zip(args, node.args, strict=True)}
    for key, part in zip(keys, args, strict=True):
        indices = ", ".join(f"torch.tensor({list(k)})" if isinstance(k, range) else f"torch.tensor([{k}])" for k in key)
        sizes = tuple(len(k) if isinstance(k, range) else 1 for k in key)
        at = w.named(f'torch.meshgrid({indices}, indexing="ij")')
        w.line(f"{name}[{at}] += {part if sizes == shape_of[part] else f'torch.reshape({part}, {sizes})'}")
    return name


def _zeros(shape: Shape) -> str:
    return f"torch.zeros({shape}, dtype=torch.float64)"


def _scatter_add(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, indices, _ = node.settings
    rank = len(indices.shape)
    source = node.args[0].shape
    flat = (*source[:axis], indices.numbers.size, *source[axis + rank :])
    zeros = w.named(_zeros(node.shape))
    result = str(args[0]) if flat == source else w.short(f"torch.reshape({args[0]}, {flat})")
    return f"{zeros}.index_add({axis}, {_indices(w, indices)}, {result})"


def _take(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axis, indices = node.settings
    taken = f"torch.index_select({args[0]}, {axis}, {_indices(w, indices)})"
    return taken if len(indices.shape) == 1 else f"torch.reshape({w.short(taken)}, {node.shape})"


def _indices(w: ArrayWriter, indices: IndexArray) -> str:
    return w.short(f"torch.tensor({w.indices(indices.numbers.reshape(-1))})")


def _from_diagonal(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    name = w.named(_zeros(node.shape), w.own_name(node))
    indices = w.named(f"torch.arange({min(node.shape[:2])})")
    w.line(f"{name}[{indices}, {indices}] = {args[0]}")
    return name


def _gamma(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    """Write the gamma function: its size, and its sign, which changes at every integer below 0."""
    x = w.named(args[0])
    negative = w.named(f"({x} < 0.0) & (torch.floor({x}) % 2.0 == 1.0)")
    size = w.named(f"torch.exp(torch.lgamma({x}))")
    return f"torch.where({negative}, -{size}, {size})"


def _polygamma(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    order = node.args[0].value
    if not isinstance(order, int):
        raise unsupported("polygamma", "torch")
    return f"torch.polygamma({order}, {args[1]})"


def _median(w: ArrayWriter, node: Node, args: Sequence[Text]) -> str:
    axes, ties = node.settings
    return f"torch.median({args[0]})" if ties == "even" else f"torch.median({args[0]}, dim={axes[0]})[0]"


_TORCH = "torch.{}".format
RULES: dict[str, Rule | str] = {
    **calls_in("torch", _TORCH),
    **calls_in("torch", _TORCH, "reduction", arguments="{}, dim={axes}"),
    **calls_in("torch", _TORCH, "scan", arguments="{}, dim={axis}"),
    **of_matrices("torch", "torch"),
    **dict.fromkeys(("add", "sub", "mul", "div", "pow"), "infix"),
    **dict.fromkeys(CONDITIONS, "comparison"),
    "neg": "-{}",
    "identity": "{}",
    "gamma": _gamma,
    "polygamma": _polygamma,
    "softplus": "torch.logaddexp(torch.zeros_like({0}), {0})",
    "sign": "torch.nan_to_num(torch.sign({}))",
    "prod": _prod,
    "median": _median,
    "recurrence": recurrence("torch.unbind({}, dim={})", "torch.stack({}, dim={})"),
    "product_of_others": "unsupported",  # written out
    "argmax": "torch.argmax({}, dim={axis}).double()",
    "argmin": "torch.argmin({}, dim={axis}).double()",
    "argmax_mask": mask_of("torch", "torch.argmax({x}, dim={axis}, keepdim=True)"),
    "argmin_mask": mask_of("torch", "torch.argmin({x}, dim={axis}, keepdim=True)"),
    "argmedian_mask": mask_of("torch", "torch.median({x}, dim={axis}, keepdim=True)[1]"),
    "sort": "torch.sort({}, dim={axis}, descending={descending}, stable=True)[0]",
    "argsort": "torch.sort({}, dim={axis}, descending={descending}, stable=True)[1]",
    "take_along": "torch.take_along_dim({}, {}, dim={axis})",
    "put_along": lambda w, node, args: f"torch.zeros_like({args[0]}).scatter({node.settings[0]}, {args[1]}, {args[0]})",
    "matmul": "torch.matmul({}, {})",
    "einsum": einsum("torch"),
    "cofactors": "unsupported",
    "eigvalsh": lambda w, node, args: f"torch.linalg.eigvalsh(({args[0]} + {args[0].atom}.mT)/2)",
    "eigvecsh": lambda w, node, args: f"torch.linalg.eigh(({args[0]} + {args[0].atom}.mT)/2)[1]",
    "svd_u": "torch.linalg.svd({}, full_matrices={full_matrices})[0]",
    "svd_vh": "torch.linalg.svd({}, full_matrices={full_matrices})[2]",
    "transpose": "torch.permute({}, {order})",
    "reshape": "torch.reshape({}, {shape})",
    "broadcast": "torch.broadcast_to({}, {shape})",
    "index": _index,
    "cast": "{}",
    "diagonal": "torch.movedim(torch.diagonal({}), -1, 0)",
    "from_diagonal": _from_diagonal,
    "triu": "torch.triu({}, {diagonal})",
    "tril": "torch.tril({}, {diagonal})",
    "take": _take,
    "scatter_add": _scatter_add,
    "scatter": _scatter,
    "concatenate": lambda w, node, args: f"torch.cat([{', '.join(args)}], dim={node.settings[0]})",
    "stack": lambda w, node, args: f"torch.stack([{', '.join(args)}], dim={node.settings[0]})",
}


def _scalar(text: str) -> str:
    """Return numbers as a tensor: functions of PyTorch's take no others."""
    return f"torch.tensor({text}, dtype=torch.float64)"


LANGUAGE = ArrayLanguage(
    "torch",
    RULES,
    lambda w, node, value: (
        _scalar(numbers_text(node)) if value is None else f"torch.full({node.shape}, {value}, dtype=torch.float64)"
    ),
    lambda w, node, text: _scalar(text) if node in w.numbers else text,
    _scalar,
)
NUMBERS = False  # whether its functions have numbers and flat arrays alone


def source(program: Program) -> str:
    """Return the file."""
    functions = [function_lines(f, LANGUAGE) for f in program.functions]
    tested = self_test(program, ["torch.tensor", "dtype=torch.float64"], "torch")
    about = ["Arguments are tensors of float64 of the shapes below; a number is a tensor, too."]
    return assembled(program, "PyTorch", ["import torch"], functions, [*_function(program), *tested], about)


def _function(program: Program) -> list[str]:
    """Return an `autograd.Function` made of the generated functions."""
    value, vjp = program.of("value"), program.of("vjp")
    if value is None or vjp is None or len(vjp.results) != len(value.arguments):
        return []
    name = "".join(part[:1].upper() + part[1:] for part in program.name.split("_"))
    name = name if name != program.name else f"{name}Function"
    inputs, outputs = list(value.arguments), list(vjp.arguments)[len(value.arguments) :]
    return [
        "", "",
        f"class {name}(torch.autograd.Function):",
        f'    """{program.name} as an operation of autograd, to be called as {name}.apply."""',
        "",
        "    @staticmethod",
        *listed("    def forward(", ["ctx", *inputs], "):"),
        *listed("        ctx.save_for_backward(", inputs, ")"),
        *listed(f"        return {program.name}(", inputs, ")"),
        "",
        "    @staticmethod",
        *listed("    def backward(", ["ctx", *outputs], "):"),
        *listed(f"        return {program.name}_vjp(", ["*ctx.saved_tensors", *outputs], ")"),
    ]  # fmt: skip
