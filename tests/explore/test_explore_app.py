"""Every key and every field of the explorer, in a terminal that Textual drives."""

from __future__ import annotations

import random
import re

import pytest
from click import unstyle
from conftest import each, long

pytest.importorskip("textual", reason="needs textual")

from screens import AT, EXAMPLE, GUIDE, PICTURES, V, drive, explorer, letters, on_screen, picture, press, settled, still

from gradcli.explore.app import ExplorerApp, Guide, Setting
from gradcli.explore.command import command_words


def app_of(*text, at=None, v=None, **setting):
    e = explorer(text or EXAMPLE, AT if at is None else at, V if not text else v)
    return ExplorerApp(e, Setting(**setting))


def focused(app):
    return app.focused_field.label


def test_the_first_screen_shows_the_page_of_backward(cli):
    app = app_of()
    page = cli.done("backward", *EXAMPLE, "--at", "x0=1,x1=2", "--v", "1,10,100").out

    async def driver(pilot, app):
        shown = on_screen(app)
        for line in ("10    y1    2*x0 = 2   6*x1**2 = 24", "x1.grad = 10·24 + 100·10   = 1240"):
            assert line in page
            assert line in shown
        assert "▶ x0" in shown

    drive(app, driver)


@long
def test_the_keys_move_the_focus_and_change_the_number():
    async def driver(pilot, app):
        names = ["x0", "x1", "y0", "y1", "y2", "learning rate"]
        for name in [*names[1:], names[0]]:
            await press(pilot, app, "down")
            assert focused(app) == name
        await press(pilot, app, "up")
        assert focused(app) == "learning rate"
        await press(pilot, app, "tab")
        assert focused(app) == "x0"
        await press(pilot, app, "shift+tab", "tab")
        assert focused(app) == "x0"
        for key, expected in [("right", 1.1), ("left", 1.0), ("shift+right", 2.0), ("shift+left", 1.0)]:
            await press(pilot, app, key)
            assert app.explorer.value(app.focused_field) == expected
            assert f"at x0 = {expected:g}, x1 = 2" in on_screen(app)
        await press(pilot, app, "right", "right", "u")
        assert app.explorer.value(app.focused_field) == 1.1
        await press(pilot, app, "r")
        assert app.explorer.value(app.focused_field) == 1
        await press(pilot, app, "u", "u", "u", "u", "u", "u", "u")
        assert "nothing to undo" in on_screen(app)

    drive(app_of(), driver)


def test_a_mistake_is_told_below_the_field_with_a_caret_and_changes_nothing():
    async def driver(pilot, app):
        await press(pilot, app, "enter", "1", "+", "q", "enter")
        shown = on_screen(app)
        assert "x0 = 1+q" in shown
        lines = shown.splitlines()
        (caret,) = (k for k, line in enumerate(lines) if line.strip() == "^")
        assert lines[caret - 1][lines[caret].index("^")] == "q"
        assert app.is_typing
        assert app.explorer.value(app.focused_field) == 1
        await press(pilot, app, "escape")
        assert not app.is_typing
        assert app.explorer.value(app.focused_field) == 1
        await press(pilot, app, "right")
        assert app.explorer.value(app.focused_field) == 1.1

    drive(app_of(), driver)


def test_a_number_is_hidden_until_its_step():
    """Those of later steps, the gradients, and the curve, whose slope is one; `p` hides the last step again."""

    async def driver(pilot, app):
        await press(pilot, app, "n", "n", "n", "n")
        forward, reverse = on_screen(app).split("reverse pass")
        assert re.search(r"t1 = x0\*\*2 += 1\b", forward)
        assert re.search(r"y0 = 3\*t1 += 3\b", forward)
        assert re.search(r"y1 = t2 \+ t4 *$", forward, re.MULTILINE)
        assert not re.search(r"\b(8|16|17|20|26|1000|1240)\b", forward + reverse.split("step 4")[0])
        assert reverse.count("…") == 8
        await press(pilot, app, *["n"] * 6)
        assert "x̄1 = 100·10 = 1000" in on_screen(app)
        assert "1240" not in on_screen(app)
        await press(pilot, app, "p")
        assert "1000" not in on_screen(app)
        await press(pilot, app, "right")
        assert "step 9" not in on_screen(app)
        assert "1000" not in on_screen(app)
        await press(pilot, app, *["n"] * 8)
        assert {"1240", "x0.grad", "L against x0"} <= {*re.findall(r"1240|x0\.grad|L against x0", on_screen(app))}
        await press(pilot, app, "s", "p")
        assert "step 16 of 17" in on_screen(app)
        assert "x0.grad" not in on_screen(app)

    drive(app_of(), driver, (100, 44))


@long
def test_the_guide_is_shown_and_closed():
    async def driver(pilot, app):
        await press(pilot, app, "slash")
        assert isinstance(app.screen, Guide)
        assert "The vector–Jacobian product" in on_screen(app)
        before = app.explorer.state
        await press(pilot, app, "right", "d", "down", "up")
        assert app.explorer.state is before
        await press(pilot, app, "escape")
        assert not isinstance(app.screen, Guide)
        await press(pilot, app, "down", "down", "slash")
        assert "gradient argument" in on_screen(app)
        await press(pilot, app, "q")
        assert not isinstance(app.screen, Guide)
        await press(pilot, app, "c", "slash")
        assert app.screen.topic == "accumulation"

    drive(app_of(), driver)


@each("size", [(120, 40), (200, 60), (80, 24)])
def test_the_picture_is_shown_where_there_is_room_and_with_g(size):
    async def driver(pilot, app):
        legend = "○ leaf"
        assert (legend in on_screen(app)) is (size != (80, 24))
        await press(pilot, app, "n")
        assert legend not in on_screen(app)  # it has the numbers that are hidden
        await press(pilot, app, "g")
        await still(pilot, app)
        assert legend in on_screen(app)
        assert "x̄0 = ∂L/∂x0" in on_screen(app)

    drive(app_of(), driver, size)


def test_a_resize_lays_everything_out_anew_and_a_tiny_terminal_says_so():
    async def driver(pilot, app):
        await pilot.resize_terminal(30, 8)
        await settled(pilot, app)
        assert "too small" in on_screen(app)
        await pilot.resize_terminal(100, 30)
        await settled(pilot, app)
        assert "x0.grad = 1·6 + 10·2" in on_screen(app)

    drive(app_of(), driver)


def test_a_terminal_without_unicode_gets_plain_characters():
    async def driver(pilot, app):
        await press(pilot, app, "n")
        assert on_screen(app).isascii()
        assert "> x0" in on_screen(app)

    drive(app_of(unicode=False), driver)


def test_a_corner_is_noted():
    async def driver(pilot, app):
        assert "abs(x) has no derivative" in " ".join(on_screen(app).split())
        await press(pilot, app, "slash")
        assert app.screen.topic == "corners"

    drive(app_of("y=abs(x)", at={"x": 0}), driver, (120, 40))


@long
def test_random_edits_agree_with_backward(cli):
    chance = random.Random(36)
    app = app_of()

    async def driver(pilot, app):
        keys = ["right", "left", "shift+right", "shift+left", "up", "down", "c", "z", "u"]
        for _ in range(20):
            await press(pilot, app, *chance.choices(keys, k=3))
            _, *arguments = command_words(app.explorer, EXAMPLE, steps=False)
            shown = cli.json(*arguments)
            assert shown["grad"] == {n: float(g) for n, g in app.explorer.gradient().items()}
            for name, number in shown["grad"].items():
                rows = [line for line in unstyle(app.page.text).split("\n") if f"{name}.grad =" in line]
                assert rows
                assert f"= {float(f'{number:.6g}'):g}" in rows[0] or f"{number:.6g}" in app.page.text

    drive(app, driver)


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_guide_show_these_screens(name):
    assert letters((GUIDE / name).read_text(encoding="utf-8")) == letters(picture(PICTURES[name]))
