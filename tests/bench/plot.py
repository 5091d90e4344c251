"""The picture of a run: time against points, against the length of a program, and the ratios of the other races."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.own import NUMBA, NUMPY
from tests.bench.race import Rows
from tests.bench.session import Session

_GROWTHS = {"bundle adjustment": "points", "chain": "statements in the program"}


def plot(session: Session, path: Path) -> None:
    """Write a PNG with one panel for each growth, and one for the ratios."""
    from matplotlib.figure import Figure

    drawn = [name for name in _GROWTHS if name in session.growth]
    panels = len(drawn) + bool(session.races)
    if not panels:
        print("nothing was run that --plot can draw")
        return
    lines = sum(len(rows) + 2 for rows in session.races.values())
    figure = Figure(figsize=(8 * panels, max(6, 0.2 * lines)), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for ax, name in zip(axes, drawn, strict=False):
        _growth(ax, name, session.growth[name])
    if session.races:
        _ratios(axes[-1], session.races)
    figure.savefig(path, format="png", dpi=120)
    print(f"\nwrote {path}")


def _growth(ax: Any, name: str, by_size: Mapping[int, Rows]) -> None:
    for competitor in next(iter(by_size.values())):
        found = [(n, rows[competitor].median) for n, rows in by_size.items() if rows[competitor].times]
        if found:
            own = competitor in (NUMPY, NUMBA)
            style = {"color": "black", "ls": "--" if "1 thread" in competitor else ":"} if _is_copy(competitor) else {}
            ax.loglog(*zip(*found, strict=True), marker="o", ms=4, lw=3 if own else 1.3, label=competitor, **style)
    ax.set(title=f"vᵀJ, {name}: median time", xlabel=_GROWTHS[name], ylabel="seconds")
    ax.grid(alpha=0.3)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def _ratios(ax: Any, races: Mapping[str, Rows]) -> None:
    """Draw for each race how many times as long as gradcli's NumPy engine the others take: bars that begin at 1."""
    ticks: dict[int, str] = {}
    place = 0
    for race, rows in races.items():
        ax.text(0.01, place, race, weight="bold", va="center", transform=ax.get_yaxis_transform())
        for name, row in rows.items():
            if row.times and name != NUMPY:
                place += 1
                ticks[place] = name
                ratio = row.median / rows[NUMPY].median
                ax.barh(place, ratio - 1, left=1, color="grey" if _is_copy(name) else "C0" if ratio > 1 else "C1")
                ax.annotate(
                    f"{ratio:.2g}",
                    (ratio, place),
                    (4 if ratio > 1 else -4, 0),
                    textcoords="offset points",
                    ha="left" if ratio > 1 else "right",
                    va="center",
                )
        place += 2
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.set_ylim(place - 1, -1)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(low / 4, high * 2)  # room for the numbers
    ax.axvline(1, color="black", lw=1)
    ax.set(title=f"median time ÷ that of {NUMPY}: right of 1 is slower", xlabel="ratio")


def _is_copy(competitor: str) -> bool:
    return competitor.startswith("memory")
