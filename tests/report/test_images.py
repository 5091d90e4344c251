"""Images on pages: which arrays are shown so, what stands for their pixels, and what is in the files."""

from __future__ import annotations

import json
import re
import struct
import zlib
from base64 import b64decode

import numpy as np
import pytest
from click import unstyle

from gradcli.pages.images import pixels, strongest
from gradcli.pages.results import PLAIN
from gradcli.pages.sections import Images, Name, Panel
from gradcli.report.image_text import image_lines
from gradcli.report.images import colours, png_address, reduced
from gradcli.report.text_math import TextWriter

SQUARE = np.arange(64.0).reshape(8, 8)
SIGNED = Panel((Name("g"),), SQUARE - 31.5, signed=True)
SYSTEM = ("y = sum(x**2)",)


def lines(*panels, room=80, styled=False, blocks=None):
    return image_lines(Images(panels), TextWriter(PLAIN, 6), room, styled, blocks)


@pytest.fixture
def point(tmp_path):
    np.save(tmp_path / "x.npy", SQUARE - 20)
    return f"x=@{tmp_path / 'x.npy'}"


def test_pixels_of_channels_first_and_last_are_the_same():
    first = np.random.default_rng(0).normal(size=(3, 8, 9))
    last = np.moveaxis(first, 0, -1)
    assert (pixels(first) == pixels(last)).all()
    picked = strongest(first)
    assert (np.abs(picked) == np.abs(first).max(axis=0)).all()
    assert np.isin(picked, first).all()


def test_a_smaller_image_has_the_means_or_the_strongest():
    numbers = np.random.default_rng(0).normal(size=(12, 9))
    small = reduced(Panel(("x",), numbers), 4, 3).pixels
    np.testing.assert_allclose(small, numbers.reshape(4, 3, 3, 3).mean(axis=(1, 3)))
    strong = reduced(Panel(("x",), numbers, True), 4, 3).pixels
    assert np.abs(strong).max() == np.abs(numbers).max()
    assert reduced(Panel(("x",), numbers), 5, 9).pixels.shape == (4, 3)


@pytest.mark.parametrize("room", [30, 60, 80, 120])
@pytest.mark.parametrize("styled", [False, True])
def test_images_fit_the_page(room, styled):
    large = Panel(("x",), np.random.default_rng(0).normal(size=(100, 90)), True)
    for line in lines(large, SIGNED, large, room=room, styled=styled):
        assert len(unstyle(line)) <= room


def test_an_address_holds_the_pixels():
    wanted = colours(SIGNED)
    data = b64decode(png_address(wanted).partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (8, 8)
    start = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[start - 4 : start])
    raw = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + size]), np.uint8).reshape(8, 25)
    assert (raw[:, 1:].reshape(8, 8, 3) == wanted).all()
    (check,) = struct.unpack(">I", data[start + 4 + size : start + 8 + size])
    assert check == zlib.crc32(data[start : start + 4 + size])


def test_a_page_shows_an_input_beside_its_gradient(cli, point):
    out = cli.done("backward", *SYSTEM, "--at", point, "--only", "images").out
    assert re.match(r"x \(8×8\) +x\.grad\n", out)
    assert out.splitlines()[-1].split() == ["-20", "░▒▓█", "43", "-86", "==", "--", "-", "0", "+", "++", "##", "86"]
    assert "images" not in cli.done("backward", *SYSTEM, "--at", point, "-f", "json").out


def test_latex_and_markdown_have_images(cli, point):
    latex = cli.done("backward", *SYSTEM, "--at", point, "-f", "latex", "--standalone", "--only", "images").out
    assert r"\usepackage{xcolor}" in latex
    assert latex.count(r"\begin{picture}(8,8)") == 2
    assert "xcolor" not in cli.done("backward", "y=x**2", "--at", "x=1", "-f", "latex", "--standalone").out
    assert "```\nx (8×8)" in cli.done("backward", *SYSTEM, "--at", point, "-f", "markdown", "--only", "images").out


def test_pictures_have_images(cli, point):
    text = cli.done("graph", *SYSTEM, "--at", point).out
    assert re.search(r"^x \(8×8\) +x̄$", text, re.MULTILINE)
    svg = cli.done("graph", *SYSTEM, "--at", point, "-f", "svg").out
    assert svg.count("<image ") == 4  # two, each with its scale
    assert svg.count("data:image/png;base64,") == 4
    assert "<image" not in cli.done("graph", *SYSTEM, "--shape", "x=8x8", "-f", "svg").out


def test_a_script_shows_the_gradient_of_an_image(cli, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import torch\nx = torch.ones(1, 9, 9, requires_grad=True)\n(x**2).sum().backward()\n", "utf-8")
    assert re.search(r"^x \(1×9×9\) +x\.grad$", cli.done("run", str(script)).out, re.MULTILINE)
    (line,) = cli.done("run", "-f", "json", str(script)).out.splitlines()
    assert json.loads(line)["leaves"]["x"]["after"][0][0][0] == 2
