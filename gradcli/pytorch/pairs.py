"""What returns several tensors under names: `torch.return_types`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from gradcli.pytorch.tensor import of_array


def return_type(name: str, *fields: str) -> Any:
    """Return the type of a result that has values and indices, or other fields."""
    made = namedtuple(name, fields or ("values", "indices"))  # type: ignore[misc]
    made.__repr__ = _text  # type: ignore[assignment]
    made.__module__ = "torch.return_types"
    return made


def _text(self: Any) -> str:
    lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


def found(kind: Any, values: Any, places: Any) -> Any:
    """Return values and where they were found."""
    return kind(values, of_array(np.asarray(places, np.int64)))
