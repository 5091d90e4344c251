"""Second derivatives of a scalar as graphs: the gradient, whose Jacobian is the Hessian H, and the product H·u."""

from __future__ import annotations

from collections.abc import Iterable

from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.graph.jvp import jvp
from gradcli.graph.node import Node, const
from gradcli.graph.vjp import active_nodes, reverse


def scalar_output(graph: Graph) -> tuple[str, Node]:
    """Return the only output, with its name.

    Errors: `InputError` when there are several, or when it is not a scalar.
    """
    if len(graph.outputs) > 1:
        some = ", ".join(list(graph.outputs)[:4]) + ", …" * (len(graph.outputs) > 4)
        raise InputError(
            f"second derivatives need one scalar output, and there are {len(graph.outputs)} outputs: {some}",
            hint=f"choose one: --outputs {next(iter(graph.outputs))}",
        )
    name, y = next(iter(graph.outputs.items()))
    if y.size != 1:
        raise InputError(
            f"second derivatives need one scalar output, and `{name}` has shape {y.shape}",
            hint=f"make a scalar of it: L = sum({name}), or one of its elements",
            text=name,
        )
    return name, y


def gradient(graph: Graph, wrt: Iterable[str] | None = None) -> Graph:
    """Return the graph whose outputs are the gradients of the scalar output by the leaves `wrt`, under their names.

    Errors: `InputError` as for `scalar_output`.

    >>> from gradcli.graph.construct import reduce
    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> gradient(Graph.of({"x": x}, {"y": reduce("sum", x**2, (0,))})).outputs["x"].shape
    (2,)
    """
    _, y = scalar_output(graph)
    leaves = graph.leaves(wrt)
    adjoints = reverse(graph, [(y, const(1, y.shape))], active_nodes(graph, leaves.values()))[1]
    outputs = {name: adjoints.get(x) or const(0, x.shape) for name, x in leaves.items()}
    return Graph.of(graph.inputs, outputs, graph.nodes, graph.names, graph.spans)


def hvp(graph: Graph, wrt: Iterable[str] | None = None) -> Graph:
    """Return the graph of H·u, in one forward sweep over a reverse one, without H.

    Its inputs are the leaves of `graph`, then a tangent `x.u` for each leaf in `wrt` (all by default); its outputs are
    `x.hvp`, of each such leaf's shape.  Source: Pearlmutter, "Fast exact multiplication by the Hessian" (1994).

    Errors: `InputError` as for `scalar_output`.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> graph = hvp(Graph.of({"x": x}, {"y": x**3}))
    >>> list(graph.inputs), list(graph.outputs)
    (['x', 'x.u'], ['x.hvp'])
    """
    result = gradient(graph, wrt)
    pushed = jvp(result, result.outputs)
    outputs = {f"{name}.hvp": pushed.outputs[f"{name}.jvp"] for name in result.outputs}
    return Graph.of(pushed.inputs, outputs, graph.nodes, graph.names, graph.spans)
