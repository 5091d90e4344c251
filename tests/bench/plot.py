"""The picture of a run: nanoseconds a point against points, a panel for each system, as SVG, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.bench.race import Rows

Growth = Mapping[int, Rows]

# Colours that are read on white and on black; the engines' lines are thicker, what no engine can beat is dashed.
_COLOURS = {
    "gradcli NumPy": "#2f81f7",
    "gradcli Numba": "#d2691e",
    "gradcli JAX": "#8957e5",
    "PyTorch eager": "#e5484d",
    "JAX jit": "#2da44e",
    "CasADi": "#8b949e",
    "HIPS autograd": "#db61a2",
    "SymPy lambdify": "#1b9aaa",
    "memory copy": "currentColor",
}
_WIDTH, _HEIGHT, _MARGIN, _PAD = 360, 250, 44, 18  # of a panel, what is around it, and of a line of text
_LABEL = 150  # the width of a line of the legend
_STYLE = """\
svg{color:#1f2328;background:#fff}text{font:11px sans-serif;fill:currentColor}.t{font-weight:bold}
path{fill:none;stroke-width:1.3}.own{stroke-width:2.8}.copy{stroke-dasharray:5 3}.grid{stroke:#8b949e;opacity:.3}
@media (prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}"""


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from one power of ten to another, on so many pixels."""

    low: int
    high: int
    start: float
    stop: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    @property
    def powers(self) -> range:
        return range(self.low, self.high + 1)


def plot(growths: Mapping[str, Growth], path: Path) -> None:
    """Write the picture of all systems that were run at several numbers of points."""
    if not growths:
        print("nothing was run that --plot can draw")
        return
    path.write_text(picture(growths), encoding="utf-8")
    print(f"\nwrote {path}")


def picture(growths: Mapping[str, Growth]) -> str:
    """Return the SVG."""
    columns = min(2, len(growths))
    lines = -(-len(growths) // columns)
    drawn = [label for label in _COLOURS if any(label in _fastest(growth) for growth in growths.values())]
    width, bottom = columns * (_WIDTH + _MARGIN) + _PAD, lines * (_HEIGHT + _MARGIN)
    in_a_line = (width - _MARGIN) // _LABEL
    height = bottom + _PAD * (1 + -(-len(drawn) // in_a_line))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<title>Nanoseconds a point against points</title>",
        f"<style>\n{_STYLE}\n</style>",
    ]
    for i, (name, growth) in enumerate(growths.items()):
        x, y = (i % columns) * (_WIDTH + _MARGIN), (i // columns) * (_HEIGHT + _MARGIN)
        parts += [f'<g transform="translate({x} {y})">', *_panel(name, _fastest(growth)), "</g>"]
    parts += [f'<g transform="translate({_MARGIN} {bottom + _PAD})">', *_legend(drawn, in_a_line), "</g>", "</svg>"]
    return "\n".join(parts) + "\n"


def _fastest(growth: Growth) -> dict[str, dict[int, float]]:
    """Return the nanoseconds a point of each line's fastest run at each number of points.

    Of a competitor with one thread and with more, the quicker is shown.
    """
    found: dict[str, dict[int, float]] = {label: {} for label in _COLOURS}
    for size, rows in growth.items():
        for row in rows.values():
            label = next((known for known in _COLOURS if row.name.startswith(known)), None)
            if label is not None and row.times:
                time = min(row.times) / size * 1e9
                found[label][size] = min(time, found[label].get(size, time))
    return {label: times for label, times in found.items() if times}


def _panel(name: str, lines: Mapping[str, Mapping[int, float]]) -> Iterable[str]:
    sizes = [size for times in lines.values() for size in times]
    values = [time for times in lines.values() for time in times.values()]
    x = _Axis(*_powers(sizes), _MARGIN, _WIDTH)
    y = _Axis(*_powers(values), _HEIGHT, 2 * _PAD)
    yield f'<text class="t" x="{_MARGIN}" y="{_PAD}">{escape(name)}: nanoseconds a point</text>'
    for power in x.powers:
        at = x.at(10.0**power)
        yield f'<path class="grid" d="M{at} {y.start}V{y.stop}"/>'
        yield f'<text x="{at}" y="{_HEIGHT + 14}" text-anchor="middle">{_power(power)}</text>'
    for power in y.powers:
        at = y.at(10.0**power)
        yield f'<path class="grid" d="M{x.start} {at}H{x.stop}"/>'
        yield f'<text x="{x.start - 4}" y="{at + 4}" text-anchor="end">{_power(power)}</text>'
    yield f'<text x="{x.stop}" y="{_HEIGHT + 28}" text-anchor="end">points</text>'
    for label, times in lines.items():
        line = "L".join(f"{x.at(size)} {y.at(time)}" for size, time in sorted(times.items()))
        yield f'<path class="{_kind(label)}" stroke="{_COLOURS[label]}" d="M{line}"><title>{label}</title></path>'


def _powers(values: Iterable[float]) -> tuple[int, int]:
    """Return the powers of ten around the values."""
    logs = [math.log10(v) for v in values]
    low = math.floor(min(logs) + 1e-9)
    return low, max(low + 1, math.ceil(max(logs) - 1e-9))


def _power(power: int) -> str:
    if 0 <= power <= 2:
        return str(10**power)
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _legend(labels: Sequence[str], columns: int) -> Iterable[str]:
    for i, label in enumerate(labels):
        x, y = _LABEL * (i % columns), _PAD * (i // columns)
        yield f'<path class="{_kind(label)}" stroke="{_COLOURS[label]}" d="M{x} {y}h24"/>'
        yield f'<text x="{x + 30}" y="{y + 4}">{label}</text>'


def _kind(label: str) -> str:
    return "own" if label.startswith("gradcli") else "copy" if label.startswith("memory") else "peer"
