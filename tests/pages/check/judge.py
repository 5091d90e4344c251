"""Judges whether what `check` names is the slip that made a claim, or an equal function with no more slips.

Of scalars each local derivative that `check` says was written is put into the derivation that SymPy made, and what
comes out is compared with the claim.  Of arrays the kind is compared with that of the slip that was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import sympy
from slips_of_scalars import Edge, Edit, Operation, ScalarDerivation, read_formula
from spoiler import Claim

# What `check` calls the kinds of slips that are made in arrays.
KINDS = {
    "path left out": {"path left out", "term"},
    "term left out": {"path left out", "value", "term"},
    "diagonal alone": {"path left out", "diagonal", "term"},
    "sign": {"sign"},
    "sign within parentheses": {"sign", "inner sign", "value"},
    "constant factor": {"constant", "number", "size", "mean", "power"},
    "constant left out": {"constant", "number", "size", "mean", "power", "left out", "factor"},
    "local derivative left out": {"left out", "chain left out", "factor", "function"},
    "factor left out": {"left out", "value", "factor"},
    "eye left out": {"left out", "value"},
    "inverted": {"inverted"},
    "neighbouring function": {"neighbour", "value"},
    "power not lowered": {"power"},
    "wrong value": {"value", "function"},
    "transposed": {"transposed"},
    "wrong axis": {"axis"},
    "@ for *": {"@ for *", "* for @"},
    "index one off": {"index"},
}
TEXTS = ("node", "operand", "wrote")
TIMES = re.compile(r"the right value is yours (times|divided by) (.+)")
SHOULD = re.compile(r"(\w+) should be (\w+)")
RATIO = re.compile(r"yours is (\S+) times the right value")
MOST = 256  # ways in which named slips may stand at edges


def slips_named(slips: Sequence[Any]) -> int:
    """Return the number of slips that are named: one that is made at several equal places has an entry for each."""
    return round(sum(1 / s.times for s in slips))


def is_named(claim: Claim, why: str, slips: Sequence[Any]) -> bool:
    """Return whether what `check` names makes the claim, with no more slips than made it."""
    d = claim.derivation
    back = {new: old for old, new in claim.renamed.items()}
    if whole := _of_the_whole(claim, _renamed(why, back), back):
        return _equal(*whole)
    if not slips or slips_named(slips) > claim.count:
        return False
    named = [replace(s, **{part: _renamed(getattr(s, part), back) for part in TEXTS}) for s in slips]
    if isinstance(d, ScalarDerivation):
        return any(_equal(claim.values, values) for values in _variants(d, named))
    return all(any(s.kind in KINDS[kind] for s in slips) for kind in {made.kind for made in claim.slips})


def _of_the_whole(claim: Claim, why: str, back: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what a sentence about the whole claim says that is equal, if it is one."""
    d = claim.derivation
    right = d.numbers(d.derivative())
    if said := RATIO.search(why):
        return claim.values, float(sympy.sympify(said[1])) * right
    if said := TIMES.fullmatch(why):
        factor = d.read_numbers(said[2])
        return claim.values * (factor if said[1] == "times" else 1 / factor), right
    if said := SHOULD.fullmatch(why):
        claimed = _renamed(claim.text.partition(" = ")[2], back)
        return d.read_numbers(re.sub(rf"\b{re.escape(said[1])}\b", f"({said[2]})", claimed)), right
    return None


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    known = np.isfinite(a) & np.isfinite(b)
    return bool(known.sum() >= 3) and np.allclose(a[known], b[known], rtol=1e-5, atol=1e-7)


def _variants(d: ScalarDerivation, slips: Sequence[Any]) -> Iterator[np.ndarray]:
    """Yield the values of the derivation with the named slips, at each choice of the edges that they may stand at."""
    choices = []
    for slip in slips:
        if not slip.wrote:
            return
        wrote, node, operand = (read_formula(d.named, part) for part in (slip.wrote, slip.node, slip.operand))
        edges = [*_edges(d, node, operand)]
        choices.append([(edge, (slip.kind, wrote.value, slip.kind != "chain left out")) for edge in edges])
    for count, chosen in enumerate(product(*choices)):
        edits: dict[Edge, Edit] = dict(chosen)
        if count >= MOST or len(edits) < len(chosen):
            continue
        yield d.numbers(d.derivative(edits))


def _edges(d: ScalarDerivation, node: Operation, operand: Operation) -> Iterator[Edge]:
    """Yield the edges of a derivation whose operation and operand are equal to these."""
    whole, part = (d.expanded(x.value) for x in (node, operand))
    for mine, i in d.edges:
        if d.forms[mine] == whole and d.forms[mine.args[i]] == part:
            yield mine, i


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for new, old in names.items():
        text = re.sub(rf"\b{new}\b", old, text)
    return text
