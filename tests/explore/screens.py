"""Explorers in a terminal that Textual drives, and the pictures in the guide, which `python -m screens` draws anew."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gradcli
from gradcli.errors import Source
from gradcli.explore.app import ExplorerApp, Setting
from gradcli.explore.state import Explorer, State
from gradcli.lang.system import read_system

EXAMPLE = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")
AT, V = {"x0": 1, "x1": 2}, {"y0": 1, "y1": 10, "y2": 100}
GUIDE = Path(gradcli.__file__).parent / "guide"
PICTURES: dict[str, Sequence[str]] = {"explore.svg": ("right",), "explore-steps.svg": ("n",) * 14}

Driver = Callable[[Any, ExplorerApp], Coroutine[Any, Any, None]]


def explorer(text: Sequence[str], at: dict[str, Any], v: dict[str, Any] | None = None) -> Explorer:
    """Return the explorer of a system; without v, each is 1."""
    point = {name: np.array(x, float) for name, x in at.items()}
    graph = read_system([Source("\n".join(text))]).graph({name: x.shape for name, x in point.items()})
    ones = {name: np.ones(y.shape) for name, y in graph.outputs.items()}
    v_ = ones if v is None else {name: np.array(x, float) for name, x in v.items()}
    return Explorer(graph, [*at], State(point, (v_,), implicit=v is None))


def drive(app: ExplorerApp, driver: Driver, size: tuple[int, int] = (80, 24)) -> None:
    """Run an app without a terminal, and a test in it."""

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await settled(pilot, app)
            await driver(pilot, app)

    asyncio.run(main())


async def settled(pilot: Any, app: ExplorerApp) -> None:
    """Wait until the page has its formulas."""
    await pilot.pause()
    while app.working or not app.sympy_has_run:
        await pilot.pause(0.01)
    await pilot.pause()


async def still(pilot: Any, app: ExplorerApp) -> None:
    """Wait until the screen no longer changes: the page scrolls after it is drawn."""
    before = None
    while before != (before := on_screen(app)):
        await pilot.pause(0.2)


async def press(pilot: Any, app: ExplorerApp, *keys: str) -> None:
    """Press keys, and wait for the page."""
    await pilot.press(*keys)
    await settled(pilot, app)


def on_screen(app: ExplorerApp) -> str:
    """Return what is on the screen, line by line."""
    return "\n".join(
        "".join(segment.text for segment in strip).rstrip() for strip in app.screen._compositor.render_strips()
    )


def picture(keys: Sequence[str]) -> str:
    """Return the screen as SVG after some keys."""
    app = ExplorerApp(explorer(EXAMPLE, AT, V), Setting())
    drawn: list[str] = []

    async def draw(pilot: Any, app: ExplorerApp) -> None:
        await press(pilot, app, *keys)
        await still(pilot, app)
        drawn.append(app.export_screenshot(title="gradcli explore"))

    drive(app, draw)
    return drawn[0]


def letters(svg: str) -> str:
    """Return the text of a picture, whatever it looks like."""
    return "".join(html.unescape(re.sub("<[^>]*>", "", part)) for part in re.findall(r"<text.*?</text>", svg, re.S))


if __name__ == "__main__":
    for name, keys in PICTURES.items():
        (GUIDE / name).write_text(picture(keys), encoding="utf-8")
