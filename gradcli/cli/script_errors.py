"""Why a script's backward failed, in the script's own names and lines, and the smallest change that mends it."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.pytorch.session import Script


@dataclass(frozen=True)
class Scene:
    """Where an error arose: the script, the line, and what the script calls its tensors there."""

    script: Script
    line: int
    frame: Any
    names: Mapping[int, str]

    def code(self, line: int) -> str:
        """Return a line of the script with its number: line 3, `y = x.exp()`."""
        from gradcli.pytorch.session import source_line

        text = source_line(self.script, line)
        return f"line {line}, `{text}`," if text else f"line {line}"

    def name(self, x: Any, otherwise: str = "it") -> str:
        """Return what the script calls a tensor, or the step that made one."""
        return self.names.get(id(x)) or self.names.get(id(getattr(x, "_fn", None))) or otherwise


def why(error: BaseException, script: Script) -> str:
    """Return what happened, what mends it, and where the guide has more; nothing where PyTorch's message says all."""
    from gradcli.guide.messages import find

    found = find(str(error))
    return "\n".join(filter(None, [_why(error, script), f"more: gradcli explain {found.topic.name}" if found else ""]))


def _why(error: BaseException, script: Script) -> str:
    scene = _scene(error, script)
    if scene is None:
        return ""
    kind = getattr(error, "kind", None)
    found: Told | None
    if kind in _BY_KIND:
        found = _BY_KIND[kind](scene, *error.subjects)  # type: ignore[attr-defined]
    else:
        text = str(error)
        found = next((tell(scene, text) for part, tell in _BY_TEXT.items() if part in text), None)
    return _told(*found) if found else ""


def _told(reason: str, mend: str) -> str:
    """Return the two as paragraphs, their lines broken."""
    from textwrap import fill

    width = min(100, _columns())
    return "\n".join(
        fill(f"{head} {text}", width, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
        for head, text in (("why:", reason), ("mend:", mend))
    )


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def _scene(error: BaseException, script: Script) -> Scene | None:
    """Return the place in the script where an error arose: the innermost one in its own file."""
    from gradcli.pytorch.naming import names_of

    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == script.name:
            found = frame, line
    return None if found is None else Scene(script, found[1], found[0], names_of(found[0]))


Told = tuple[str, str]


def _second(scene: Scene, step: Any) -> Told:
    reason = (
        f"the backward at {scene.code(step.freed)} freed what the graph keeps for a backward: {step.name()} of "
        f"{scene.code(step.line)} kept numbers, and they are gone."
    )
    mend = (
        f"backward(retain_graph=True) at line {step.freed}, if the graph is to serve twice; or compute the loss again "
        "before the second backward, as a training loop does."
    )
    return reason, mend


def _in_place(scene: Scene, step: Any, memory: Any, version: int) -> Told:
    changed = (
        f"{scene.code(memory.changed[0])} changed them in place" if memory.changed else "they were changed in place"
    )
    reason = (
        f"{step.name()} of {scene.code(step.line)} needs numbers for its backward, and {changed} after that "
        f"(version {memory.version}, where {version} was expected)."
    )
    if memory.changed and memory.changed[1] == "step":
        mend = (
            f"call every backward before the optimizer's step at line {memory.changed[0]}, or compute the loss again "
            "after it, with the new parameters."
        )
    else:
        mend = "the change out of place: y = y + 1 instead of y += 1, torch.where or masked_fill instead of y[i] = …"
    return reason, mend


def _no_root(scene: Scene, y: Any) -> Told:
    name = scene.name(y, "what backward is called on")
    if y._detached is not None:
        line, how = y._detached
        reason = f"the thread from {name} back to what requires a gradient was lost at {scene.code(line)} by {how}."
        more = "; such a block is for what needs no gradient." if how == "no_grad()" else "."
        mend = f"compute {name} without {how.partition(',')[0]}{more}"
        return reason, mend
    reason = f"nothing that {name} was computed from requires a gradient, so that there is no graph to go back through."
    return reason, "requires_grad=True where the input is made, or x.requires_grad_() before it is used."


def _scalar(scene: Scene, y: Any) -> Told:
    name = scene.name(y, "y")
    size = "×".join(map(str, y.shape))
    reason = (
        f"{name} has {size} elements: x.grad = vᵀJ needs a weight v for each of them, and only of a scalar it is 1."
    )
    return (
        reason,
        f"{name}.sum().backward(), or {name}.backward(v) with v = ∂L/∂{name}; torch.ones_like({name}) is the sum.",
    )


def _shape(scene: Scene, y: Any, v: Any) -> Told:
    name = scene.name(y, "y")
    reason = (
        f"v holds ∂L/∂{name}, a weight for each element of {name}: its shape is that of {name}, {_size(y)}, and here "
        f"{scene.name(v, 'v')} has {_size(v)}."
    )
    return reason, f"a v of the shape {_size(y)}" + ("; a scalar takes one number." if not y.shape else ".")


def _size(x: Any) -> str:
    return str(tuple(x.shape))


def _unused(scene: Scene, x: Any, roots: Any) -> Told:
    name, outputs = scene.name(x, "the input"), ", ".join(scene.name(y, "the output") for y in roots)
    reason = f"no path leads from {outputs} back to {name}: it was computed without {name}, or from a copy of it."
    return (
        reason,
        "allow_unused=True gives None for it, materialize_grads=True gives zeros; or use it in the computation.",
    )


def _no_grad(scene: Scene, x: Any) -> Told:
    name = scene.name(x, "it")
    reason = f"{name} does not require a gradient, so that nothing was recorded for it."
    return reason, f"requires_grad=True where {name} is made, before anything is computed from it."


def _nan(scene: Scene, step: Any) -> Told:
    reason = f"the derivative of {step.name()} at {scene.code(step.line)} is not a number where its input is."
    return (
        reason,
        "keep the input away from that point before the operation (clamp, + eps); torch.where behind it is too late.",
    )


_BY_KIND: dict[str, Callable[..., Told]] = {
    "second": _second,
    "in place": _in_place,
    "no root": _no_root,
    "scalar": _scalar,
    "shape": _shape,
    "unused": _unused,
    "no grad": _no_grad,
    "nan": _nan,
}


def _leaf(scene: Scene, text: str) -> Told:
    reason = (
        f"{scene.code(scene.line)} would change a leaf where it stands, and what was computed from its old numbers "
        "could not be differentiated any more."
    )
    return reason, "an update of parameters stands in `with torch.no_grad():`; otherwise out of place: y = x + 1."


def _numpy(scene: Scene, text: str) -> Told:
    return (
        "NumPy knows no graph: what it computes could not be differentiated.",
        ".detach().numpy(), for plain numbers.",
    )


def _none(scene: Scene, text: str) -> Told | None:
    from gradcli.pytorch.session import source_line
    from gradcli.pytorch.tensor import Tensor

    found = re.search(r"([A-Za-z_][\w.]*?)\.grad\b", source_line(scene.script, scene.line))
    if found is None:
        return None
    name, value = found[1], scene.frame
    for k, part in enumerate(name.split(".")):
        scope = {**value.f_globals, **value.f_locals} if k == 0 else None
        value = scope.get(part) if scope is not None else getattr(value, part, None)
    if not isinstance(value, Tensor):
        return None
    if not value.requires_grad:
        return f"{name}.grad is None: {name} does not require a gradient.", f"requires_grad=True where {name} is made."
    if not value.is_leaf:
        reason = f"{name}.grad is None: {name} is computed, and backward keeps the gradients of leaves only."
        return (
            reason,
            f"{name}.retain_grad() before the backward, or the gradient of the leaf that it was computed from.",
        )
    return (
        f"{name}.grad is None: no backward has reached {name} yet.",
        f"backward() first; {name}.grad = None needs none.",
    )


def _optimizer(scene: Scene, text: str) -> Told:
    reason = "an optimizer changes leaves: what is computed from them would be overwritten by the next computation."
    return reason, "give it the tensor made with requires_grad=True, and compute the other one from it in each step."


def _needs(scene: Scene, text: str) -> Told:
    reason = "gradients flow only through what requires one, or is computed from what does."
    return reason, "requires_grad=True where the input is made."


_BY_TEXT: dict[str, Callable[[Scene, str], Told | None]] = {
    "leaf Variable that requires grad": _leaf,
    "Can't call numpy()": _numpy,
    "'NoneType' object": _none,
    "can't optimize a non-leaf": _optimizer,
    "can't retain_grad on": _needs,
    "cannot register a hook on": _needs,
}
