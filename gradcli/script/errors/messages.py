"""Errors that are known by their text alone: what they mean, and what mends them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradcli.script.errors import edits, mends, operands, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.none import none
from gradcli.script.errors.source import Change, parts
from gradcli.script.errors.threads import Threads, lost

Tells = Callable[..., Answer | None]  # of where an error arose, and of the parts of its message


def _says(reason: str, mend: str, changes: Callable[..., list[Change]] | None = None) -> Tells:
    """Return what tells a reason with the line, and the parts of the message, in it."""

    def tell(at: Failure, *given: str) -> Answer:
        said, how = (words.format(*given, line=at.code(at.line)) for words in (reason, mend))
        return Answer(said, how, changes(at, *given) if changes is not None else [])

    return tell


def _optimizer(at: Failure) -> Answer:
    reason = "an optimizer changes leaves: what is computed from them would be overwritten by the next computation."
    names = [n for n, x in at.frame.f_locals.items() if getattr(x, "_fn", None) is not None]
    for name in names:
        if name in at.source(at.line) and (changes := updates.made_a_leaf(at.text, name)):
            return Answer(reason, "let the parameter require a gradient last, behind what makes it", changes)
    mend = "give it the tensor made with requires_grad=True, and compute the other one from it in each step"
    return Answer(reason, mend, _given_leaves(at))


def _given_leaves(at: Failure) -> list[Change]:
    """Give an optimizer the leaf that a tensor was computed from."""
    flow, tensors = Flow(at.text), at.names.tensors
    for call in [c for c in parts(at.text.statement, ast.Call) if c.args]:
        for own in call.args[0].elts if isinstance(call.args[0], ast.List | ast.Tuple) else ():
            names = [at.text.of(n) for e in flow.back(own) for n in parts(e, ast.Name)]
            for leaf in [n for n in names if n in tensors and tensors[n].is_leaf and tensors[n].requires_grad]:
                return at.text.edited(edits.instead(own, leaf))
    return []


def _needs(at: Failure) -> Answer:
    owners = at.text.owners("retain_grad", "register_hook")
    for x in map(at.value, owners):
        if getattr(x, "_detached", None) is not None:
            return lost(at, at.name(x, "it"), x._detached, Threads(at.text))
    reason = "gradients flow only through what requires one, or is computed from what does."
    found = (c for own in owners if (c := mends.requiring(at.text, at.text.of(own))))
    return mends.required(reason, next(found, []))


def _number(at: Failure, kind: str) -> Answer | None:
    if kind == "list":
        own = at.text.owners("backward")[0]
        changes = at.text.edited(edits.instead(own, f"sum({at.text.of(own)})"))
        return Answer("backward goes back from one tensor, and a list holds several.", "their sum", changes)
    threads = Threads(at.text)
    for cut in threads.cuts():
        reason = f"{at.code(cut.line)} makes numbers of a tensor by {cut.how}, and they have no history."
        return Answer(reason, "backward first, and numbers for what is printed or added up", threads.kept())
    return None


BY_TEXT: dict[str, Tells] = {
    "leaf Variable that requires grad": _says(
        "{line} would change a leaf where it stands, and what was computed from its old numbers could not be "
        "differentiated any more.",
        "an update of a parameter is not recorded (anything else is computed out of place, y = x + 1)",
        updates.without_grad,
    ),
    r"Can't call numpy\(\)": _says(
        "NumPy knows no graph: what it computes could not be differentiated.",
        "plain numbers, cut off from the graph",
        mends.detached,
    ),
    "'NoneType' object|NoneType'$|'NoneType' and|and 'NoneType'|not NoneType": none,
    "can't optimize a non-leaf": _optimizer,
    "can't retain_grad on|cannot register a hook on": _needs,
    "nly Tensors of floating point": _says(
        "between whole numbers there is nothing for a derivative to measure.", "real numbers", mends.real
    ),
    r"'(float|int|list|numpy\.\w+)' object has no attribute 'backward'": _number,
    r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)": _says(
        "backward returns a gradient for each argument of forward, None for what has none: {1} of them.",
        "as many as forward has arguments",
        mends.more_returned,
    ),
    "save_for_backward can only save variables": _says(
        "save_for_backward keeps tensors.", "anything else as an attribute, ctx.n = n"
    ),
    r"function (\w+)Backward returned a gradient different than None at position (\d+)": _says(
        "argument {1} of forward in {0} is no tensor, and has no gradient.", "None in its place"
    ),
    "expected Variable or None": _says(
        "what backward returns are tensors or None, several of them as a tuple, as forward's arguments are.", "tensors"
    ),
    "support the deepcopy protocol": _says(
        "a copy of a computed tensor would need a copy of the graph behind it.",
        "a copy of the numbers, .detach().clone(); or a clone that is computed from it, .clone()",
        mends.cloned,
    ),
    r"Function (\w+)Backward returned an invalid gradient at index (\d+) - got (\[.*?\]) .* (\[.*\])": _says(
        "what backward returns for argument {1} of {0} has the shape {2}, and that argument has {3}: a gradient has "
        "the shape of what it is the gradient of, v that of the output.",
        "return vᵀJ, of the shape {3}: what forward broadcast is summed, what it summed is spread",
    ),
    "must implement either the backward": _says(
        "a Function that is differentiated says itself how: its forward is not looked into.",
        "a static method backward(ctx, v) that returns a gradient for each argument of forward",
    ),
    "Inference tensors cannot be saved": _says(
        "autograd never uses what inference_mode makes, not even as a constant.",
        "no_grad, which records nothing either",
        mends.not_inference,
    ),
    "marked with @once_differentiable": _says(
        "once_differentiable says that backward itself is not to be differentiated, and here it is.",
        "a backward of PyTorch's operations can be recorded",
        lambda at: mends.twice_differentiable(at.main),
    ),
    "is a view and is being modified inplace|A view was created in no_grad mode": _says(
        "{line} would change a part of another tensor, whose history could not be told any more.",
        "a new tensor in its place",
        lambda at: updates.out_of_place(at.text),
    ),
    "with out=... arguments don't support": _says(
        "out= writes into a tensor that is there already, and so hides what it was computed from.",
        "assign the result",
        mends.without_out,
    ),
    "only change requires_grad flags of leaf": _says(
        "a computed tensor requires a gradient because what it came from does.", "cut it off", mends.cut_off
    ),
    "assigned grad expected to be a Tensor": _says(
        ".grad is a tensor of its owner's shape, or None.", "such a tensor", mends.as_a_tensor
    ),
    "attempting to assign a gradient of size '(.*?)' to a tensor of size '(.*?)'": _says(
        "a gradient has the shape of its owner, {1}, and this one has {0}.",
        "a tensor of the shape {1}",
        mends.as_a_tensor,
    ),
    r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)": operands.matrices,
    "expected target dtype to be Long": _says(
        "these targets are numbers of classes, whole ones; probabilities would have the shape of the scores.",
        "whole numbers",
        operands.whole,
    ),
    "to have the same dtype|must have the same dtype": operands.dtypes,
    "elements cannot be converted to Scalar|only one element tensors can be converted": operands.single,
    "Boolean value of Tensor with more than one": operands.truth,
    "multi-target not supported": operands.loss("one class for each sample", 1, ".flatten()"),
    r"[Tt]arget size \(.*input size": operands.loss("the target in the input's shape", 1, ".reshape({}.shape)"),
    "between 0 and 1": operands.loss("probabilities, torch.sigmoid(…)", 0, "torch.sigmoid("),
    "Found dtype Long but expected Float|target with class probabilities": operands.loss("real numbers", 1, ".float()"),
    r"cannot assign '.*' as parameter": operands.parameter,
    "should be an iterable of Tensors": _says(
        "an optimizer changes several tensors.", "a list of them", operands.listed
    ),
    "empty parameter list": operands.no_parameters,
    "to return a scalar Tensor": operands.vector_result,
    r"output with shape (\[.*?\]) doesn't match the broadcast shape (\[.*?\])": _says(
        "{line} changes what has the shape {0}, and there is no room in it for a result of the shape {1}.",
        "a new tensor in its place",
        lambda at, *_: updates.out_of_place(at.text),
    ),
    "view size is not compatible": _says(
        "a view shows numbers in the order in which they lie in memory, and these lie in another one.",
        "reshape, which copies them where it must",
        operands.reshaped,
    ),
    r"shape '(\[.*?\])' is invalid for input of size (\d+)": _says(
        "{1} numbers do not fill the shape {0}.", "sizes whose product is {1}; -1 stands for the one that is left"
    ),
    r"Target (-?\d+) is out of bounds": _says(
        "the target names class {0}, and there are no scores for it: classes are counted from 0.",
        "a score for each class, or targets that begin at 0",
    ),
    r"to have (\d+) channels, but got (\d+) channels": operands.channels,
    "more than 1 value per channel": _says(
        "the mean of one number is the number itself, and it has no spread to be divided by.",
        "several samples at once; or .eval(), which takes the means that training has left",
    ),
    r"before Module.__init__\(\)": _says(
        "a module keeps its parameters and layers in what Module.__init__ makes, which has not run yet.",
        "call it first",
        lambda at: at.text.replaced(at.text.statement, "super().__init__()", at.text.of(at.text.statement)),
    ),
    "non-static forward method": _says(
        "a Function has no instances: what it keeps between forward and backward, it keeps in ctx.",
        "@staticmethod above both, and .apply(…) of the class itself",
    ),
    r"Jacobian mismatch.*numerical:tensor\((?!.*float64)": _says(
        "a difference of two numbers that agree in most of float32's 7 digits has few digits left.",
        "float64, in which it has more",
        operands.doubled,
    ),
    r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at .* (\d+)": operands.broadcast,
}
