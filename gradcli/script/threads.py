"""Where the thread from a result back to its leaves was lost in a script, and the changes that keep it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from gradcli.script import mends, updates
from gradcli.script.flow import Flow
from gradcli.script.scene import Scene, Told
from gradcli.script.source import Change, Edit, Text, called, changed, end, is_simple, start

if TYPE_CHECKING:
    from gradcli.pytorch.cuts import Cut

# Methods that give numbers away, or change them on NumPy's side, and what stands for them in a graph.
_AWAY = {**dict.fromkeys(("detach", "item", "numpy", "tolist", "astype", "int", "long"), ""), "copy": ".clone()"}
_BACK = {
    *("tensor", "as_tensor", "asarray", "from_numpy", "Tensor", "FloatTensor", "DoubleTensor", "array", "Variable"),
    *("LongTensor", "new_tensor"),
}
_MODULES = ("np", "numpy", "math")


class Threads:
    """The thread from a statement of a script back to where it was lost."""

    def __init__(self, text: Text, line: int) -> None:
        self.text, self.line = text, line
        self.flow = Flow(text)
        statement = text.at(line)
        self.lacks = False  # whether NumPy computes on the way what torch has no function for
        self.root = _root(text, statement)
        self.way = [] if statement is None else [*_own(statement), *self.flow.back(_header(statement))]

    def cuts(self) -> list[Cut]:
        """Return where numbers on the way went on alone, the nearest first."""
        return list({id(c): c for e in self.way for c in self._at(e)}.values())

    def _at(self, expression: ast.AST) -> Iterator[Cut]:
        from gradcli.pytorch.cuts import CUTS

        for line in sorted({n.lineno for n in ast.walk(expression) if isinstance(n, ast.expr)}):
            found = CUTS.get((self.text.file, line))
            if found is not None:
                yield found

    def has(self, name: str) -> bool:
        """Tell whether something of a name stands on the way."""
        return any(self.text.text(n) == name for e in self.way for n in ast.walk(e))

    def gradient_recorded(self) -> list[Change]:
        """Return the change that records a gradient on the way: grad(…, create_graph=True), or backward."""
        for node in [n for e in self.way if e.lineno != self.line for n in ast.walk(e)]:
            taken = isinstance(node, ast.Call) and called(node) == "grad" and self.text.text(node.func) != "torch.grad"
            if taken and not any(k.arg == "create_graph" for k in node.keywords):  # type: ignore[attr-defined]
                return mends.with_argument(self.text, node.lineno, "grad", "create_graph=True")  # type: ignore[attr-defined]
            if isinstance(node, ast.Attribute) and node.attr == "grad":
                calls = [n for n in ast.walk(self.text.tree) if isinstance(n, ast.Call) and called(n) == "backward"]
                if calls and not any(k.arg == "create_graph" for k in calls[0].keywords):
                    return mends.with_argument(self.text, calls[0].lineno, "backward", "create_graph=True")
        return []

    def kept(self) -> list[Change]:
        """Return the changes that keep the thread: tensors where the script has numbers, and PyTorch where NumPy."""
        edits: dict[ast.stmt, dict[Edit, None]] = {}
        for expression in self.way:
            statement = self.text.at(expression.lineno)
            if statement is not None:
                for node in ast.walk(expression):
                    edits.setdefault(statement, {}).update(dict.fromkeys(self._edits(node, statement)))
        found = sorted(((s, own) for s, own in edits.items() if own), key=lambda pair: pair[0].lineno)
        changes = [self.text.edited(s, *own) for s, own in found]
        return [] if self.lacks or not _is_whole(self.text, changes) else changes

    def _edits(self, node: ast.AST, statement: ast.stmt) -> Iterator[Edit]:
        """Yield what is to be changed of a node, if numbers went on alone in it or before it."""
        if isinstance(node, ast.Attribute) and node.attr == "data" and self._is_lost(node):
            yield self._tail(node, "data"), end(node), ""
        # Of two tensors neither may go to NumPy, though only the one lost its thread.
        if not isinstance(node, ast.Call) or not (called(node) == "numpy" or self._is_lost(node)):
            return
        name, inner = called(node), node.args[0] if node.args else None
        owner = self.text.text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if owner and name in _AWAY and owner not in ("torch", *_MODULES):
            yield self._tail(node, name), end(node), _AWAY[name]
        elif inner is not None and (name in _BACK or (not owner and name in ("float", "int"))):
            yield from self._unwrapped(node, inner, getattr(statement, "value", None) is node)
        elif isinstance(node.func, ast.Attribute) and owner in _MODULES:
            self.lacks |= not _torch_has(name)
            yield start(node.func.value), end(node.func.value), "torch"
            if inner is not None and self._is_list(inner):
                yield start(inner), start(inner), "torch.stack("
                yield end(inner), end(inner), ")"

    def _tail(self, node: ast.expr, name: str) -> tuple[int, int]:
        """Return where the last part of an expression begins: that of .item() in (x ** 2).item()."""
        tail = self.text.text(node).rpartition(f".{name}")[2]
        return end(node)[0], end(node)[1] - len(f".{name}{tail}".encode())

    def _unwrapped(self, node: ast.Call, inner: ast.expr, alone: bool) -> Iterator[Edit]:
        stacked = self._is_list(inner)
        bare = alone or is_simple(inner)
        yield start(node), start(inner), "torch.stack(" if stacked else "" if bare else "("
        yield end(inner), end(node), ")" if stacked else "" if bare else ")"

    def _is_list(self, node: ast.expr) -> bool:
        """Tell whether something is a list: written as one, or given as one where its name is."""
        kinds = (ast.List, ast.ListComp, ast.Tuple)
        given = self.flow.of_name(node) if isinstance(node, ast.Name | ast.Attribute) else []
        return isinstance(node, kinds) or any(isinstance(e, kinds) for e in given)

    def _is_lost(self, node: ast.AST) -> bool:
        """Tell whether numbers went on alone at a node, or on the way to it."""
        return any(True for e in (node, *self.flow.back(node)) for _ in self._at(e))


def lost(scene: Scene, name: str, cut: Cut, threads: Threads, to: str = "what requires a gradient") -> Told:
    """Return what is said of a thread that was lost, and what keeps it."""
    how = _how(scene, cut)
    reason = f"the thread from {name} back to {to} was lost at {scene.code(cut.line)} by {how}"
    text = scene.text(cut.line)
    if any(h.endswith("no gradient") and "cast" not in h for h in cut.hows):
        mend = f"a loss of {_jumping(text, cut)}: what jumps from number to number has no slope to follow"
        return Told(reason + ".", mend, _smooth(scene, cut, threads))
    if "no_grad()" in cut.hows:
        once = mends.twice_differentiable(text) if _is_once(text, cut.line) else []
        if once:
            return Told(f"{reason}: once_differentiable has it.", "a backward that can be recorded", once)
        changes = updates.kept_leaves(text, cut.line)
        if changes:
            return Told(f"{reason}: a new tensor has the name since.", "change what is there, in place", changes)
        mend = f"compute {name} without no_grad(); such a block is for what needs no gradient"
        return Told(reason + ".", mend, mends.recorded(text, cut.line))
    changes = threads.kept()
    if len(cut.hows) == 1 and (how in (".detach()", ".data") or how.startswith("torch.")):
        return Told(reason + ".", f"compute {name} without {how}" + "; NumPy knows no graph" * threads.lacks, changes)
    mend = f"compute {name} of tensors, with PyTorch's operations alone"
    return Told(f"{reason}: numbers have no history.", mend, changes)


def _is_once(text: Text, line: int) -> bool:
    """Tell whether a line stands in a function that is differentiated once."""
    functions = text.around(line, ast.FunctionDef)
    return any("once_differentiable" in text.text(d) for f in functions for d in f.decorator_list)


def _how(scene: Scene, cut: Cut) -> str:
    """Return how a thread was lost, in the script's words."""
    how = cut.how.replace("cast,", "a conversion to whole numbers,")
    calls = scene.text(cut.line).calls(cut.line, *_BACK)
    return how.replace("torch.tensor(", f"torch.{called(calls[0])}(") if calls else how


def _jumping(text: Text, cut: Cut) -> str:
    """Return what jumps at a line: out, where the script has out.argmax(1), or (out > 0)."""
    name = cut.hows[0].partition(",")[0].rpartition(" ")[2]
    for call in text.calls(cut.line, name):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call
        found = owner if text.text(owner) not in ("torch", *_MODULES) else call.args[0] if call.args else call
        return f"{text.text(found)} itself, not of {text.text(call)}"
    statement = text.at(cut.line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Compare):
            return f"{text.text(node.left)} itself, not of {text.text(node)}"
    return f"what {name} is given"


def _smooth(scene: Scene, cut: Cut, threads: Threads) -> list[Change]:
    """Return a loss of what jumps at a line: of the numbers that were compared; of class scores, the cross-entropy."""
    text = scene.text(cut.line)
    statement = text.at(cut.line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Compare) and cut.hows[0].partition(",")[0] in ("gt", "lt", "ge", "le"):
            return [text.edited(statement, (start(node), end(node), text.text(node.left)))]  # type: ignore[arg-type]
    loss = text.assigned(threads.root, int(scene.line))
    if loss is None:
        return []
    for call in text.calls(cut.line, "argmax", "max"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call
        given = call.args[0] if text.text(owner) == "torch" and call.args else owner
        found = [n for n in ast.walk(given) if len(_shape(scene, n)) == 2]  # what softmax is given, too
        for scores, label in product(found[:1], ast.walk(loss[1])):
            if _shape(scene, label) == _shape(scene, scores)[:1] and scene.value(label)._detached is None:
                new = f"torch.nn.functional.cross_entropy({text.text(scores)}, {text.text(label)}.long())"
                return [text.edited(loss[0], (start(loss[1]), end(loss[1]), new))]
    return []


def _shape(scene: Scene, node: ast.AST) -> tuple[int, ...]:
    return tuple(getattr(scene.value(node), "shape", ()))


def _header(statement: ast.stmt) -> ast.AST:
    """Return what a statement computes itself, without the statements in it."""
    return ast.Module([], []) if hasattr(statement, "body") else statement


def _root(text: Text, statement: ast.stmt | None) -> str:
    """Return what backward is called of in a statement."""
    for call in [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []:
        if called(call) in ("backward", "grad") and isinstance(call.func, ast.Attribute):
            owner = text.text(call.func.value)
            return text.text(call.args[0]) if owner.rpartition(".")[2] == "autograd" and call.args else owner
    return ""


def _own(statement: ast.stmt) -> list[ast.expr]:
    return [n for n in ast.iter_child_nodes(_header(statement)) if isinstance(n, ast.expr)]


def _is_whole(text: Text, changes: Sequence[Change]) -> bool:
    """Tell whether a text with changes is a script still."""
    try:
        ast.parse(changed(text.source, changes))
    except SyntaxError:
        return False
    return True


def _torch_has(name: str) -> bool:
    from gradcli.pytorch import torch

    try:
        return callable(getattr(torch, name))
    except Exception:  # what torch lacks is told in several ways
        return False
