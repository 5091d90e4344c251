"""The seeds of a run: cotangents, what `--v` says for each `backward` call, and the tangent, what `--u` says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gradcli.cli.inputs.points import example_of
from gradcli.data.arrays import array_of, assigned_array
from gradcli.errors import InputError, Notes, nearest, option_error
from gradcli.files import read_stdin
from gradcli.graph.array import Array, Named, json_array
from gradcli.graph.names import element_names, normal
from gradcli.graph.node import Node
from gradcli.graph.shapes import inside
from gradcli.lang.values import Assignment, Cotangent, read_cotangent, read_in_order, read_point
from gradcli.process.platform import quote

Outputs = Mapping[str, Node]

MAX_CALLS = 100_000
_DIGITS = 12  # of an index in the outputs
MAX_JSON_BYTES = 2**28
_IMPLICIT = "grad can be implicitly created only for scalar outputs"


def implicit(outputs: Outputs) -> Named:
    """Return the cotangent of `y.backward()`: 1, which only a scalar output has.

    Errors: `InputError` with PyTorch's words for anything else.
    """
    name, first = next(iter(outputs.items()))
    if len(outputs) == 1 and first.size == 1:
        return {name: np.ones(first.shape)}
    what = f"`{name}` has {first.size} elements" if len(outputs) == 1 else f"there are {len(outputs)} outputs"
    raise InputError(
        f'{what}, and no v: PyTorch says\n    "{_IMPLICIT}"',
        hint="Only a scalar L has a gradient: v says which weighted sum of outputs L is.\n"
        f"  {_example(outputs)} gives each its weight, --v onehot:0 picks one: the first row of J.\n"
        "  --v ones is L = their sum. That is a choice too, and gradcli leaves it to you.",
    )


def explicit(cotangent: Cotangent, outputs: Outputs, strict: bool, notes: Notes) -> list[Named]:
    """Return the calls of one `--v`: one, or one for each entry of a v that is longer than a scalar output.

    Errors: `InputError` when v does not fit the outputs; with `strict`, also for the longer v.
    """
    try:
        if cotangent.keyword == "ones":
            return [{name: np.ones(y.shape) for name, y in outputs.items()}]
        if cotangent.keyword == "onehot":
            return [_onehot(cotangent.target, outputs)]
        if cotangent.named:
            return [_by_name(cotangent.named, outputs, "v", "output")]
        return _in_order([array_of(v) for v in cotangent.values], outputs, strict, notes)
    except InputError as error:
        raise error.at(cotangent.span) from None


def _zeros(outputs: Outputs) -> Named:
    return {name: np.zeros(y.shape) for name, y in outputs.items()}


def _onehot(target: str, outputs: Outputs) -> Named:
    """Return zeros with a 1 at an element, by name or counted through all outputs."""
    names = [(name, i, e) for name, y in outputs.items() for i, e in enumerate(element_names(name, y.shape))]
    if re.fullmatch(r"-?[0-9]+", target):
        k = int(target) if len(target) <= _DIGITS else len(names)
        if not -len(names) <= k < len(names):
            raise InputError(f"onehot:{target}: outputs are counted from 0 to {len(names) - 1}")
        name, i, _ = names[k]
    else:
        wanted = normal(target.replace(" ", ""))
        result = [(n, i) for n, i, e in names if e == wanted]
        if not result:
            whole = f"`{wanted}` has elements: onehot:{names[0][2]}" if wanted in outputs else None
            hint = whole or nearest(wanted, [e for *_, e in names], "elements")
            raise InputError(f"onehot:{wanted[:40]} names no element of the outputs", hint=hint)
        name, i = result[0]
    call = _zeros(outputs)
    call[name].reshape(-1)[i] = 1
    return call


def _by_name(named: Iterable[Assignment], nodes: Mapping[str, Node], letter: str, what: str) -> Named:
    """Return the values under the names of nodes, or in their elements, and 0 for the rest."""
    seeds = _zeros(nodes)
    for a in (a for a in named if a.name in seeds or not a.optional):
        if a.name not in seeds:
            raise InputError(f"`{a.name}` is not an {what} here", a.span, nearest(a.name, seeds, f"{what}s"))
        value, shape = assigned_array(a), seeds[a.name].shape
        if a.key is None and value.shape != shape:
            count = f"{a.name} has {math.prod(shape)} elements"
            raise InputError(_mismatch(value, a.name, shape, letter), a.span, count)
        if a.key is None:
            seeds[a.name] = value.copy()
        elif value.shape or not inside(a.key, shape):
            raise InputError(f"`{a.span.text}` is not an element of `{a.name}`, of shape {shape}", a.span)
        else:
            seeds[a.name][a.key] = value
    return seeds


def _split(numbers: Array, nodes: Mapping[str, Node]) -> Named:
    """Return numbers, element by element, as the arrays of nodes."""
    parts = np.split(numbers, np.cumsum([x.size for x in nodes.values()])[:-1])
    return {name: part.reshape(x.shape) for (name, x), part in zip(nodes.items(), parts, strict=True)}


def _mismatch(seed: Array, name: str, shape: tuple[int, ...], letter: str = "v") -> str:
    return f"shape {seed.shape} of {letter} against shape {shape} of {name}"


def _in_order(values: list[Array], outputs: Outputs, strict: bool, notes: Notes) -> list[Named]:
    """Return the calls for values without names: as the only output, element by element, or output by output."""
    shapes = [y.shape for y in outputs.values()]
    if len(shapes) > 1 and [v.shape for v in values] == shapes:
        return [dict(zip(outputs, values, strict=True))]
    if len(values) > 1 and len({v.shape for v in values}) > 1:
        raise InputError("the values of v have different shapes", hint=_wanted(outputs))
    v = values[0] if len(values) == 1 else np.stack(values)
    if len(outputs) == 1:
        return _for_one(v, *next(iter(outputs.items())), strict, notes)
    total = sum(y.size for y in outputs.values())
    if v.shape != (total,):
        message = f"shape {v.shape} of v against {len(outputs)} outputs with {total} elements"
        raise InputError(message, hint=_wanted(outputs))
    return [_split(v, outputs)]


def _wanted(outputs: Outputs) -> str:
    names = [e for name, y in outputs.items() for e in element_names(name, y.shape)[:5]]
    return f"v has one number for each of {', '.join(names[:4])}{', …' if len(names) > 4 else ''}: {_example(outputs)}"


def _example(outputs: Outputs) -> str:
    """Return a `--v` that fits the outputs, to be typed with other numbers."""
    shapes = [y.shape for y in outputs.values()]
    size = sum(y.size for y in outputs.values())
    if len(shapes) > 1 or (size > 6 and len(shapes[0]) == 1):
        ones = ",".join("1" * min(size, 3)) + ",…" * (size > 3)
        return f"--v {ones}" if len(shapes) > 1 else f"--v [{ones}]"
    if size > 6:
        return "--v @v.npy"
    return f"--v {json.dumps(np.ones(shapes[0], int).tolist(), separators=(',', ':'))}"


def _for_one(v: Array, name: str, output: Node, strict: bool, notes: Notes) -> list[Named]:
    if v.shape == output.shape:
        return [{name: v}]
    longer = not output.shape and v.size and v.size <= MAX_CALLS
    if not longer or strict:
        size, wanted = (f"torch.Size({list(shape)})" for shape in (v.shape, output.shape))
        says = f"Mismatch in shape: grad_output[0] has a shape of {size} and output[0] has a shape of {wanted}"
        hint = f'PyTorch says "{says}"\n  v has the shape of {name}: {_example({name: output})}'
        hint += "\n  without --strict, gradcli makes one call for each entry" * bool(longer)
        raise InputError(_mismatch(v, name, output.shape), hint=hint)
    if v.size == 1:
        return [{name: v.reshape(())}]
    calls = f"v has shape {v.shape} and {name} is a scalar: one backward call for each entry, accumulated."
    one = "One call with such a v: an error in today's PyTorch, as with `--strict`; old versions made these calls."
    notes.add("note", f"{calls}\n  {one}")
    return [{name: np.asarray(entry)} for entry in v.reshape(-1)]


def from_json(text: str, outputs: Outputs) -> list[Named]:
    """Return the cotangents in the JSON lines of another `gradcli backward`: its `grad` by name, a call a line.

    Errors: `InputError` for what is no such JSON, and when no gradient belongs to an output.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        hint = "for example: gradcli backward SECOND -f json | gradcli backward FIRST --v -"
        raise option_error("--v", "there is no JSON on standard input for `--v -`", hint, "-")
    return [_from_line(line, number, outputs) for number, line in enumerate(lines, 1)]


def _from_line(line: str, number: int, outputs: Outputs) -> Named:
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        result = None
    items = result.get("grad") if isinstance(result, dict) else None
    if not isinstance(items, dict):
        wrong = f"--v -: line {number} of standard input is not the JSON of another `gradcli backward`"
        none = "it has no `grad` with a gradient for each name"
        raise option_error("--v", wrong, none if isinstance(result, dict) else "it is not a JSON object", "-")
    call = _zeros(outputs)
    if not set(items) & set(call):
        message = f"none of the gradients on standard input ({', '.join([*items][:6])}) is an output here"
        raise InputError(message, hint=nearest("", call, "outputs"))
    for name in filter(items.__contains__, call):
        array, shape = json_array(items[name]), call[name].shape
        if array is None:
            message = f"the gradient of `{name}` on standard input is not an array of numbers"
            raise InputError(message, hint="where it is a formula, the first command needs a point: --at")
        if array.shape != shape:
            raise InputError(_mismatch(array, name, shape))
        call[name] = array
    return call


def read_tangent(leaves: Mapping[str, Node], options: Sequence[str], notes: Notes) -> Named:
    """Return the tangent of each leaf: what `--u` gives, by name or in order, and 0 for the rest.

    Without it, a single scalar leaf has 1.

    Errors: `InputError` for names that are no leaves, for shapes that do not fit, and for several leaves without --u.
    """
    example = quote(example_of({name: x.shape for name, x in leaves.items()}))
    if len(options) > 1:
        whole = f"one tangent has all inputs in it: --u {quote(','.join(options))}"
        raise option_error("--u", "--u is given twice", whole)
    if not options and sum(x.size for x in leaves.values()) != 1:
        message = "no tangent is given: J·u needs a u, which says how fast each input changes"
        raise InputError(message, hint=f"for example --u {example}; an input that is left out has 0")
    if not options or options[0].strip() == "ones":
        return {name: np.ones(x.shape) for name, x in leaves.items()}
    if (listed := read_in_order(options[0], "--u")) is not None:
        values = [array_of(v) for v in listed]
        if [v.shape for v in values] == [x.shape for x in leaves.values()]:
            return dict(zip(leaves, values, strict=True))
        numbers, total = np.concatenate([v.reshape(-1) for v in values]), sum(x.size for x in leaves.values())
        if len(numbers) != total or max(v.ndim for v in values) > (len(values) == 1):
            given = f"shape {values[0].shape}" if len(values) == 1 else f"{len(values)} values"
            message = f"{given} of u against the inputs {', '.join(leaves)} with {total} elements"
            raise option_error("--u", message, f"for example --u {example}")
        return _split(numbers, leaves)
    said = read_point(options[0], "--u")
    tangent = _by_name(said, leaves, "u", "input")
    if missing := [name for name in leaves if name not in {a.name for a in said}]:
        notes.add("note", f"{', '.join(missing[:6])}{', …' * (len(missing) > 6)}: not in `--u`, so the tangent is 0")
    return tangent


def in_letters(cotangents: Sequence[str], outputs: Outputs) -> bool:
    """Return whether formulas in v are wanted beside its numbers, as in `--v v=1,10`."""
    return len(cotangents) == 1 and _numbers(cotangents[0], outputs) != cotangents[0]


def _numbers(text: str, outputs: Outputs) -> str:
    """Return the text after `v=`, if no output has that name."""
    return text if "v" in outputs else re.sub(r"^\s*v\s*=", "", text)


def _letters(outputs: Outputs, count: int | None) -> Named:
    """Return the cotangents as letters, for formulas.

    Errors: `InputError` where there are points, which need numbers.
    """
    if count != 0:
        hint = "--v v=1,10 has both; without --at, the gradients are formulas in v"
        raise option_error("--v", "--v v is a letter, and a point needs numbers", hint, "v")
    from gradcli.pages.formulas import letters

    return letters(outputs)


def read_calls(
    outputs: Outputs, count: int | None, cotangents: Sequence[str], strict: bool, notes: Notes
) -> list[list[Named]]:
    """Return for each of `count` points the cotangents of its `backward` calls; without a point, those of the formula.

    A count of None means the points of a file, which all get the same.
    """
    points = max(1, count or 0)
    calls: list[list[Named]] = [[] for _ in range(points)]
    if not cotangents:
        return [[implicit(outputs)]] * points
    for text in cotangents:
        if text.strip() == "v" and "v" not in outputs:  # formulas in v; an output of that name would have a value
            calls[0].append(_letters(outputs, count))
            continue
        said = read_cotangent(_numbers(text, outputs))
        if said.keyword != "stdin":
            result = [explicit(said, outputs, strict, notes)] * points
        else:
            lines = from_json(read_stdin(MAX_JSON_BYTES), outputs)
            known = f"standard input has {len(lines)} lines of gradients"
            if count is None and len(lines) > 1:
                hint = f"cotangents that differ stand in the file of points, as `{next(iter(outputs))}.v`"
                message = f"{known}; beside --points, --v - is one for all points"
                raise InputError(message, hint=hint, options=("--points", "--v"), text="-")
            if len(lines) not in (1, points):
                raise InputError(f"{known} for {points} point{'s' * (points != 1)}")
            result = [[line] for line in (lines * points if len(lines) == 1 else lines)]
        for mine, new in zip(calls, result, strict=True):
            mine.extend(new)
    return calls
