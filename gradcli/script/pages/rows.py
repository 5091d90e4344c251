"""One call of `backward` or `grad` in a script as JSON."""

from __future__ import annotations

import math
from typing import Any

from gradcli.pytorch.backward import Call
from gradcli.script.naming import fresh
from gradcli.script.scene import Told


def row(call: Call, told: Told) -> dict[str, Any]:
    """Return a call as a JSON object."""
    recorded = told.recorded
    roots = [told.name(y) for y, _ in call.roots] if recorded is None else recorded.roots
    outputs = {name: _plain(y._a) for name, (y, _) in zip(roots, call.roots, strict=True)}
    v = {name: _plain(a) for name, (_, a) in zip(roots, call.roots, strict=True)}
    v |= {} if recorded is None else {name: _plain(a[..., None]) for name, a in recorded.v.items()}
    leaves: dict[str, Any] = {}
    for x, before, own, after in call.leaves:
        leaves[fresh(told.name(x), leaves)] = {
            "before": None if before is None else _plain(before),
            "own": _plain(own._a),
            "after": None if after is None else _plain(after._a),
        }
    kept = {} if recorded is None else recorded.kept_gradients()
    return {
        "line": int(told.line),
        "code": told.source(told.line),
        "outputs": outputs,
        "v": v,
        "leaves": leaves,
        "retained": {n: _plain(g._a) for n, g in kept.items()},
        "freed": call.freed,
    }


def _plain(a: Any) -> Any:
    """Return numbers as JSON has them."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value

    return plain(a[..., 0].tolist())
