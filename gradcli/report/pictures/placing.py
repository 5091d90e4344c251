"""Positions on a line, as near as can be to those that are wanted, in a given order and so far apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def placed(targets: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return x with x[k+1] - x[k] ≥ gaps[k] for which Σ weights·(x - targets)² is least.

    It is isotonic regression, by pooling neighbours that want to be nearer than they may (M. Ayer and others, "An
    empirical distribution function for sampling with incomplete information", Ann. Math. Statist. 26(4), 1955).

    >>> placed([0, 0, 10], [1, 1, 1], [4, 4])
    [-2.0, 2.0, 10.0]
    """
    shifts = [0.0, *accumulate(gaps)]
    blocks: list[tuple[float, float, int]] = []  # the position, the weight, how many
    for target, weight, shift in zip(targets, weights, shifts, strict=True):
        position, total, count = float(target - shift), float(weight), 1
        while blocks and blocks[-1][0] > position:
            before, heavy, many = blocks.pop()
            position = (before * heavy + position * total) / (heavy + total)
            total, count = total + heavy, count + many
        blocks.append((position, total, count))
    result = [position for position, _, count in blocks for _ in range(count)]
    return [position + shift for position, shift in zip(result, shifts, strict=True)]
