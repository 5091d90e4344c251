"""Ask PyTorch for the values of layers and losses: `python -m tests.graph.record_calls` writes them to `calls.json`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gradcli import parse
from tests.conftest import Command
from tests.graph.test_operations import ANY, CALLS, SHAPES, random_point


def value(text: str) -> object:
    """Return what PyTorch computes by the script of a page, at the point of the test."""
    graph = parse(text, **SHAPES)
    point = random_point(graph, [ANY] * len(graph.inputs), np.random.default_rng(0))
    at = ",".join(f"{name}={array.tolist()}" for name, array in point.items())
    script = Command().done("backward", f"y={text}", "--at", at, "--v", "ones", "--only", "pytorch").out
    scope: dict[str, object] = {}
    exec(script.partition(".backward(")[0].rpartition("\n")[0], scope)
    return scope["y"].tolist()  # type: ignore[attr-defined]


if __name__ == "__main__":
    rows = (f"{json.dumps(text)}: {json.dumps(value(text))}" for text in CALLS if isinstance(text, str))
    Path(__file__).with_name("calls.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
