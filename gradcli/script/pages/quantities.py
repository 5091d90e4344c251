"""The quantities that a call starts from: parameters, leaves, inputs and constants, and why a constant is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.explain.results import Array, Named
from gradcli.explain.sections import Block, Grid, Math, Name, Text, Value
from gradcli.pytorch.cuts import How, Kind
from gradcli.pytorch.nn.module import Parameter
from gradcli.script.errors import updates
from gradcli.script.errors.source import Text as Source
from gradcli.script.scene import CallScene
from gradcli.wrapping import in_words

WHOLE = 12  # elements of an array that is shown whole
_ROLES = {"inputs": "input", "constants": "constant", "parameters": "parameter", "leaves": "leaf"}
_FEW = 6  # numbers that are listed in a sentence
_FIRST = 3  # entries of a large array
_MOST = 16  # quantities that are listed one by one


def quantities(scene: CallScene, at: Named) -> list[Block]:
    """Return one quantity a row, with its role and its shape; nothing where the numbers are few.

    Of many, those of one module are one row.
    """
    if len(at) < 2 or sum(a.size for a in at.values()) <= _FEW:
        return []
    roles: dict[str, list[str]] = {role: [] for role in _ROLES}
    for name in at:
        roles[_role(scene, name)].append(name)
    rows: list[tuple[Math, ...]] = []
    for role, names in roles.items():
        groups = {name: [name] for name in names} if len(at) <= _MOST else by_module(names)
        for k, (label, members) in enumerate(groups.items()):
            title = role if len(names) > 1 else _ROLES[role]
            rows.append((title if not k else "", *_quantity(label, [at[name] for name in members])))
    cut = rows[:_MOST]
    more = [Text((f"… {len(rows) - len(cut):,} more rows",))] if len(rows) > len(cut) else []
    return [Grid(("", "name", "shape", "value"), tuple(cut)), *more]


def _quantity(label: str, arrays: Sequence[Array]) -> tuple[Math, Math, Math]:
    """Return the name, the shape and the value of an array; of several, how many they are."""
    if len(arrays) > 1:
        return f"{label}.…", f"{len(arrays)} arrays", f"{sum(a.size for a in arrays):,} numbers"
    (a,) = arrays
    return Name(label), "×".join(map(str, a.shape)) or "scalar", _value(a)


def by_module(names: Sequence[str]) -> dict[str, list[str]]:
    """Return names by the module that they belong to, as far down as there are not many of these.

    >>> by_module([f"net.{k}.{name}" for k in (0, 1) for name in ("weight", "bias")])
    {'net.0': ['net.0.weight', 'net.0.bias'], 'net.1': ['net.1.weight', 'net.1.bias']}
    """
    result: dict[str, list[str]] = {}
    for depth in range(max(name.count(".") for name in names), 0, -1) if names else ():
        result = {}
        for name in names:
            parts = name.split(".")
            result.setdefault(".".join(parts[: min(depth, max(1, len(parts) - 1))]), []).append(name)
        if len(result) <= _MOST:
            break
    return result


def _value(a: Array) -> Math:
    """Return an array, or the first entries of a large one."""
    return Value(a) if a.size <= WHOLE else _first_entries(a)


def _first_entries(a: Array) -> str:
    """Return the first entries of an array: [[1, 2, 3, …], …].

    >>> import numpy as np
    >>> _first_entries(np.arange(20.).reshape(5, 4))
    '[[0, 1, 2, …], …]'
    """
    if not a.ndim:
        return f"{a:.6g}"
    inner = [_first_entries(part) for part in a[: _FIRST if a.ndim == 1 else 1]]
    return f"[{', '.join(inner)}{', …' * (len(a) > len(inner))}]"


def constants(scene: CallScene) -> Iterator[str]:
    """Yield which inputs the script has detached or frozen, with the line and the reason."""
    reasons: dict[str, list[str]] = {}
    for name in scene.recorded.graph.inputs:
        if reason := constant(scene, name):
            reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield f"{in_words(names)} {'is a constant' if len(names) == 1 else 'are constants'}: {reason}"


def constant(scene: CallScene, name: str) -> str:
    """Return why an input is a constant, with the line; "" for data, and for what gets a gradient."""
    x: Any = scene.recorded.tensors.get(name)
    if x is None or name in scene.recorded.wrt:
        return ""
    if x._detached is not None:
        return f"{_cut(x._detached.hows[0])} in {scene.where(x._detached.line)}"
    if x._frozen is not None:
        return f"frozen in {scene.where(x._frozen)}, requires_grad is False"
    return "frozen, requires_grad is False" if isinstance(x, Parameter) and not x.requires_grad else ""


def earlier_names(scene: CallScene) -> Iterator[str]:
    """Yield which leaf had a name before the script gave that to another tensor, and what keeps the leaf."""
    for name, before in scene.recorded.earlier.items():
        x = scene.names.tensors[before]
        said = f"two tensors are called {before}: {name} is the leaf that had the name before"
        line = x._fn.line if x._fn is not None else None
        if line is None:
            yield said
            continue
        text = Source(scene.script.name, scene.script.source, line)
        changes = updates.kept_leaves(text) if scene.file(line) == scene.script.name else []
        kept = f"; `{' '.join(changes[0].shown())}` keeps the leaf" if len(changes) == 1 else ""
        yield f"{said} {scene.code(line)} gave it to a new tensor{kept}"


def _cut(how: How) -> str:
    """Return how a tensor was cut from the graph, in words.

    >>> _cut(How(Kind.DETACHED, ".detach()")), _cut(How(Kind.UNRECORDED, "no_grad()"))
    ('detached', 'computed under no_grad()')
    """
    match how.kind:
        case Kind.DETACHED:
            return "detached" if how.code == ".detach()" else f"read through {how.code}"
        case Kind.UNRECORDED:
            return f"computed under {how.code}"
        case Kind.COPIED:
            return f"copied by {how.call}"
    return f"{how}"


def _role(scene: CallScene, name: str) -> str:
    if name in scene.recorded.wrt or name in scene.recorded.leaves:
        return "parameters" if isinstance(scene.recorded.tensors.get(name), Parameter) else "leaves"
    return "constants" if constant(scene, name) else "inputs"
