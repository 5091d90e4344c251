"""What notebooks show: graphs as pictures, Jacobians as mathematics."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from conftest import long

import gradcli
from gradcli import InputError, check, parse, symbolic_jacobian


def texts(graph):
    return [node.text for node in ET.fromstring(graph._repr_svg_()).iter("{http://www.w3.org/2000/svg}text")]


def test_a_graph_is_a_picture_with_formulas():
    found = texts(parse("y = x**2 + x"))
    assert "t1 = x**2" in found
    assert "∂t1/∂x = 2*x" in found
    assert any(text.endswith("= 2*x + 1") for text in found)


JACOBIANS = [
    ("y0 = 3*x0**2; y1 = x0**2 + 2*x1**3", {}),
    ("y = x @ M", {"x": (2,), "M": (2, 2)}),
    ("y = x/λ", {}),
    ("a = sin(x)*exp(x)/(1 + x**2); y = a**7*cos(a)*log(a)**2; z = sqrt(a)*tanh(a)**3", {}),
]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_sets_a_jacobian(tmp_path):
    found = [symbolic_jacobian(parse(text, **shapes))._repr_latex_() for text, shapes in JACOBIANS]
    body = "\n\n".join(found)
    page = rf"\documentclass{{article}}\usepackage{{amsmath}}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "j.tex").write_text(page, "utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "j.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_jacobian_is_a_matrix():
    found = symbolic_jacobian(parse("y0 = 3*x0**2; y1 = 10*x1"))._repr_latex_()
    assert r"\frac{\partial (y_{0}, y_{1})}{\partial (x_{0}, x_{1})}" in found
    assert r"6 x_{0} & 0 \\ 0 & 10" in found


def test_verdicts_are_a_page():
    found = check("y = x @ M; x.grad = v @ M; M.grad = outer(x, v)", x=(2,), M=(2, 2))
    assert not found.right
    assert [v.verdict for v in found.verdicts] == ["wrong", "right"]
    assert "`x.grad = v @ M`   wrong: in ∂y/∂x you wrote M.T @ v: it is M @ v;" in found._repr_markdown_()
    assert str(found).startswith("x.grad = v @ M   wrong: in ∂y/∂x you wrote M.T @ v: it is M @ v;")


@pytest.mark.parametrize("options", [{"tolerance": float("nan")}, {"trials": 0}, {"seed": -1}, {"tolerance": 0}])
def test_numbers_that_make_no_sense_are_told(options):
    with pytest.raises(InputError, match="tolerance must be above 0"):
        check("f = x; df/dx = 1", **options)


def page_of(document):
    assert document.startswith("<!doctype html>\n")
    return ET.fromstring(document.partition("\n")[2])


def test_html_holds_steps_images_and_hostile_names(cli, tmp_path):
    steps = cli.done("backward", "y=x**2+x", "--at", "x=3", "--steps", "-f", "html").out
    assert len(list(page_of(steps).iter("tr"))) > 3
    np.save(tmp_path / "x.npy", np.eye(9))
    images = cli.done("backward", "y=sum(x**2)", "--at", f"x=@{tmp_path / 'x.npy'}", "-f", "html").out
    assert len(list(page_of(images).iter("{http://www.w3.org/2000/svg}image"))) == 4
    notes = cli.done("backward", "y=abs(x)", "--at", "x=0", "-f", "html").out
    assert "has no derivative" in notes
    assert "<h2>Notes</h2>" in notes


def test_an_explanation_has_pages_in_every_format():
    shown = gradcli.explain("y = x**2", {"x": 3.0})
    assert shown.page() == str(shown)
    assert ET.fromstring(shown.page("html")).get("class") == "gradcli"
    assert shown.page("markdown").startswith("### System")


class Notebook:
    """What IPython passes to an extension: it keeps the magics."""

    def __init__(self):
        self.magics = {}

    def register_magic_function(self, function, kind, name):
        self.magics[name] = function
        assert kind == "line_cell"


@long
def test_the_magic_runs_a_cell(capsys):
    notebook = Notebook()
    gradcli.load_ipython_extension(notebook)
    script = "import torch\nx = torch.tensor(3., requires_grad=True)\n(x**2).backward()\n"
    shown = notebook.magics["gradcli"]("run", script)
    assert "x.grad = v·∂y/∂x = 1·(2*x) = 1·6 = 6" in repr(shown)
    assert shown._repr_html_() is None
    frame = notebook.magics["gradcli"]("run -f html", script)
    assert frame._repr_html_().startswith("<iframe ")
    assert notebook.magics["gradcli"]("backward --at x=[", "y = x**2") is None
    assert "error: " in capsys.readouterr().err
