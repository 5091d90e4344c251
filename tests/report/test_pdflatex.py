"""LaTeX compiles, and fits its page: pasted into a plain article, and as a document of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from conftest import long, some

from gradcli.report.documents import latex

SAMPLES = Path(__file__).parents[2] / "samples"
NETWORK = "X=[[1,2],[3,4]],W1=[[1,0.1,0.3],[0.2,1,0.2]],b1=[0.1,0.2,0.3],W2=[[1,2],[0.3,1],[2,1]]"
MAIN = ("backward", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100")
PAGES = {
    "main": MAIN,
    "steps": (*MAIN, "--steps"),
    "formulas": ("backward", "h=x**2; y=sin(h)*exp(-x)/sqrt(1+x)", "--steps"),
    "matrix": ("backward", "out=x@M_1", "--at", "x=[[1,2],[3,4]],M_1=[[0.1,1e-7],[1e300,-4]]", "--v", "ones"),
    "numbers": ("jacobian", "y=1e-7*x**2+1e300**x+(1/3)**x+(x/z)**2+x*(-0.5*z-1.5)+(-0.5)**2*x+1e-20*x**2.5"),
    "names": ("backward", "loss_total=theta_12*alpha+lambda_*under_score_d+x_1*x1+y_hat*eps*_", "--retain", "all"),
    "scripts": ("backward", "größe = вес*変数 + é**2; ŷ = größe*x̂", "--steps"),
    "not finite": ("backward", "y=[log(x), -1/x, x*nan]", "--at", "x=0", "--v", "ones"),
    "calls": ("backward", "y=x**2", "--at", "x=1", "--v", "1,10,100,1000", "--steps"),
    "wide": ("jacobian", "y=layer_norm(x, 4)*exp(z)+softmax(x)", "--shape", "x=4,z=4"),
    "long": ("jacobian", "y=" + "+".join(f"sin({k}*x{k % 3})*exp(-x0*{k})" for k in range(1, 12))),
    "network": (
        "backward", "h=relu(X@W1+b1); p=softmax(h@W2); loss=-mean(log(p[:,0]))", "--at", NETWORK, "--steps",
    ),
    "hessian": ("hessian", "y=x**2*z+sin(z)", "--at", "x=1,z=2"),
    "hessian product": ("hessian", "y=sum(x**3)", "--at", "x=[1,2,3]", "--u", "x=[1,0,0]"),
    "jvp": ("jvp", "y0=x0**2*x1", "y1=sin(x1)", "--u", "x0=1,x1=2", "--at", "x0=1,x1=2", "--steps"),
    "jacobian steps": ("jacobian", "y0=sin(a*b)*c", "y1=a**b", "--at", "a=1.5,b=2.5,c=0.3", "--steps"),
    "right": ("check", "y=x**2*sin(x)", "dy/dx=2*x*sin(x)+x**2*cos(x)"),
    "matrix form": ("backward", "h=X@W1; y=sum(relu(h)*v1)", "--shape", "X=8x16,W1=16x12,v1=8x12"),
    "forward": ("jvp", "y=x**2*z_1", "--at", "x=1,z_1=2", "--u", "x=1,z_1=3", "--steps", "--v", "2"),
    "taylor": ("jacobian", "y=exp(-x)*sin(x)", "--order", "8", "--at", "x=0.3"),
}  # fmt: skip
needs_pdflatex = pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")


@pytest.fixture(scope="module")
def page(cli):
    """Return the LaTeX of one of PAGES."""
    return cache(lambda name: cli.done(*PAGES[name], "-f", "latex").out)


def compiled(folder, text: str) -> str:
    """Return the log of pdflatex, which found no error."""
    (folder / "page.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = done.stdout.decode(errors="replace")
    lines = log.splitlines()
    assert [line + lines[k + 1] for k, line in enumerate(lines) if line.startswith(("!", "l."))] == []
    assert done.returncode == 0
    return log


def too_wide(log: str) -> list[str]:
    """Return what goes beyond the margin by more than a letter."""
    found = re.findall(r"Overfull \\hbox \((\d+)[\d.]*pt too wide\).*", log)
    return [points for points in found if int(points) > 10]


@long
@needs_pdflatex
def test_every_page_goes_into_a_plain_article(page, tmp_path):
    body = "\n\\clearpage\n".join(page(name) for name in PAGES if name != "scripts")
    log = compiled(
        tmp_path, f"\\documentclass{{article}}\n\\usepackage{{amsmath}}\n\\begin{{document}}\n{body}\\end{{document}}\n"
    )
    assert too_wide(log) == []


WRONG = ("check", "y=x@A@x", "--shape", "x=2,A=2x2", "x.grad=2*v*A@x", "dy/dA=outer(x,x)", "d2y/dx2=2*A")


@needs_pdflatex
def test_a_wrong_claim(cli, tmp_path):
    outcome = cli(*WRONG, "-f", "latex", "--standalone")
    assert (outcome.status, "wrong" in outcome.out) == (1, True)
    assert too_wide(compiled(tmp_path, outcome.out)) == []


@needs_pdflatex
@pytest.mark.parametrize("name", ["retain_grad", "hooks", "second_derivative"])
def test_a_script_explained(cli, tmp_path, name):
    assert too_wide(compiled(tmp_path, cli.done("run", "-f", "latex", str(SAMPLES / f"{name}.py")).out)) == []


@long
@needs_pdflatex
@pytest.mark.parametrize("name", ["steps", "hessian", "jvp", "right", "scripts", "network", "names"])
def test_a_document_of_its_own(cli, page, tmp_path, name):
    """Where TeX has TikZ, the picture is compiled, too."""
    document = cli.done(*PAGES[name], "-f", "latex", "--standalone").out
    assert document.endswith(latex.document(page(name)).partition("\\begin{document}\n")[2])
    assert too_wide(compiled(tmp_path, document)) == []


def test_a_document_has_a_title_and_the_picture_of_the_system(cli):
    """In LaTeX and in Markdown; a page that is no document, and chosen sections, have neither."""
    drawn = {style: cli.done("graph", *MAIN[1:], "-f", style).out for style in ("tikz", "mermaid")}
    document = cli.done(*MAIN, "-f", "latex", "--standalone").out
    assert r"\section*{Gradients of $y_{0}$, $y_{1}$, $y_{2}$ with respect to $x_{0}$, $x_{1}$}" in document
    assert drawn["tikz"].rstrip() in document
    document = cli.done(*MAIN, "-f", "markdown", "--standalone").out
    assert document.startswith("# Gradients of `y0`, `y1`, `y2` with respect to `x0`, `x1`\n\n```mermaid\n")
    assert f"```mermaid\n{drawn['mermaid']}```\n\n### System\n" in document
    assert document.endswith(cli.done(*MAIN, "-f", "markdown").out)
    for more in (("-f", "latex"), ("-f", "markdown"), ("-f", "latex", "--standalone", "--only", "grad")):
        assert not re.search("tikzpicture|mermaid|Gradients of", cli.done(*MAIN, *more).out)


def test_a_file_of_markdown_is_a_document(cli, tmp_path):
    cli.done(*MAIN, "--output", str(tmp_path / "y.md"))
    assert (tmp_path / "y.md").read_text("utf-8") == cli.done(*MAIN, "-f", "markdown", "--standalone").out


@pytest.mark.parametrize("name", some(PAGES))
def test_a_document_is_the_page_between_its_beginning_and_its_end(page, name):
    before, body = latex.document(page(name)).split("\\begin{document}\n")
    assert body == page(name).rstrip("\n") + "\n\\end{document}\n"
    assert before.startswith("\\documentclass{article}\n")
    foreign = {f"{ord(c):04X}" for c in page(name) if not c.isascii()}
    assert set(re.findall(r"DeclareUnicodeCharacter\{(\w+)\}", before)) == foreign


@pytest.mark.parametrize("style", [(), ("-f", "json"), ("-f", "csv")])
def test_only_latex_and_markdown_are_documents_of_their_own(cli, style):
    outcome = cli("backward", "y=x**2", "--at", "x=1", *style, "--standalone")
    assert outcome.status == 2
    assert "--standalone makes a document of LaTeX or Markdown" in outcome.err
    assert "-f latex" in outcome.err
