"""The guide's table of what happens to a product in a script: its functions are called, in its order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gradcli
from gradcli.cli.main import gradcli as command
from gradcli.cli.main import run
from gradcli.pytorch import recipes

HERE = Path(gradcli.__file__).parent
TABLE = (HERE / "guide/development.md").read_text("utf-8").partition("## From a line of a script to its page")[2]
STEPS = re.findall(r"^\| `gradcli/(.+):(\w+)` \|", TABLE.partition("\n## ")[0], re.MULTILINE)


def test_the_functions_of_the_table_are_called_in_its_order(tmp_path, capsys):
    script = tmp_path / "product.py"
    script.write_text(
        "import torch\nx, y = torch.tensor([2.0, 3.0], requires_grad=True)\nz = x*y\nz.backward()\n", "utf-8"
    )
    calls = []

    def note(frame, event, _):
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event == "call" and path.is_relative_to(HERE):
            owner = frame.f_locals.get("self")
            calls.extend((path.relative_to(HERE).as_posix(), n) for n in (name, type(owner).__name__))

    recipes._RECIPES.clear()  # of scripts that ran before it in this process
    sys.setprofile(note)
    try:
        run(command, ["run", str(script)])
    finally:
        sys.setprofile(None)
    assert "z = x*y" in capsys.readouterr().out
    assert len(STEPS) == 13
    product = calls.index(STEPS[0])
    first = [calls.index(step, product) for step in STEPS]
    assert first == sorted(first)
