"""Pictures as SVG: well formed, all of what is said as text within its box, and nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from systems import SYSTEMS

from gradcli.text.wrapping import cells

NS = "{http://www.w3.org/2000/svg}"
LETTER = {"gg-text": 7.85, "gg-adjoint": 7.85, "gg-local": 6.65}  # of DejaVu Sans Mono, which is among the wider


def texts(svg):
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter(f"{NS}text")]


@pytest.mark.parametrize("name", SYSTEMS)
def test_text_lies_within_a_box(name, cli):
    root = ET.fromstring(cli.done("graph", *SYSTEMS[name], "-f", "svg").out)
    group = root.find(f"{NS}g")
    boxes = [[float(r.get(key)) for key in ("x", "y", "width", "height")] for r in group.iter(f"{NS}rect")]
    found = list(group.iter(f"{NS}text"))
    assert found
    for text in found:
        if re.fullmatch(r"[\d,]+×", "".join(text.itertext())):
            continue  # beside the arrow that returns to a box
        x, y = float(text.get("x")), float(text.get("y"))
        wide = cells("".join(text.itertext())) * LETTER[text.get("class")]
        left = x - wide / 2 if text.get("text-anchor") else x
        assert any(bx <= left and left + wide <= bx + w and by + 8 <= y <= by + h - 2 for bx, by, w, h in boxes)


@pytest.mark.parametrize("name", SYSTEMS)
def test_everything_lies_within_the_picture(name, cli):
    root = ET.fromstring(cli.done("graph", *SYSTEMS[name], "-f", "svg").out)
    _, _, width, height = map(float, root.get("viewBox").split())
    group = root.find(f"{NS}g")
    dx, dy = map(float, re.findall(r"[\d.]+", group.get("transform")))
    boxes = [[float(r.get(key)) for key in ("x", "y", "width", "height")] for r in group.iter(f"{NS}rect")]
    for k, (x, y, w, h) in enumerate(boxes):
        assert dx + x >= 0
        assert dx + x + w <= width
        assert dy + y + h <= height
        assert not any(x < x1 + w1 and x1 < x + w and y < y1 + h1 and y1 < y + h for x1, y1, w1, h1 in boxes[:k])
    end = {}
    for text in root.findall(f"{NS}text"):
        x, y = float(text.get("x")), float(text.get("y"))
        assert end.get(y, 0) < x  # of what stands before it on its line
        end[y] = x + cells("".join(text.itertext())) * LETTER[text.get("class")]
        assert end[y] <= width
        assert y <= height


def test_signs_of_xml_are_text(cli):
    svg = cli.done("graph", *SYSTEMS["signs"], "-f", "svg").out
    assert any('einsum("' in text for text in texts(svg))
    assert any("x < 1" in text for text in texts(svg))


def test_it_is_one_file_for_light_and_dark(cli):
    svg = cli.done("graph", *SYSTEMS["used twice"], "-f", "svg").out
    assert "@media (prefers-color-scheme:dark)" in svg
    assert re.findall(r"(?:href|src|url|@import|https?:)[^\s>]*", svg) == ['http://www.w3.org/2000/svg"']


def test_two_of_them_may_stand_in_one_page(cli):
    """Nothing has a name that another picture has, too, and no rule of style is about anything else."""
    for name in ("main", "network"):
        svg = cli.done("graph", *SYSTEMS[name], "-f", "svg").out
        assert not re.search(r"\bid=|url\(#|href=", svg)
        (style,) = re.findall(r"<style>(.*?)</style>", svg, re.DOTALL)
        rules = re.sub(r"\{[^{}]*\}", "\n", style.replace("@media (prefers-color-scheme:dark){", "")).rstrip("}\n")
        selectors = [s.strip() for line in rules.splitlines() if line.strip() for s in line.split(",")]
        assert selectors
        assert all(re.fullmatch(r"\.gg-\w+", selector) for selector in selectors), selectors


def test_the_bar_of_a_greek_letter_is_drawn(cli):
    """Few fonts have it: they put the bar beside the letter."""
    svg = cli.done("graph", "y = γ**2 + x", "--at", "γ=3,x=1", "-f", "svg").out
    assert '<tspan text-decoration="overline">γ</tspan> = 6</text>' in svg
    assert ">x̄ = 1</text>" in svg


def test_a_value_that_is_read_from_afar_is_named_there(cli):
    lines = ["t0 = sin(c)", *(f"t{k + 1} = {k + 2}*t{k}" for k in range(60)), "y = t60 + c"]
    found = texts(cli.done("graph", "\n".join(lines), "--at", "c=1", "-f", "svg").out)
    assert "from c" in found
