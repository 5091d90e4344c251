"""One backward of PyTorch: the gradients that arrive at each node of its graph, those that it sends on, and its hooks.

A hook of a tensor is called through a function that compares the gradient before and after.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from gradcli.realtorch.values import COPIED, PLAIN, numbers_of, summary_of
from gradcli.record.numbers import Numbers

Node = Any  # torch.autograd.graph.Node
Hooked = tuple[torch.Tensor, Any, torch.Tensor, torch.Tensor]  # a tensor, its hook, the gradient before and after


class Leaf:
    """A leaf of a backward: its tensor, `.grad` before, what is added, and `.grad` after."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.before = None if tensor.grad is None else tensor.grad.detach().clone()
        # PyTorch takes a gradient itself for `.grad` where nothing else has it: then it is not copied.
        is_large = tensor.numel() > COPIED and not (tensor._backward_hooks or tensor._post_accumulate_grad_hooks)
        self.is_stolen = self.before is None and is_large
        self.added: torch.Tensor | None = None
        self.after: torch.Tensor | None = None


class Sweep:
    """The nodes that a backward goes through, in the order in which they lead down from the roots, with hooks on each.

    `received` has the gradients of a node's outputs, after hooks; `sent` those of its inputs, as `next_functions` has
    them.  Where it `summarises`, of large gradients of intermediates no more than a summary is kept.
    """

    def __init__(self, roots: Iterable[Node], hooks: bool = True) -> None:
        self.leaves: dict[Node, Leaf] = {}
        self.received: dict[Node, Sequence[Numbers | None]] = {}
        self.sent: dict[Node, Sequence[Numbers | None]] = {}
        self.summarises = False
        self._handles: list[Any] = []
        self._late: list[
            tuple[list[Numbers | None], int, Leaf]
        ] = []  # what is sent to leaves, whose `.grad` it becomes
        with PLAIN():
            self.nodes = nodes_behind(roots)
            for node in self.nodes:
                if is_leaf(node):
                    self.leaves[node] = leaf = Leaf(node.variable)
                    self._handles += [node.register_prehook(partial(self._arrived, node, leaf))] if hooks else []
                elif hooks:
                    self._handles.append(node.register_hook(partial(self._pulled, node)))
            self._edges = Counter(n for node in self.nodes for n, _ in node.next_functions)

    def _pulled(self, node: Node, sent: Sequence[Any], received: Sequence[Any]) -> None:
        self._read(node, sent, received, summary_of if self.summarises else numbers_of)
        if self.summarises and _are_finite(self.received[node]) and not _are_finite(self.sent[node]):
            self._read(node, sent, received, numbers_of)  # which tell why

    def _read(
        self, node: Node, sent: Sequence[Any], received: Sequence[Any], read: Callable[[torch.Tensor], Numbers]
    ) -> None:
        self.received[node] = [None if g is None else read(g) for g in received]
        self.sent[node] = kept = list[Numbers | None]()
        for k, (g, (target, _)) in enumerate(zip(sent, node.next_functions, strict=False)):
            leaf = self.leaves.get(target) if self._edges[target] == 1 else None
            if g is not None and leaf is not None and leaf.is_stolen and g.numel() > COPIED:
                self._late.append((kept, k, leaf))
                g = None
            kept.append(None if g is None else read(g) if leaf is None else numbers_of(g))

    def _arrived(self, node: Node, leaf: Leaf, received: Sequence[Any]) -> None:
        leaf.added = None if leaf.is_stolen else received[0]
        self.leaves[node] = self.leaves.pop(node)  # in the order in which gradients arrive

    def finish(self) -> None:
        """Remove the hooks, and look at what `.grad` is now."""
        for handle in self._handles:
            handle.remove()
        for leaf in self.leaves.values():
            with PLAIN():
                leaf.after = leaf.tensor.grad
                leaf.added = leaf.after if leaf.is_stolen else leaf.added
        for sent, k, leaf in self._late:
            sent[k] = None if leaf.added is None else numbers_of(leaf.added)


def _are_finite(gradients: Sequence[Numbers | None]) -> bool:
    return all(g is None or g.is_finite for g in gradients)


def is_leaf(node: Node) -> bool:
    """Return whether a node of the graph accumulates the gradient of a leaf."""
    return type(node).__name__ == "AccumulateGrad"


def nodes_behind(roots: Iterable[Node], most: float = math.inf) -> dict[Node, None]:
    """Return nodes, and those that a backward from them goes through, in the order in which they lead down."""
    nodes: dict[Node, None] = {}
    stack = [*roots]
    while stack and len(nodes) < most:
        node = stack.pop()
        if node not in nodes:
            nodes[node] = None
            stack += [n for n, _ in node.next_functions if n is not None]
    return nodes


@contextmanager
def heard(tensors: Iterable[torch.Tensor]) -> Iterator[list[Hooked]]:
    """Give the list of what hooks of tensors change within a block."""
    changes: list[Hooked] = []
    replaced: list[tuple[Any, int, Any, Any]] = []
    for x in tensors:
        for key, hook in [*(x._backward_hooks or {}).items()]:
            x._backward_hooks[key] = new = _heard(x, hook, changes)
            replaced.append((x._backward_hooks, key, hook, new))
    try:
        yield changes
    finally:
        for hooks, key, hook, new in replaced:
            if hooks.get(key) is new:  # one that the program has not removed
                hooks[key] = hook


def _heard(x: torch.Tensor, hook: Callable[..., Any], changes: list[Hooked]) -> Callable[..., Any]:
    def called(g: Any) -> Any:
        with PLAIN():
            before = g.detach().clone()
        result = hook(g)
        with PLAIN():
            after = g.detach() if result is None else result.detach()
            if not torch.equal(before.nan_to_num(), after.nan_to_num()):
                changes.append((x, hook, before, after.clone()))
        return result

    return called
