"""Arrays of NumPy's, of any shape and any type of elements; and several of them by name."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Named = dict[str, Array]
