"""Errors of sizes: tensors that do not join, and layers that were created with other sizes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure, is_module
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import called, calls, elements, integer, keyword
from gradcli.text.wrapping import in_words

_ATTENTION = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer")
_CATS = ("cat", "concat", "concatenate")
_OTHERS = {"hstack": "vstack", "vstack": "hstack"}  # which join along the other axis


# Parts that are joined


def joined(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about tensors of different sizes that are joined along an axis."""
    shapes = [at.quantity(x).shape for x in tensors]
    reason = f"the tensors have the shapes {in_words([*map(str, dict.fromkeys(shapes))])}, and are joined along axis "
    reason += f"{axis}: their other sizes must be equal."
    differ = [k for k in range(len(shapes[0])) if len({s[k] for s in shapes}) > 1]
    for call in at.failed_calls(*_CATS, *_OTHERS) if len(differ) == 1 else ():
        if called(call) in _OTHERS:
            other = _OTHERS[called(call)]
            fix = f"join them along axis {differ[0]}, where they differ"
            changes = at.text.edited(edits.renamed(call, other)) if differ == [int(other == "hstack")] else []
            return Answer(reason, fix, changes)
        option = keyword(call, "dim", "axis")
        position = option.value if option else next(iter(call.args[1:]), None)
        new = edits.instead(position, str(differ[0])) if position else edits.appended(call, f"dim={differ[0]}", at.text)
        return Answer(reason, f"join them along axis {differ[0]}, where they differ", at.text.edited(new))
    for call in at.failed_calls(*_CATS) if len(shapes[0]) == 2 else ():
        parts = elements(call.args[0]) if call.args else []
        turned = [k for k, s in enumerate(shapes) if k and s[1 - axis] != shapes[0][1 - axis] == s[axis]]
        if len(parts) == len(shapes) and turned:
            changes = at.text.edited([e for k in turned for e in edits.behind(parts[k], ".T")])
            return Answer(reason, "transpose the one that has them in the other order", changes)
    return Answer(reason, "cut, pad or reshape them to the same sizes")


def stacked(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about tensors of different sizes that are stacked along a new axis."""
    shapes = [at.quantity(x).shape for x in tensors]
    reason = "stack joins tensors of one shape along a new axis, and these have the shapes "
    reason += f"{in_words([*map(str, dict.fromkeys(shapes))])}."
    are_sequences = not axis and len({s[1:] for s in shapes}) == 1 and all(shapes)
    for call in at.failed_calls("stack", least=1) if are_sequences else ():
        new = f"torch.nn.utils.rnn.pad_sequence({at.text.of(call.args[0])}, batch_first=True)"
        changes = at.text.edited(edits.instead(call, new))
        return Answer(reason, "pad the shorter ones with zeros; or join them end to end, with torch.cat", changes)
    return Answer(reason, "cut, pad or reshape them to one shape")


def ranks(at: Failure, axis: int, tensors: Sequence[int]) -> Answer:
    """Return the answer about a matrix and a vector that are joined."""
    shapes = [at.quantity(x).shape for x in tensors]
    first = shapes[0]
    reason = f"the tensors have the shapes {in_words([*map(str, shapes)])}: the number of axes must "
    reason += "be equal."
    for call in at.failed_calls(*_CATS, least=1):
        parts = elements(call.args[0])
        short = [k for k, shape in enumerate(shapes) if len(shape) == len(first) - 1]
        fits = [k for k in short if shapes[k] == first[:axis] + first[axis + 1 :]]
        if len(parts) == len(shapes) and short == fits and short:
            changes = at.text.edited([e for k in short for e in edits.behind(parts[k], f".unsqueeze({axis})")])
            return Answer(reason, "give the shorter one an axis of size 1", changes)
    return Answer(reason, "give the shorter ones an axis of size 1, with unsqueeze")


def numbers(at: Failure, *_: int) -> Answer:
    """Return the answer about numbers that are joined: they have no axis to join them along."""
    reason = "cat joins tensors along an axis that they have, and a number has none."
    changes = [e for c in at.failed_calls(*_CATS)[:1] for e in edits.renamed(c, "stack")]
    return Answer(reason, "stack them, along a new axis", at.text.edited(changes))


# Layers


def features(at: Failure, expected: int, size: int) -> Answer:
    """Return the answer about a recurrent layer whose input has other features."""
    name, kind = _layer(at)
    reason = f"{name} takes {expected} features at each step, and the last axis of its input has {size}."
    return Answer(reason, f"create the layer with {size} features", resized(at, kind, (expected,), (size,)))


def features_of_a_cell(at: Failure, size: int, expected: int) -> Answer:
    """Return the answer about a cell whose input has other features."""
    return features(at, expected, size)


def state(at: Failure, which: str, expected: Sequence[int], shape: Sequence[int]) -> Answer:
    """Return the answer about a first state of another shape."""
    name, _ = _layer(at)
    reason = (
        f"the state of {name} must have the shape {tuple(expected)} for this input, and has {tuple(shape)}: layers "
        "(twice as many in two directions), samples of the batch, numbers of the state."
    )
    if changes := _without_state(at):
        return Answer(reason, "leave the state out: it is 0 then", changes)
    return Answer(reason, "create the state for the batch at hand: a last batch may be smaller")


def state_of_a_cell(at: Failure, which: int, size: int, expected: int) -> Answer:
    """Return the answer about a first state of a cell that has another number of samples, or of numbers."""
    name, _ = _layer(at)
    reason = f"the state of {name} has the shape (samples of the batch, numbers of the state), and this one has {size} "
    reason += f"where {expected} are expected."
    changes = _without_state(at)
    return Answer(
        reason, "leave the state out: it is 0 then" if changes else "create the state with these sizes", changes
    )


def batch_of_a_cell(at: Failure, expected: int, size: int, which: int) -> Answer:
    """Return the answer about a first state of a cell for another batch."""
    return state_of_a_cell(at, which, size, expected)


def single_state(at: Failure, *_: int) -> Answer | None:
    """Return the answer about an LSTM that is called with its output alone as the state: it has a memory, too."""
    for call in at.failed_calls(least=2):
        state = call.args[1]
        if type(at.value(call.func)).__name__ == "LSTM" and is_tensor(at.value(state)):
            h = at.text.of(state)
            changes = at.text.edited(edits.instead(state, f"({h}, torch.zeros_like({h}))"))
            reason = f"the state of an LSTM is a pair, the output h and the memory c, and {h} is one tensor."
            return Answer(reason, "pass both", changes)
    return None


def _without_state(at: Failure) -> list[Change]:
    """Return the fix that leaves a state of zeros out."""
    for call in at.failed_calls(least=2):
        if _are_zeros(at, call.args[1]):
            return at.text.edited(edits.instead(call, f"{at.text.of(call.func)}({at.text.of(call.args[0])})"))
    return []


def _are_zeros(at: Failure, state: ast.expr) -> bool:
    """Return whether a state is made of zeros in its call, or where its name is assigned."""
    made = [e for n in elements(state) for e in (next(iter(Flow(at.text).of_name(n)), n),)]
    return all(called(m) == "zeros" for e in made for m in elements(e))


def _layer(at: Failure) -> tuple[str, str]:
    """Return the name and the class of the layer that failed."""
    for call in at.failed_calls():
        if is_module(layer := at.value(call.func)):
            return at.text.of(call.func), type(layer).__name__
    return "this layer", ""


def rank_of_a_batch(at: Failure, ranks: str, rank: int) -> Answer:
    """Return the answer about a BatchNorm for data of other axes."""
    reason = f"this layer takes {ranks} tensors, (samples, channels, …), and its input has {rank} axes."
    name = f"BatchNorm{max(1, rank - 2)}d"
    created = [c for c in calls(at.main.tree) if called(c).startswith("BatchNorm")]
    changes = at.main.edited(edits.renamed(created[0], name)) if len(created) == 1 and 2 <= rank <= 5 else []
    return Answer(reason, f"use {name}" if changes else "use the layer for these axes, or reshape the input", changes)


def channels_of_a_batch(at: Failure, _: str, size: int, expected: int) -> Answer:
    """Return the answer about a BatchNorm that was created for other channels."""
    reason = f"this layer was created for {expected} channels, and axis 1 of its input has the size {size}."
    changes = resized(at, "BatchNorm", (expected,), (size,))
    return Answer(reason, f"create the layer for {size} channels", changes)


def last_axes(at: Failure, expected: Sequence[int], _: str, shape: Sequence[int]) -> Answer:
    """Return the answer about a LayerNorm that was created for other sizes."""
    reason = f"this layer normalises the last axes, of sizes {tuple(expected)}, and its input has the shape "
    changes = resized(at, "LayerNorm", expected, shape[-1:]) if len(expected) == 1 else []
    return Answer(f"{reason}{tuple(shape)}.", "create the layer with the sizes of the last axes", changes)


def heads(at: Failure, size: int, count: int) -> Answer:
    """Return the answer about an attention whose heads do not share its numbers equally."""
    reason = f"each of the {count} heads gets {size}/{count} of the {size} numbers, which must be an integer."
    fits = [n for n in range(1, size + 1) if size % n == 0]
    nearest = min(fits, key=lambda n: (abs(n - count), n))
    for call in at.text.calls(*_ATTENTION):
        option = keyword(call, "num_heads", "nhead")
        if (node := option.value if option else next(iter(call.args[1:2]), None)) is not None:
            changes = at.text.edited(edits.instead(node, str(nearest)))
            return Answer(reason, f"use a number of heads that divides {size}", changes)
    return Answer(reason, f"use a number of heads that divides {size}, such as {nearest}")


def one_hot(at: Failure, classes: Sequence[int], count: int) -> Answer:
    """Return the answer about a class that has no column."""
    reason = f"the classes go to {max(classes)}, and {count} columns are those of the classes 0 to {count - 1}."
    for call in at.failed_calls("one_hot", least=1):
        if min(classes) == 1 and max(classes) == count:
            changes = at.text.edited(edits.behind(call.args[0], " - 1"))
            return Answer(reason, "number the classes from 0", changes)
        option = keyword(call, "num_classes")
        if (node := option.value if option else next(iter(call.args[1:]), None)) is not None:
            changes = at.text.edited(edits.instead(node, str(max(classes) + 1)))
            return Answer(reason, "make a column for each class", changes)
    return Answer(reason, "make a column for each class, or number the classes from 0")


def resized(at: Failure, kind: str, sizes: Sequence[int], new: Sequence[int]) -> list[Change]:
    """Return the fix that gives the layer of a kind that is created with some sizes other ones."""
    text = at.main
    for call in [c for c in calls(text.tree) if kind and called(c).startswith(kind)]:
        nodes = [_number(text, a) for a in call.args[: len(sizes)]]
        if [integer(n) for n in nodes] == [*sizes]:
            pairs = [(n, b) for n, a, b in zip(nodes, sizes, new, strict=True) if a != b]
            return text.edited([e for node, size in pairs for e in edits.instead(node, str(size))])
    return []


def _number(text: Text, node: ast.expr) -> ast.expr:
    """Return where the number of an argument is written: there, or in the only assignment to its name."""
    values = Flow(text).of_name(node)
    return values[0] if len(values) == 1 else node
