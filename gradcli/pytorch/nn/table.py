"""What a module of `torch.nn` is called with, takes and shows, as `modules.txt` has it."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.signatures import REQUIRED
from gradcli.pytorch.tables import paragraphs


class Row(NamedTuple):
    """A module: PyTorch's file, its base, the function that its forward calls with some attributes, and arguments."""

    home: str
    base: str
    calls: list[str]
    takes: str | None = None
    shows: str | None = None


@cache
def rows() -> dict[str, Row]:
    """Return the row of each module by its name."""
    result: dict[str, Row] = {}
    for paragraph in paragraphs("nn/modules.txt")[1:]:
        home, *modules = re.split(r"\n(?! )", paragraph)
        base = ""
        for module in modules:
            (name, *calls), *more = map(str.split, module.split("\n"))
            base = name if name.startswith("_") else base
            result[name] = Row(home, base, calls, **{word: " ".join(rest) for word, *rest in more})
    return result


def taken(function: str) -> list[str]:
    """Return what the module takes that is but a function of `torch.nn.functional`.

    >>> taken("l1_loss")
    ['size_average', 'reduce', 'reduction']
    """
    row = next(row for row in rows().values() if row.calls == [function])
    return [word.partition("=")[0] for word in (row.takes or "").split()]


def parameters(row: str) -> dict[str, Any]:
    """Return the defaults of arguments by their names.

    >>> parameters("start_dim=1 end_dim=-1")
    {'start_dim': 1, 'end_dim': -1}
    """
    words = (word.partition("=") for word in row.split())
    return {name: literal_eval(value) if value else REQUIRED for name, _, value in words}


# Whose constructor PyTorch names where it is another class's.
_CONSTRUCTED = {
    "MSELoss": "_Loss",
    "L1Loss": "_Loss",
    "SoftMarginLoss": "_Loss",
    "BCELoss": "_WeightedLoss",
    **dict.fromkeys(("RNN", "LSTM", "GRU"), "RNNBase"),
}
_CONSTRUCTED |= dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), "_BatchNorm")
_CONSTRUCTED |= dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d"), "_InstanceNorm")
_CONSTRUCTED |= dict.fromkeys(("AdaptiveAvgPool1d", "AdaptiveAvgPool2d"), "_AdaptiveAvgPoolNd")
_CONSTRUCTED |= dict.fromkeys(("AdaptiveMaxPool1d", "AdaptiveMaxPool2d"), "_AdaptiveMaxPoolNd")
_CONSTRUCTED |= dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"), "_DropoutNd")
_CONSTRUCTED |= dict.fromkeys(("MaxPool1d", "MaxPool2d", "MaxPool3d"), "_MaxPoolNd")


def bound_arguments(name: str, known: Mapping[str, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return what the constructor of a class of this name is bound_arguments for each of its arguments, or the default.

    Errors: Python's `TypeError` for what does not fit.
    """
    first = dict(zip(known, args, strict=False))
    result = {k: v for k, v in known.items() if v is not REQUIRED} | first | kwargs
    if result.keys() != known.keys() or len(args) > len(known) or first.keys() & kwargs:
        fields: list[Any] = [k if v is REQUIRED else (k, Any, field(default=v)) for k, v in known.items()]
        make_dataclass(_CONSTRUCTED.get(name, name), fields)(*args, **kwargs)  # so that Python says what does not fit
    return result
