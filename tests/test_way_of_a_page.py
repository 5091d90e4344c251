"""The way of `x*y` in a script to its page: how many functions are called between the backward and the printed page.

A reader of the page's code meets these functions, in these files.  Both counts may fall.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gradcli
from gradcli.cli.main import gradcli as command
from gradcli.cli.main import run

HERE = str(Path(gradcli.__file__).parent) + os.sep
LEAF = "torch.tensor({}., requires_grad=True)\n"
SCRIPT = f"import torch\nx = {LEAF.format(2)}y = {LEAF.format(3)}z = x*y\nz.backward()\n"
ENTERED = ("Explainer.begins", "Explainer.is_done")
CALLS, FILES = 2000, 79


def calls_of_the_page(path):
    """Return the files of the functions that are called for the page of a script, one a call."""
    result, depth = [], 0

    def note(frame, event, _):
        nonlocal depth
        code = frame.f_code
        if not code.co_filename.startswith(HERE) or event not in ("call", "return"):
            return
        is_entered = code.co_qualname in ENTERED
        if event == "call":
            depth += is_entered
            if depth:
                result.append(code.co_filename.removeprefix(HERE))
        else:
            depth -= is_entered

    run(command, ["run", str(path)])  # what is imported and prepared once is not on the way
    sys.setprofile(note)
    try:
        run(command, ["run", str(path)])
    finally:
        sys.setprofile(None)
    return result


def test_the_way_of_a_product_to_its_page_is_no_longer_than_it_was(tmp_path, capsys):
    path = tmp_path / "product.py"
    path.write_text(SCRIPT, "utf-8")
    calls = calls_of_the_page(path)
    assert capsys.readouterr().out.count("z = x*y = 6") == 2
    assert len(calls) <= CALLS
    assert len({*calls}) <= FILES


def test_the_way_of_a_loop_grows_with_its_rounds(tmp_path):
    counts = []
    for rounds in (200, 400):
        path = tmp_path / f"{rounds}.py"
        loop = f"c = torch.ones({rounds})\nh = t*1\nfor i in range({rounds}):\n    h = (h + t)*c[i]\nh.backward()\n"
        path.write_text(f"import torch\nt = {LEAF.format(3)}{loop}", "utf-8")
        counts.append(len(calls_of_the_page(path)))
    assert counts[1] <= 2.2 * counts[0]
