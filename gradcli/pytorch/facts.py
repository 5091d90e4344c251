"""Facts about PyTorch's operations, in tables: what their steps are called and keep, what refuses whole numbers, …."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path


def paragraphs(file: str) -> list[str]:
    """Return the paragraphs of a file of this room."""
    return (Path(__file__).parent / file).read_text("utf-8").strip().split("\n\n")


def _tables() -> dict[str, dict[str, str]]:
    """Return the tables by name: what stands before the colon, by each word behind it."""
    result = {}
    for paragraph in paragraphs("facts.txt"):
        name, *lines = [line for line in paragraph.splitlines() if line[0] != "#"]
        rows = [line.rpartition(": ") for line in lines]
        result[name] = {word: key for key, _, words in rows for word in words.split()}
    return result


TABLES = _tables()


@cache
def grad_name(op: str) -> str:
    """Return what PyTorch calls the `grad_fn` of an operation.

    >>> grad_name("sin"), grad_name("log_softmax"), grad_name("max"), grad_name("slices")
    ('SinBackward0', 'LogSoftmaxBackward0', 'MaxBackward1', 'torch::autograd::CopySlices')
    """
    name = TABLES["names"].get(op) or capitals(op)
    return name if "Backward" in name or "::" in name else f"{name}Backward0"


def capitals(op: str) -> str:
    """Return a name as PyTorch's C++ writes it.

    >>> capitals("index_put")
    'IndexPut'
    """
    return "".join(part[:1].upper() + part[1:] for part in op.split("_"))


def edges_shown(op: str, name: str, count: int) -> Sequence[int]:
    """Return which operands PyTorch shows as those that a step's gradient flows to, in its order."""
    order = TABLES["edges"].get(op) or TABLES["edges"].get(name)
    return range(count) if order is None else [int(i) for i in order]
