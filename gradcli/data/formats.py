"""The formats of files of points and of results: a line each, and a folder of that name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradcli.data.block import Points, Reading
from gradcli.data.csv.points import CsvPoints
from gradcli.data.csv.result import csv_writer
from gradcli.data.npz.points import NpzPoints
from gradcli.data.npz.result import npz_writer
from gradcli.data.parquet.points import ParquetPoints
from gradcli.data.parquet.result import parquet_writer
from gradcli.data.writer import Make


class Format(NamedTuple):
    """The functions that open a file of points and that write one of results."""

    read: Callable[[str, Reading], Points]
    write: Make


FORMATS = {
    ".csv": Format(CsvPoints, csv_writer),
    ".npz": Format(NpzPoints, npz_writer),
    ".parquet": Format(ParquetPoints, parquet_writer),
}


def listed(endings: Iterable[str]) -> str:
    """Return the file extensions as words of a sentence.

    >>> listed(FORMATS)
    '.csv, .npz and .parquet'
    """
    *first, last = endings
    return f"{', '.join(first)} and {last}"
