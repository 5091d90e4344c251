"""Slips in right derivations: claims that are wrong, each with the slips that made it; nothing of gradcli is read.

A derivation is a list of local derivatives.  Of scalars SymPy's `diff` writes them, edge by edge; of arrays they stand
in `spoiled_systems.txt`, line by line; finite differences confirm both.  A slip changes one of them, or the same one at
all equal places, and the chain rule goes on as if it were right.  Then the claim is written in another way.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sympy
from slips_of_arrays import ArrayDerivation
from slips_of_scalars import ScalarDerivation, Slip, text

LONGEST = 400  # characters of a claim


class Claim(NamedTuple):
    """A claim about a system, the slips that made it, how many (equal ones are one), and how it is written."""

    name: str
    system: str
    shapes: Mapping[str, tuple[int, ...]]
    text: str
    slips: tuple[Slip, ...]
    count: int
    guise: str
    derivation: ScalarDerivation | ArrayDerivation
    values: np.ndarray
    renamed: Mapping[str, str]


def _shape(sizes: str) -> tuple[int, ...]:
    return tuple(map(int, sizes.split("x"))) if sizes else ()


@cache
def derivations() -> dict[str, list[ScalarDerivation | ArrayDerivation]]:
    """Return the derivations of each system by its name."""
    _, *blocks = Path(__file__).with_name("spoiled_systems.txt").read_text("utf-8").strip().split("\n\n")
    found: dict[str, list[ScalarDerivation | ArrayDerivation]] = {}
    for block in blocks:
        name, *lines = block.splitlines()
        found[name.removeprefix("# ")] = [*_read(name.removeprefix("# "), lines)]
    return found


def _read(name: str, lines: list[str]) -> Iterator[ScalarDerivation | ArrayDerivation]:
    if not name.startswith("matrices"):
        system, lefts = lines
        for left in lefts.split():
            of, by = re.fullmatch(r"d(.+)/d(.+)", left).groups()  # type: ignore[union-attr]
            arrays: dict[str, int] = {}
            assigned = set(re.findall(r"(\w+)\[[^]]+\]\s*=[^=]", system))
            d = ScalarDerivation(system, of, by, {})
            for node in d.named.values():
                if (m := re.fullmatch(r"(\w+)\[(\d+)\]", node.name)) and m[1] not in assigned:
                    arrays[m[1]] = max(arrays.get(m[1], 0), int(m[2]) + 1)
            yield ScalarDerivation(system, of, by, {a: (n,) for a, n in arrays.items()})
        return
    shapes, system, left, *derivation = lines
    sizes = (part.partition("=") for part in shapes.split())
    steps = tuple((a.strip(), b.strip()) for a, _, b in (line.partition("=") for line in derivation))
    yield ArrayDerivation(system, {n: _shape(s) for n, _, s in sizes}, left, steps)


def differ(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether values differ plainly, where both are finite."""
    known = np.isfinite(a) & np.isfinite(b)
    return bool(known.any()) and not np.allclose(a[known], b[known], rtol=1e-6, atol=1e-9)


def right_claims(count: int, seed: int) -> Iterator[Claim]:
    """Yield right claims in many guises."""
    rng = random.Random(seed)
    for _, d in _turns(rng, count):
        yield _claim(d, rng, [], 0)


def wrong_claims(count: int, slips: int, seed: int) -> Iterator[Claim]:
    """Yield claims with one slip, or two, that are wrong at random points; kinds take turns."""
    rng = random.Random(seed)
    made, seen = 0, set()
    while made < count:
        _, d = next(_turns(rng, 1))
        edits = _drawn(d, rng, slips)
        if edits is None:
            continue
        values = d.numbers(d.derivative(edits))
        right = d.numbers(d.derivative())
        if values is None or not np.isfinite(values).any() or not differ(values, right):
            continue
        claim = _claim(d, rng, edits, slips)
        if (claim.system, claim.text) in seen or len(claim.text) > LONGEST:
            continue
        seen.add((claim.system, claim.text))
        made += 1
        yield claim


def _turns(rng: random.Random, count: int) -> Iterator[tuple[str, Any]]:
    names = list(derivations())
    for _ in range(count):
        name = rng.choice(names)
        yield name, rng.choice(derivations()[name])


@cache
def kinds_of(d: ScalarDerivation | ArrayDerivation) -> dict[str, list[Any]]:
    kinds: dict[str, list[Any]] = {}
    for kind, edits in d.singles:
        kinds.setdefault(kind, []).append(edits)
    return kinds


def _drawn(d: Any, rng: random.Random, slips: int) -> Any:
    """Return the edits of one slip or of two that do not undo each other, or None."""
    kinds = kinds_of(d)
    parts = [rng.choice(kinds[rng.choice(sorted(kinds))]) for _ in range(slips)]
    if slips == 1:
        return parts[0]
    both = {**parts[0], **parts[1]} if isinstance(d, ScalarDerivation) else parts[0] + parts[1]
    places = both if isinstance(d, ScalarDerivation) else {(e.line, e.part) for e in both}
    if len(places) < sum(map(len, parts)):
        return None
    values = [d.numbers(d.derivative(edits)) for edits in (both, *parts)]
    if any(v is None for v in values) or not all(differ(values[0], v) for v in values[1:]):
        return None
    return both


def _claim(d: Any, rng: random.Random, edits: Any, count: int) -> Claim:
    formula = d.derivative(edits)
    name = next(name for name, ds in derivations().items() if d in ds)
    values = d.numbers(formula)
    ways = d.guises(formula)
    guise = rng.choice(list(ways))
    written = ways[guise]()
    again = d.numbers(written)
    if again is None or differ(values, again):
        guise, written = "as composed", formula
    system, left = d.system, d.left
    said = text(written) if isinstance(written, sympy.Expr) else ast.unparse(written)
    if isinstance(d, ArrayDerivation) and len(d.lines) > 1 and rng.random() < 0.2:
        *steps, (_, last) = d.edited(edits)
        guise, said = "in steps", ast.unparse(last)
        system = "; ".join([system, *(f"{step} = {ast.unparse(tree)}" for step, tree in steps)])
    renamed = {}
    if rng.random() < 0.3:
        renamed = _new_names(d.system, rng)
        system, left, said = (_renamed(part, renamed) for part in (system, left, said))
    values = values if values is not None else np.zeros(0)
    made, whole = tuple(d.slips(edits)), f"{left} = {said}"
    return Claim(name, system, d.shapes, whole, made, count, guise, d, values, renamed)


def _new_names(system: str, rng: random.Random) -> dict[str, str]:
    """Return other names for the intermediates of a system."""
    assigned = [part for part in dict.fromkeys(re.findall(r"(\w+)(?:\[[^]]+\])?\s*=", system)) if len(part) < 3]
    free = [f"{letter}_{n}" for letter in "qzhu" for n in range(1, 6)]
    return dict(zip(assigned, rng.sample(free, len(assigned)), strict=True))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"(?<![\w.])(d?){old}(?![\w(])", rf"\g<1>{new}", text)
    return text
