"""Files of `-F` that are no text: which they are, and what reads them."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.graph.subsystem import Subsystem


def is_subsystem(file: str) -> bool:
    """Tell whether a file of `-F` is read otherwise than as statements.

    >>> is_subsystem("model.onnx"), is_subsystem("net.grad"), is_subsystem("-")
    (True, False, False)
    """
    return file.lower().endswith(".onnx")


def read_subsystems(files: Sequence[str], wanted: Sequence[str]) -> list[Subsystem]:
    """Return what the files contribute that are no text; `wanted` are the names to differentiate by.

    Errors: `InputError` for a file that cannot be read.
    """
    models = [file for file in files if is_subsystem(file)]
    if not models:
        return []
    from gradcli.onnx.model import read_model

    return [read_model(file, wanted) for file in models]
