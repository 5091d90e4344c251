"""Points in JSON Lines: an object of values on each line, or the answer of a command, whose `at` has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gradcli.data.block import COPIED, MISSING_HINT, Block, Reading, check_header
from gradcli.data.columns import missing, variable
from gradcli.data.mistakes import about_file, quoted, reading
from gradcli.data.text_files import MAX_ROW, TextPoints, too_long
from gradcli.errors import InputError
from gradcli.graph.array import json_array, objects


class JsonLinesPoints(TextPoints):
    """Points in a file of JSON Lines; the first one says which variables there are, and their shapes."""

    def _begin(self, how: Reading) -> None:
        self._objects = self._read()
        first = next(self._objects, None)
        if first is None:
            raise about_file(self._label, "has no points", 'each line is an object such as {"x": 1, "M": [[1, 2]]}')
        self._objects = chain([first], self._objects)
        self.columns = [*first[1]]
        names = zip(how.named(self.columns, self._label), self.columns, strict=True)
        stems = ((name.partition("."), key) for name, key in names)
        self._keys = {v + dot + suffix: key for (stem, dot, suffix), key in stems if (v := variable(stem))}
        arrays = {name: json_array(first[1][key]) for name, key in self._keys.items()}
        self.shapes = {name: a.shape for name, a in arrays.items() if a is not None}

    def _read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the object of each line that is not blank."""
        number = 0
        while True:
            with reading(self._label):
                text = self._file.readline(MAX_ROW)
            number += 1
            if not text:
                return
            if len(text) == MAX_ROW:
                raise too_long(self._label, number)
            if not text.isspace():
                yield number, self._object(text, number)

    def _object(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and isinstance(value.get("at"), dict):
            value = value["at"]
        if not isinstance(value, dict):
            shown = quoted(text.decode(errors="replace").strip())
            hint = "each line is a whole object, as `jq -c .` or `jq -c '.[]'` writes it"
            raise InputError(f"{self._label}, line {number}: {shown} is not a JSON object", hint=hint)
        return value

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables, in blocks of 1 to `size` points."""
        for name in names:
            if name.startswith(COPIED):
                check_header(name.removeprefix(COPIED), self.columns, self._label, "--keep")
            elif name not in self.shapes:
                raise missing(name, self.shapes, self._label)
        return self._blocks(names, size)

    def _blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        rows: list[list[Any]] = []
        for number, values in self._objects:
            row = [self._value(name, values, number) for name in names]
            if any(v is None for v in row):
                self._missing.skipped += 1
                continue
            rows.append(row)
            if len(rows) == size:
                yield _block(names, rows)
                rows = []
        if rows:
            yield _block(names, rows)

    def _value(self, name: str, values: dict[str, Any], number: int) -> Any:
        """Return the array of a variable in a line, or the value that is copied; None for a point to skip."""
        if name.startswith(COPIED):
            value = values.get(name.removeprefix(COPIED))
            return "" if value is None else value if isinstance(value, str) else json.dumps(value)
        key, shape = self._keys[name], self.shapes[name]
        where = f"{self._label}, line {number}"
        value = values.get(key)
        if value is None and self._missing.policy != "error":
            return None if self._missing.policy == "skip" else np.full(shape, np.nan)
        if value is None:
            raise InputError(f"{where} has no value for {quoted(key)}", hint=MISSING_HINT)
        array = json_array(value)
        if array is None:
            raise InputError(f"{where}: the value of {quoted(key)} is not a number or an array of numbers")
        if array.shape != shape:
            raise InputError(f"{where}: {quoted(key)} has shape {array.shape}, and {shape} in the first point")
        return array


def _block(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return {n: objects([*c], (len(c),)) if n.startswith(COPIED) else np.stack(c, axis=-1) for n, c in columns}
