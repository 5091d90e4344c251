"""A page of J has PyTorch's lines that collect it, and they do; `--numeric` leaves the formulas out."""

import json

import numpy as np
import pytest

SYSTEMS = [
    ("y = x**2", {"x": [1.0, 2.0, 3.0]}),
    ("y = x @ M", {"x": [[2.0, 1.0]], "M": [[1.0, 2.0], [3.0, 4.0]]}),
    ("y0 = 3*a**2; y1 = a**2 + 2*b**3; y2 = 10*b", {"a": 1.0, "b": 2.0}),
    ("p = v*out; q = out**2", {"v": [1.0, 2.0], "out": [3.0, 4.0]}),
]


@pytest.mark.parametrize(("system", "at"), SYSTEMS)
def test_the_lines_of_pytorch_collect_the_jacobian(cli, tmp_path, system, at):
    point = ",".join(f"{name}={json.dumps(value)}" for name, value in at.items())
    asked = ("jacobian", system, "--at", point, "--wrt", ",".join(at))
    page = cli.done(*asked).out
    block = page.partition("in PyTorch, one gradient per row:\n")[2].partition("\n\n")[0]
    code = [line[2:] for line in block.splitlines()]
    assert code, page
    leaves = [f"{name} = torch.tensor({value}, requires_grad=True)" for name, value in at.items()]
    script = tmp_path / "collect.py"
    script.write_text("\n".join(["import torch", *leaves, system, *code, "print(J.tolist())"]))
    collected = json.loads(cli.done("run", "--quiet", str(script)).out)
    expected = json.loads(cli.done(*asked, "-f", "json").out)["jacobian"]
    np.testing.assert_allclose(collected, expected, rtol=1e-6)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_lines_fit_the_page(cli, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    page = cli.done("jacobian", "y=x**2", "--at", "x=[1,2,3]").out
    assert max(map(len, page.splitlines())) <= columns
