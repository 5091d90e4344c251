"""What is printed: one table for each race, and tables of how times grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.bench.own import NUMPY
from tests.bench.race import LEFT_OUT, Row, Rows

Growth = Mapping[int, Rows]

_NAME = 28


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def seconds(value: float) -> str:
    """Return a time in a unit in which it is easy to read.

    >>> seconds(0.01234)
    '12.3 ms'
    """
    for unit, size in (("s ", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{_three_digits(value / size)} {unit}"
    return f"{_three_digits(value / 1e-6)} µs"


def _three_digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def print_rows(rows: Rows, unit: str = NUMPY) -> None:
    """Print the times of a race, and the ratio of each to the row `unit`."""
    print(f"  {'':{_NAME}} {'median':>10} {'fastest':>10} {'first run':>10} {'ratio':>8}")
    for row in rows.values():
        if not row.times:
            print(f"  {row.name:{_NAME}} {row.note:>10}")
            continue
        times = " ".join(f"{seconds(t):>10}" for t in (row.median, min(row.times), row.first))
        print(f"  {row.name:{_NAME}} {times} {row.median / rows[unit].median:>8.2f}", flush=True)


def print_growth(by_size: Growth, what: str, unit: float, each: str) -> None:
    """Print the median of each competitor at each size, divided by that size, in a unit."""
    title(f"{what}: {each}")
    print(f"  {'':{_NAME}} " + " ".join(f"{size:>10,}" for size in by_size))
    for name in next(iter(by_size.values())):
        cells = (_cell(rows.get(name), size * unit) for size, rows in by_size.items())
        print(f"  {name:{_NAME}} " + " ".join(f"{c:>10}" for c in cells))


def _cell(row: Row | None, unit: float) -> str:
    return f"{row.median / unit:.1f}" if row is not None and row.times else LEFT_OUT


def fastest(growth: Growth, labels: Iterable[str]) -> dict[str, dict[int, float]]:
    """Return the seconds a point of the fastest run at each number of points, of the competitors that begin so.

    Of one with one thread and with more, the quicker counts.
    """
    found: dict[str, dict[int, float]] = {label: {} for label in labels}
    for size, rows in growth.items():
        for row in rows.values():
            label = next((known for known in found if row.name.startswith(known)), None)
            if label is not None and row.times:
                time = min(row.times) / size
                found[label][size] = min(time, found[label].get(size, time))
    return {label: times for label, times in found.items() if times}


def print_markdown(growths: Mapping[str, Growth], labels: Iterable[str]) -> None:
    """Print milliseconds of the fastest runs as tables for a page."""
    title("As tables, in milliseconds of the fastest run:")
    labels = list(labels)
    for name, growth in growths.items():
        print(f"\n{name}:\n\n| points | {' | '.join(labels)} |\n|---:{'|---:' * len(labels)}|")
        found = fastest(growth, labels)
        for size in growth:
            times = [found.get(label, {}).get(size) for label in labels]
            cells = [LEFT_OUT if time is None else _three_digits(time * size * 1e3) for time in times]
            print(f"| {size:,} | {' | '.join(cells)} |")
