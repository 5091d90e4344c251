"""The writer of an ONNX model: its nodes, its initializers, and their names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from gradcli.graph.array import Array


class ModelWriter:
    """Adds nodes and initializers of a model; `dtype` is that of its real numbers.

    Unless arrays are `shared`, each has an initializer of its own, so that the names do not depend on the numbers.
    """

    def __init__(self, dtype: str, shared: bool = True) -> None:
        self.dtype = np.dtype(dtype)
        self.shared = shared
        self.nodes: list[Any] = []
        self.results: dict[Hashable, list[str]] = {}  # of calls with several
        self.initializers: dict[str, Array] = {}
        self._known: dict[tuple[Any, ...], str] = {}
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """Return a name that none has taken, and take it."""
        result, k = name, 2
        while result in self._taken:
            result, k = f"{name}_{k}", k + 1
        self._taken.add(result)
        return result

    def take(self, names: Iterable[str]) -> None:
        """Take names that are no longer free."""
        self._taken.update(names)

    def add(self, op: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        return self.several(op, *inputs, names=[name] if name else None, **attributes)[0]

    def several(
        self, op: str, *inputs: str, outputs: int = 1, names: list[str] | None = None, **attributes: Any
    ) -> list[str]:
        """Add a node of several results, and return their names."""
        from onnx import helper

        results = names or [self.fresh(f"{op.lower()}_{len(self.nodes)}") for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), results, name=f"{op}_{len(self.nodes)}", **attributes))
        return results

    def initializer(self, array: Array, name: str = "c") -> str:
        """Return the name of an array that the model holds; of a small one, each time the same."""
        key: tuple[Any, ...] = (len(self._known),)
        if self.shared:
            key = (array.shape, array.dtype.str, array.tobytes() if array.size <= 2**10 else id(array), name)
        if key not in self._known:
            self._known[key] = self.fresh(name)
            self.initializers[self._known[key]] = array
        return self._known[key]

    def number(self, value: float) -> str:
        """Return the name of a real number."""
        return self.initializer(np.asarray(value, self.dtype))

    def integers(self, numbers: Iterable[int]) -> str:
        """Return the name of a vector of integers."""
        return self.initializer(np.array(list(numbers), np.int64))


def element_type(dtype: np.dtype[Any]) -> int:
    """Return the number that ONNX has for a dtype of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))
