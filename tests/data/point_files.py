"""Files of points: writes them into the folder in which a test stands, and reads them with gradcli."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from gradcli.data.formats import open_points
from gradcli.errors import InputError

X0 = np.array([1.5, -2.0, 3e-7, 4.0, 5.0])
X = np.arange(10.0).reshape(2, 5)
M = np.arange(20.0).reshape(2, 2, 5) / 3
VALUES = {"x0": X0, "x": X, "M": M, "x.v": -X}
SHAPES = {"x0": (), "x": (2,), "M": (2, 2), "x.v": (2,)}
COLUMNS = {
    "x0": X0,
    "x[0]": X[0],
    "x[1]": X[1],
    **{f"M[{i},{j}]": M[i, j] for i in range(2) for j in range(2)},
    "x[0].v": -X[0],
    "x[1].v": -X[1],
}


def read(path, names=None, size=1000):
    """Return the values of those variables, and the sizes of the blocks."""
    with closing(open_points(str(path))) as points:
        blocks = list(points.blocks(names or list(points.shapes), size))
    for block in blocks:
        assert all(a.dtype == float and a.flags.c_contiguous for a in block.values())
    sizes = [{a.shape[-1] for a in block.values()} for block in blocks]
    assert all(len(s) == 1 for s in sizes)
    return {n: np.concatenate([b[n] for b in blocks], -1) for n in blocks[0]}, [s.pop() for s in sizes]


def refused(path, names=None):
    """Return the message about a file that cannot be read."""
    with pytest.raises(InputError) as caught:
        read(path, names)
    message = caught.value.render()
    assert message.replace("\n", "").isprintable()
    assert len(message.splitlines()) <= 2
    return message


def csv(text, name="p.csv"):
    """Write a file of CSV, and return its path."""
    path = Path.cwd() / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def npz(save=np.savez, **arrays):
    """Write p.npz, and return its path."""
    path = Path.cwd() / "p.npz"
    save(path, **arrays)
    return path


def parquet(columns, name="p.parquet", **options):
    """Write a file of Parquet, or a part of a data set, and return its path."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = Path.cwd() / name
    path.parent.mkdir(exist_ok=True)
    arrays = [a if isinstance(a, pa.Array) else pa.array(a) for _, a in columns]
    pq.write_table(pa.Table.from_arrays(arrays, [n for n, _ in columns]), path, **options)
    return path


def json_lines():
    """Write p.jsonl, whose objects have a text beside the numbers, and return its path."""
    rows = [{n: v[..., k].tolist() for n, v in VALUES.items()} for k in range(5)]
    return csv("\n".join(json.dumps(row | {"note": "a"}) for row in rows), "p.jsonl")


def csv_text(columns=COLUMNS):
    head = ",".join(f'"{name}"' if "," in name else name for name in columns)
    rows = zip(*(map(repr, map(float, column)) for column in columns.values()), strict=True)
    return "\n".join([head, *map(",".join, rows)]) + "\n"


def points_first(array):
    return np.moveaxis(array, -1, 0)
