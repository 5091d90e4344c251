"""Errors that are known by their text alone: what they mean, and what mends them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gradcli.script import mends, updates
from gradcli.script.none import none
from gradcli.script.operands import OPERANDS
from gradcli.script.places import code_at
from gradcli.script.scene import BEFORE, Scene, Told
from gradcli.script.source import Text
from gradcli.script.threads import Threads, lost


def _leaf(scene: Scene) -> Told:
    reason = (
        f"{scene.code(scene.line)} would change a leaf where it stands, and what was computed from its old numbers "
        "could not be differentiated any more."
    )
    mend = "an update of a parameter is not recorded (anything else is computed out of place, y = x + 1)"
    return Told(reason, mend, updates.without_grad(scene.text(), scene.line))


def _numpy(scene: Scene) -> Told:
    reason = "NumPy knows no graph: what it computes could not be differentiated."
    return Told(
        reason,
        "plain numbers, cut off from the graph",
        mends.detached(scene.text(), scene.line, scene.value),
    )


def _optimizer(scene: Scene) -> Told:
    reason = "an optimizer changes leaves: what is computed from them would be overwritten by the next computation."
    text = scene.text()
    names = [n for n, x in scene.frame.f_locals.items() if getattr(x, "_fn", None) is not None]
    changes = next(
        (
            c
            for n in names
            if n in code_at(scene.script, scene.line) and (c := updates.made_a_leaf(text, n, scene.line))
        ),
        [],
    )
    mend = "give it the tensor made with requires_grad=True, and compute the other one from it in each step"
    last, changes = bool(changes), changes or mends.given_leaves(text, scene.line, scene.names.tensors)
    return Told(reason, "let the parameter require a gradient last, behind what makes it" if last else mend, changes)


def _needs(scene: Scene) -> Told:
    reason = "gradients flow only through what requires one, or is computed from what does."
    calls = scene.text().calls(scene.line, "retain_grad", "register_hook")
    nodes = [c.func.value for c in calls if isinstance(c.func, ast.Attribute)]
    for x in map(scene.value, nodes):
        if getattr(x, "_detached", None) is not None:
            return lost(scene, scene.name(x), x._detached, Threads(scene.text(), scene.line))
    names = [scene.text().text(n) for n in nodes]
    changes = next((c for n in names if (c := mends.requiring(scene.text(), n, scene.line))), [])
    return Told(reason, "let the input require one, where it is made" + ("" if changes else BEFORE), changes)


def _whole(scene: Scene) -> Told:
    reason = "between whole numbers there is nothing for a derivative to measure."
    return Told(reason, "real numbers", mends.real(scene.text(), scene.line))


def _number(scene: Scene) -> Told | None:
    threads = Threads(scene.text(), scene.line)
    cuts = threads.cuts()
    if scene.message.startswith("'list'"):
        changes = mends.added_up(scene.text(), scene.line)
        return Told("backward goes back from one tensor, and a list holds several.", "their sum", changes)
    if not cuts:
        return None
    kept = threads.kept()
    reason = f"{scene.code(cuts[0].line)} makes numbers of a tensor by {cuts[0].how}, and they have no history."
    return Told(reason, "backward first, and numbers for what is printed or added up", kept)


def _too_few(scene: Scene) -> Told | None:
    found = re.search(
        r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)", scene.message
    )
    if found is None:
        return None
    reason = f"backward returns a gradient for each argument of forward, None for what has none: {found[2]} of them."
    missing = int(found[2]) - int(found[3])
    return Told(reason, "as many as forward has arguments", mends.more_returned(_main(scene), found[1], missing))


def _no_argument(scene: Scene) -> Told | None:
    found = re.search(
        r"function (\w+)Backward returned a gradient different than None at position (\d+)", scene.message
    )
    if found is None:
        return None
    return Told(f"argument {found[2]} of forward in {found[1]} is no tensor, and has no gradient.", "None in its place")


def _no_gradient(scene: Scene) -> Told:
    reason = "what backward returns are tensors or None, several of them as a tuple, as forward's arguments are."
    return Told(reason, "tensors")


def _no_tensor(scene: Scene) -> Told:
    return Told("save_for_backward keeps tensors.", "anything else as an attribute, ctx.n = n")


def _main(scene: Scene) -> Text:
    return Text(scene.script.name, scene.script.source)


def _copied(scene: Scene) -> Told:
    reason = "a copy of a computed tensor would need a copy of the graph behind it."
    return Told(
        reason,
        "a copy of the numbers, .detach().clone(); or a clone that is computed from it, .clone()",
        mends.cloned(scene.text(), scene.line, scene.value),
    )


def _other_shape(scene: Scene) -> Told | None:
    found = re.search(
        r"Function (\w+)Backward returned an invalid gradient at index (\d+) - got (\[.*?\]) .* (\[.*\])", scene.message
    )
    if found is None:
        return None
    name, place, given, wanted = found.groups()
    reason = (
        f"what backward returns for argument {place} of {name} has the shape {given}, and that argument has {wanted}: "
    )
    reason += "a gradient has the shape of what it is the gradient of, v that of the output."
    return Told(
        reason, f"return vᵀJ, of the shape {wanted}: what forward broadcast is summed, what it summed is spread"
    )


def _no_backward(scene: Scene) -> Told:
    reason = "a Function that is differentiated says itself how: its forward is not looked into."
    return Told(reason, "a static method backward(ctx, v) that returns a gradient for each argument of forward")


def _inference(scene: Scene) -> Told:
    reason = "autograd never uses what inference_mode makes, not even as a constant."
    return Told(reason, "no_grad, which records nothing either", mends.not_inference(scene.text()))


def _once(scene: Scene) -> Told:
    reason = "once_differentiable says that backward itself is not to be differentiated, and here it is."
    return Told(reason, "a backward of PyTorch's operations can be recorded", mends.twice_differentiable(_main(scene)))


def _view(scene: Scene) -> Told:
    reason = (
        f"{scene.code(scene.line)} would change a part of another tensor, whose history could not be told any more."
    )
    return Told(reason, "a new tensor in its place", updates.out_of_place(scene.text(), scene.line))


def _out(scene: Scene) -> Told:
    reason = "out= writes into a tensor that is there already, and so hides what it was computed from."
    return Told(reason, "assign the result", mends.without_out(scene.text(), scene.line))


def _fixed(scene: Scene) -> Told:
    reason = "a computed tensor requires a gradient because what it came from does."
    return Told(reason, "cut it off", mends.cut_off(scene.text(), scene.line))


def _grad_number(scene: Scene) -> Told:
    return Told(
        ".grad is a tensor of its owner's shape, or None.", "such a tensor", mends.as_a_tensor(scene.text(), scene.line)
    )


def _grad_shape(scene: Scene) -> Told | None:
    found = re.search(r"gradient of size '(.*?)' to a tensor of size '(.*?)'", scene.message)
    if found is None:
        return None
    reason = f"a gradient has the shape of its owner, {found[2]}, and this one has {found[1]}."
    changes = mends.as_a_tensor(scene.text(), scene.line, like=True)
    return Told(reason, f"a tensor of the shape {found[2]}", changes)


def _factors(scene: Scene) -> Told | None:
    found = re.search(r"\((\d+)x(\d+) and (\d+)x(\d+)\)", scene.message)
    if found is None:
        return None
    rows, given, wanted, columns = map(int, found.groups())
    if changes := mends.with_inputs(_main(scene), given, wanted, columns):
        reason = f"a layer of {wanted} inputs is given {given} numbers for each of {rows} samples."
        return Told(reason, "as many inputs as there are numbers", changes)
    reason = (
        f"each number of the product sums over a row of the left matrix, of {given}, and a column of the right one, "
        f"of {wanted}: they are to be as many."
    )
    changes = mends.transposed(scene.text(), scene.line, (rows, given), (wanted, columns))
    return Told(reason, "the transposed matrix fits" if changes else "matrices of shapes n x k and k x m", changes)


def _classes(scene: Scene) -> Told:
    reason = "these targets are numbers of classes, whole ones; probabilities would have the shape of the scores."
    return Told(reason, "whole numbers", mends.whole(scene.text(), scene.line))


BY_TEXT: dict[str, Callable[[Scene], Told | None]] = {
    "leaf Variable that requires grad": _leaf,
    r"Can't call numpy\(\)": _numpy,
    "'NoneType' object|NoneType'$|'NoneType' and|and 'NoneType'|not NoneType": none,
    "can't optimize a non-leaf": _optimizer,
    "can't retain_grad on": _needs,
    "cannot register a hook on": _needs,
    "nly Tensors of floating point": _whole,
    r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'": _number,
    "incorrect number of gradients": _too_few,
    "save_for_backward can only save variables": _no_tensor,
    "returned a gradient different than None": _no_argument,
    "expected Variable or None": _no_gradient,
    "support the deepcopy protocol": _copied,
    "returned an invalid gradient": _other_shape,
    "must implement either the backward": _no_backward,
    "Inference tensors cannot be saved": _inference,
    "marked with @once_differentiable": _once,
    "is a view and is being modified inplace": _view,
    "A view was created in no_grad mode": _view,
    "with out=... arguments don't support": _out,
    "only change requires_grad flags of leaf": _fixed,
    "assigned grad expected to be a Tensor": _grad_number,
    "attempting to assign a gradient of size": _grad_shape,
    "mat1 and mat2 shapes cannot be multiplied": _factors,
    "expected target dtype to be Long": _classes,
    **OPERANDS,
}
