"""`--only pytorch` is a script that PyTorch runs, to the same gradients: those it printed are recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

RECORDED = json.loads(Path(__file__).with_name("torch_scripts.json").read_text("utf-8"))


@pytest.mark.parametrize("name", RECORDED)
def test_pytorch_has_the_same_gradients(cli, name):
    arguments = RECORDED[name]["arguments"]
    script = cli.done("backward", *arguments, "--only", "pytorch").out
    assert script == RECORDED[name]["script"]  # if it is another, `record_torch.py` runs it
    found = cli.json("backward", *arguments)
    mine = found["grad"] | found.get("retained", {})
    assert mine.keys() == RECORDED[name]["grad"].keys()
    for leaf, grad in RECORDED[name]["grad"].items():
        assert_allclose(np.array(mine[leaf], dtype=float), np.array(grad), rtol=1e-12, atol=1e-14, err_msg=leaf)


def test_no_line_of_a_script_is_broken(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    script = cli.done("backward", *RECORDED["large v"]["arguments"], "--only", "pytorch").out
    compile(script, "script", "exec")
    assert max(map(len, script.splitlines())) > 40
