"""The picture of a run: the time of a point against points, a panel for each system, as SVG, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.bench.tables import Growth, fastest

Point = tuple[float, float]

# By the beginnings of names: colours that are read on white and on black.  The engines' lines are thicker, what no
# engine can beat is dashed.
COLOURS = {
    "gradcli NumPy": "#2f81f7",
    "gradcli LLVM": "#d2691e",
    "gradcli JAX": "#8957e5",
    "PyTorch eager": "#e5484d",
    "JAX jit": "#2da44e",
    "CasADi": "#8b949e",
    "HIPS autograd": "#db61a2",
    "SymPy lambdify": "#1b9aaa",
    "memory copy": "currentColor",
}
_WIDTH, _HEIGHT, _TOP, _BOTTOM = 300, 250, 34, 52  # of a panel's axes, and what is above and below
_LEFT, _RIGHT = 52, 128  # beside them: the numbers, and the names of the lines
_LINE = 14  # of text
_STYLE = """\
svg{color:#1f2328;background:#fff}text{font:11px system-ui,sans-serif;fill:currentColor}.t{font-size:13px}
.t,.own{font-weight:600}path{fill:none;stroke-width:1.2;stroke-linejoin:round}path.own{stroke-width:2.8}
.copy{stroke-dasharray:5 3}.grid{stroke:#8b949e;opacity:.3}.to{opacity:.5;stroke-width:.8}
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
    across, down = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    width, height = columns * across, -(-len(growths) // columns) * down
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<title>The time of a point against points</title>",
        f"<style>\n{_STYLE}\n</style>",
    ]
    for i, (name, growth) in enumerate(growths.items()):
        x, y = (i % columns) * across + _LEFT, (i // columns) * down + _TOP
        parts += [f'<g transform="translate({x} {y})">', *_panel(name, fastest(growth, COLOURS)), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, lines: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    x = _Axis(*_powers(size for times in lines.values() for size in times), 0, _WIDTH)
    y = _Axis(*_powers(time for times in lines.values() for time in times.values()), _HEIGHT, 0)
    yield f'<text class="t" y="-14">{escape(name[:1].upper() + name[1:])}: time a point</text>'
    for power in x.powers:
        at = x.at(10.0**power)
        yield f'<path class="grid" d="M{at} 0V{_HEIGHT}"/>'
        yield f'<text x="{at}" y="{_HEIGHT + 17}" text-anchor="middle">{_points(power)}</text>'
    for power in y.powers:
        at = y.at(10.0**power)
        yield f'<path class="grid" d="M0 {at}H{_WIDTH}"/>'
        yield f'<text x="-7" y="{at + 4}" text-anchor="end">{_time(power)}</text>'
    yield f'<text x="{_WIDTH / 2:g}" y="{_HEIGHT + 33}" text-anchor="middle">points</text>'
    drawn = {label: [(x.at(s), y.at(t)) for s, t in sorted(times.items())] for label, times in lines.items()}
    for label, points in reversed(drawn.items()):  # gradcli's lie on top
        yield from _line(label, points)
    yield from _labels({label: points[-1] for label, points in drawn.items()})


def _line(label: str, points: list[Point]) -> Iterator[str]:
    path = "L".join(f"{x} {y}" for x, y in points)
    yield f'<path class="{_kind(label)}" stroke="{COLOURS[label]}" d="M{path}"><title>{label}</title></path>'
    radius = 3 if _kind(label) == "own" else 1.8
    yield from (f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{COLOURS[label]}"/>' for x, y in points)


def _labels(ends: Mapping[str, Point]) -> Iterator[str]:
    """Write the names beside the ends of the lines, one below the other where these lie close together."""
    order = sorted(ends, key=lambda label: ends[label][1])
    places = _apart([ends[label][1] for label in order])
    for label, at in zip(order, places, strict=True):
        x, y = ends[label]
        colour = COLOURS[label]
        yield f'<path class="to" stroke="{colour}" d="M{x + 4} {y}L{max(x, _WIDTH) + 4} {y}L{_WIDTH + 15} {at}"/>'
        yield f'<text class="{_kind(label)}" style="fill:{colour}" x="{_WIDTH + 18}" y="{at + 4}">{label}</text>'


def _apart(wanted: list[float]) -> list[float]:
    """Return places near those wanted, in their order, a line of text apart, none below the axis.

    >>> _apart([100, 101, 250])
    [100, 114, 250]
    >>> _apart([230, 249, 250])
    [222, 236, 250]
    """
    places: list[float] = []
    for y in wanted:
        places.append(max(y, places[-1] + _LINE) if places else y)
    lowest: float = _HEIGHT
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest)
        lowest = places[i] - _LINE
    return places


def _powers(values: Iterable[float]) -> tuple[int, int]:
    """Return the powers of ten around the values."""
    logs = [math.log10(v) for v in values]
    low = math.floor(min(logs) + 1e-9)
    return low, max(low + 1, math.ceil(max(logs) - 1e-9))


def _points(power: int) -> str:
    return str(10**power) if power < 3 else "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _time(power: int) -> str:
    """Return ten to a power, in seconds, with its unit.

    >>> _time(-8), _time(-6), _time(-1), _time(0)
    ('10 ns', '1 µs', '100 ms', '1 s')
    """
    unit = power // 3
    return f"{10 ** (power - 3 * unit)} {['s', 'ms', 'µs', 'ns', 'ps'][-unit]}"


def _kind(label: str) -> str:
    return "own" if label.startswith("gradcli") else "copy" if label.startswith("memory") else "peer"
