"""Pictures for Graphviz, Mermaid and LaTeX: each is accepted by the program that draws it, where that is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from systems import SYSTEMS

from gradcli.errors import InputError
from gradcli.report.pictures.render import converter

LATEX = r"""\documentclass{article}
\usepackage[paperwidth=150cm,paperheight=250cm,margin=1cm]{geometry}
\usepackage{amsmath}
\usepackage{tikz}
\begin{document}
%s
\end{document}
"""
BROWSER = {"args": ["--no-sandbox"]}  # which mmdc would download otherwise
if chromium := shutil.which("chromium") or shutil.which("google-chrome"):
    BROWSER["executablePath"] = chromium


def tikz_is_there():
    if not shutil.which("pdflatex") or not shutil.which("kpsewhich"):
        return False
    return subprocess.run(["kpsewhich", "tikz.sty"], capture_output=True, check=False).returncode == 0


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz's dot")
@pytest.mark.parametrize("name", SYSTEMS)
def test_graphviz_draws_it(name, cli, tmp_path):
    file = tmp_path / "p.dot"
    cli.done("graph", *SYSTEMS[name], "--output", str(file))
    plain = run(["dot", "-Tplain", "p.dot"], tmp_path)
    source = file.read_text("utf-8")
    assert plain.count("\nnode ") == len(re.findall(r"^  n\d+ \[", source, re.MULTILINE))
    assert plain.count("\nedge ") == source.count(" -> ")


@pytest.mark.skipif(not shutil.which("mmdc"), reason="needs Mermaid's mmdc")
@pytest.mark.parametrize("name", SYSTEMS)
def test_mermaid_draws_it(name, cli, tmp_path):
    cli.done("graph", *SYSTEMS[name], "--output", str(tmp_path / "p.mmd"))
    (tmp_path / "browser.json").write_text(json.dumps(BROWSER), "utf-8")
    run(["mmdc", "-p", "browser.json", "-i", "p.mmd", "-o", "p.svg"], tmp_path)
    drawn, source = (tmp_path / "p.svg").read_text("utf-8"), (tmp_path / "p.mmd").read_text("utf-8")
    assert "Syntax error" not in drawn
    assert len(re.findall(r"<g class=\"node ", drawn)) == len(re.findall(r"^  \w+[\[(]", source, re.MULTILINE))
    for sign in ("x < 1", "einsum"):
        assert (sign in cli.done("graph", *SYSTEMS[name]).out) <= (sign.replace("<", "&lt;") in drawn)


@pytest.mark.skipif(not tikz_is_there(), reason="needs pdflatex with TikZ")
def test_latex_draws_all_of_them(cli, tmp_path):
    pictures = []
    for k, arguments in enumerate(SYSTEMS.values()):
        cli.done("graph", *arguments, "--output", str(tmp_path / f"picture{k}.tex"))
        pictures.append(rf"\noindent\input{{picture{k}.tex}}\clearpage")
    (tmp_path / "page.tex").write_text(LATEX % "\n".join(pictures), "utf-8")
    run(["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"], tmp_path)
    assert "Missing character" not in (tmp_path / "page.log").read_text("latin-1")


def test_a_picture_that_tex_cannot_measure_is_refused(cli):
    lines = "\n".join(["t0 = sin(x)", *(f"t{k + 1} = {k + 2}*t{k}" for k in range(300))])
    assert "points, and TeX measures no more than" in " ".join(
        cli.refused("graph", lines, "--all", "-f", "tikz").split()
    )
    assert cli.done("graph", lines, "--all", "-f", "svg").out.startswith("<svg")


def test_other_languages_have_a_horizontal_layout(cli):
    system = ("y=x**2", "--at", "x=3", "--layout", "horizontal", "-f")
    assert "rankdir=LR" in cli.done("graph", *system, "dot").out
    assert "flowchart LR" in cli.done("graph", *system, "mermaid").out
    assert "anchor=east" in cli.done("graph", *system, "tikz").out
    assert re.search(r'<path d="M[\d.]+ [\d.]+H', cli.done("graph", *system, "html").out)
    assert "--layout" in cli.refused("graph", *system[:-1])


@pytest.mark.parametrize(("ending", "start"), [("pdf", b"%PDF-"), ("png", b"\x89PNG")])
def test_pdf_and_png_are_files(ending, start, cli, tmp_path):
    try:
        converter()
    except InputError as error:
        pytest.skip(str(error))
    cli.done("graph", "y=x**2", "--at", "x=3", "--output", str(tmp_path / f"y.{ending}"))
    assert (tmp_path / f"y.{ending}").read_bytes().startswith(start)
    script = tmp_path / "s.py"
    script.write_text("import torch\nx = torch.tensor(3., requires_grad=True)\n(x**2).backward()\n", "utf-8")
    cli.done("run", "--graph", str(tmp_path / f"z.{ending}"), str(script))
    assert (tmp_path / f"z.{ending}").read_bytes().startswith(start)


def test_without_cairosvg_the_error_says_what_to_install(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    said = cli.refused("graph", "y=x**2", "--at", "x=3", "--output", str(tmp_path / "y.pdf"))
    assert 'pip install "gradcli[picture]"' in said
    assert not (tmp_path / "y.pdf").exists()
