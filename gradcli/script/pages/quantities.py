"""The quantities that a call starts from: parameters, leaves, inputs and constants, and why a constant is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.notation.nodes import Notation
from gradcli.pages.results import Array, Named
from gradcli.pages.sections import Block, Grid, Math, Name, Text, Value
from gradcli.record.numbers import size_text
from gradcli.record.record import Cut
from gradcli.script.errors import updates
from gradcli.script.errors.source import Text as Source
from gradcli.script.known import line_at
from gradcli.script.scene import CallScene
from gradcli.text.wrapping import in_words

WHOLE = 12  # elements of an array that is shown whole
_ROLES = {"inputs": "input", "constants": "constant", "parameters": "parameter", "leaves": "leaf"}
_ROLES |= {"dropout masks": "dropout mask"}
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
            shown = label if len(members) == 1 else all_of(label, members)
            rows.append((title if not k else "", *_quantity(shown, [at[name] for name in members])))
    cut = rows[:_MOST]
    more = [Text((f"… {len(rows) - len(cut):,} more rows",))] if len(rows) > len(cut) else []
    return [Grid(("", "name", "shape", "value"), tuple(cut)), *more]


def _quantity(label: str, arrays: Sequence[Array]) -> tuple[Math, Math, Math]:
    """Return the name, the shape and the value of an array; of several, how many they are."""
    if len(arrays) > 1:
        return label, f"{len(arrays)} arrays", f"{sum(a.size for a in arrays):,} numbers"
    (a,) = arrays
    return Name(label), size_text(a.shape), Value(a) if a.size <= WHOLE else _first_entries(a)


def by_module(names: Sequence[str]) -> dict[str, list[str]]:
    """Return names by the module that they belong to, as far down as there are not many of these.

    >>> by_module([f"net.{k}.{name}" for k in (0, 1) for name in ("weight", "bias")])
    {'net.0': ['net.0.weight', 'net.0.bias'], 'net.1': ['net.1.weight', 'net.1.bias']}

    Elements of one list are together where there are many.

    >>> [*by_module(["w", *(f"x[{k}]" for k in range(20))])]
    ['w', 'x']
    """
    result = {name: [name] for name in names}
    for depth in range(max(name.count(".") for name in names), 0, -1) if names else ():
        result = {}
        for name in names:
            parts = name.split(".")
            result.setdefault(".".join(parts[: min(depth, max(1, len(parts) - 1))]), []).append(name)
        if len(result) <= _MOST:
            break
    if len(result) > _MOST:
        lists: dict[str, list[str]] = {}
        for label, members in result.items():
            lists.setdefault(label.partition("[")[0], []).extend(members)
        return lists
    return result


def all_of(label: str, members: Sequence[str]) -> str:
    """Return the name of several arrays: net.0.… of a module, xs[…] of a list."""
    return f"{label}[…]" if all(name.startswith(f"{label}[") for name in members) else f"{label}.…"


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
    """Yield which inputs, and which numbers in formulas, are detached or frozen, with the line and the reason."""
    reasons: dict[str, list[str]] = {}
    for name in scene.recorded.graph.inputs:
        if reason := constant(scene, name):
            reasons.setdefault(reason, []).append(name)
    nodes, numbers = {*scene.recorded.graph.nodes}, dict[str, dict[str, None]]()
    for q, node in scene.recorded.literals.items():
        if node in nodes and (reason := _cut_in(scene, q)):
            numbers.setdefault(reason, {})[Notation({}).expression(node)] = None
    for reason, texts in numbers.items():
        more = [f"{len(texts) - _FEW:,} more numbers"] if len(texts) > _FEW else []
        reasons.setdefault(reason, []).extend([*texts][:_FEW] + more)
    for reason, names in reasons.items():
        yield f"{in_words(names)} {'is a constant' if len(names) == 1 else 'are constants'}: {reason}"


def constant(scene: CallScene, name: str) -> str:
    """Return why an input is a constant, with the line; "" for data, and for what gets a gradient."""
    recorded = scene.recorded
    x = recorded.quantities.get(name)
    if x is None or name in recorded.wrt:
        return ""
    if reason := _cut_in(scene, x.id):
        return reason
    if x.why_not != "frozen":
        return ""
    return f"frozen{f' in {scene.where(line_at(x.site))}' if x.site.line else ''}, requires_grad is False"


def _cut_in(scene: CallScene, q: int) -> str:
    """Return how and where a quantity was cut from the graph; "" for one that was not."""
    cut = next((e for e in scene.recorded.record.events if isinstance(e, Cut) and e.result == q), None)
    return f"{_cut(cut)} in {scene.where(line_at(cut.site))}" if cut is not None else ""


def earlier_names(scene: CallScene) -> Iterator[str]:
    """Yield which leaf had a name before the script gave that to another tensor, and what keeps the leaf."""
    record = scene.recorded.record
    now = {name: q.id for q in record.quantities for _, name in q.names}  # the last that the script has given it
    for name, before in scene.recorded.earlier.items():
        said = f"two tensors are called {before}: {name} is the leaf that had the name before"
        producer = record.producers.get(now.get(before, -1))
        if producer is None:
            yield said
            continue
        line = line_at(producer.site)
        text = Source(scene.script.name, scene.script.source, line)
        changes = updates.kept_leaves(text) if scene.file(line) == scene.script.name else []
        kept = f"; `{' '.join(changes[0].shown())}` keeps the leaf" if len(changes) == 1 else ""
        yield f"{said} {scene.code(line)} gave it to a new tensor{kept}"


def _cut(cut: Cut) -> str:
    """Return how a tensor was cut from the graph, in words.

    >>> _cut(Cut(kind="DETACHED", code=".detach()")), _cut(Cut(kind="UNRECORDED", code="no_grad()"))
    ('detached', 'computed under no_grad()')
    """
    match cut.kind:
        case "DETACHED":
            return "detached" if cut.code == ".detach()" else f"read through {cut.code}"
        case "UNRECORDED":
            return f"drawn by {cut.code}" if cut.code == ".sample()" else f"computed under {cut.code}"
        case "FORWARD":
            return f"computed in {cut.code}, which records nothing,"
        case "COPIED":
            return f"copied by {cut.call}"
    return f"{cut.how}; computed"


def _role(scene: CallScene, name: str) -> str:
    known = scene.recorded.quantities.get(name)
    if name in scene.recorded.wrt or name in scene.recorded.leaves:
        return "parameters" if known is not None and known.role == "parameter" else "leaves"
    if known is not None and known.role == "mask":
        return "dropout masks"
    return "constants" if constant(scene, name) else "inputs"
