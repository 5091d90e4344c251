"""Errors of `load_state_dict`: names or shapes that are not those of the module, and what is no state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure, is_module
from gradcli.script.errors.sizes import resized
from gradcli.script.errors.source import Change
from gradcli.text.wrapping import in_words

_MOST_NAMES = 3  # of parameters that are listed


def loaded(at: Failure, own: Mapping[str, Any], saved: Mapping[str, Any]) -> Answer:
    """Return the answer about a state that is not one of the module.

    `own` has the shape and the class of the layer of each parameter of the module, `saved` the shape of each of what is
    loaded, or the names of what it holds.
    """
    call = next(iter(at.failed_calls("load_state_dict", least=1)), None)
    code = at.text.of(call.args[0]) if call is not None else "state"

    def instead(new: str) -> list[Change]:
        return at.text.edited(edits.instead(call.args[0], new)) if call is not None else []

    for key, value in saved.items():
        if isinstance(value, list) and {*own} <= {*value}:
            reason = f"the state is one of several entries of what was saved: that of `{key}`."
            return Answer(reason, "load that entry", instead(f'{code}["{key}"]'))
    if prefix := _prefix(own, saved):
        reason = f"the saved names begin with `{prefix}`, as in `{next(iter(saved))}`, and those of the module do not."
        new = f'{{k.removeprefix("{prefix}"): x for k, x in {code}.items()}}'
        return Answer(reason, "remove that from each name", instead(new))
    if prefix := _prefix(saved, own):
        reason = f"the names of the module begin with `{prefix}`, as in `{next(iter(own))}`, and the saved ones do not."
        new = f'{{"{prefix}" + k: x for k, x in {code}.items()}}'
        return Answer(reason, "add that to each name", instead(new))
    if other := [n for n in own if n in saved and own[n][0] != saved[n]]:
        shape, kind = own[other[0]]
        return _of_other_sizes(at, other[0], shape, kind, saved[other[0]])
    absent, unexpected = [n for n in own if n not in saved], [n for n in saved if n not in own]
    said = [f"also has {_listed(absent)}"] if absent else []
    said += [f"has no {_listed(unexpected)}"] if unexpected else []
    reason = f"the names that are loaded must be those of the module, and the module {' and '.join(said)}."
    changes = at.text.edited(edits.appended(call, "strict=False", at.text)) if call is not None else []
    fix = "create the module as it was saved; or load the names that both have, and leave the rest as it is"
    return Answer(reason, fix, changes)


def _prefix(names: Any, longer: Any) -> str:
    """Return what each of some names has before it among others, as `DataParallel` writes it; "" for nothing."""
    prefixes = {k.removesuffix(n) for k, n in zip(longer, names, strict=False)}
    (prefix, *more) = prefixes or {""}
    return "" if more or [*longer] != [prefix + n for n in names] else prefix


def _of_other_sizes(at: Failure, name: str, shape: Sequence[int], kind: str, saved: Sequence[int]) -> Answer:
    """Return the answer about a parameter of another shape, and the sizes of its layer where they follow from it."""
    reason = (
        f"{name} has the shape {tuple(shape)} in the module, and {tuple(saved)} in what is loaded: that was saved from "
        "layers of other sizes."
    )
    if kind == "Linear" or kind.startswith("Conv"):  # their weights are (out, in, …)
        shape, saved = shape[1::-1], saved[1::-1]
    changes = resized(at, kind, shape, saved) if len(shape) == len(saved) == 2 else []
    return Answer(reason, "create the layers with the sizes that were saved", changes)


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return in_words([*names[:_MOST_NAMES], *more])


def no_state(at: Failure, *_: Any) -> Answer | None:
    """Return the answer about a module, or the name of a file, in place of a state."""
    for call in at.failed_calls("load_state_dict", least=1):
        value, code = at.value(call.args[0]), at.text.of(call.args[0])
        if is_module(value):
            changes = at.text.edited(edits.behind(call.args[0], ".state_dict()"))
            return Answer(f"load_state_dict takes a state, and {code} is a module.", "pass its state", changes)
        if isinstance(value, str):
            changes = at.text.edited(edits.wrapped(call.args[0], "torch.load("))
            return Answer("load_state_dict takes a state, and not the name of a file.", "load the file first", changes)
    return None
