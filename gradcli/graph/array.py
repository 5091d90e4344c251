"""Arrays of NumPy's: of any shape, and of any type of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
