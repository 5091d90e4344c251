"""The targets of `gradcli export`: a line each, and a file of that name in this folder."""

from __future__ import annotations

ENDINGS = {
    "numpy": (".py",),
    "torch": (".py",),
    "jax": (".py",),
    "c": (".c",),
    "javascript": (".js", ".mjs"),
    "onnx": (".onnx",),
}


def by_ending(to: str | None) -> dict[str, str]:
    """Return the target of each file extension; one that several have is that of `to`, or else of the first.

    >>> by_ending("jax")[".py"], by_ending("c")[".py"]
    ('jax', 'numpy')
    """
    result: dict[str, str] = {}
    for target in (*([to] if to else []), *ENDINGS):
        for ending in ENDINGS[target]:
            result.setdefault(ending, target)
    return result
