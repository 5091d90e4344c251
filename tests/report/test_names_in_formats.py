"""Every name is text in every format, whatever its letters: scripts, and files of models, may call things anything."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gradcli.notation.latex_names import LatexNames
from gradcli.pages.sections import Code, Equal, Equations, Grad, Grid, Line, Name, Page, Partial, Section, Text
from gradcli.report.documents.latex import document
from gradcli.report.render import Look, render_pages
from gradcli.text.wrapping import visible

PARTS = [
    *"\\{}$%#&^_~`|<>*[]()!'\"=-+:;,/@? \n\r\t\x7f\0\x85\u2028\u202e\u0304\ud800中λé😀av.0",
    *("```", "x1", "\x1b[2J", "\\input{", "\\write18{", "\\end{align*}", "\\end{verbatim}", "<script>", "<!--"),
    *("![a](b)", "[a]: b", "&lt;", "\n```\n", "\n\n# ", "$$", "^^M", "http://a.b"),
]
# A textbook's name is printed in another way: one of these letters makes it a name that is shown as it is.
names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map(lambda parts: "nn" + "".join(parts) + "%q")


def page(name):
    """Return a page with a name wherever one stands."""
    equation = Line((Name(name), Equal((Grad(name), Partial("y", name)))), (f"of {name}",), strong=True)
    blocks = (
        Text(("the adjoint of ", Name(name), f": {name} is the script's own")),
        Text((f"{name}: it begins a sentence",)),
        Equations((equation,)),
        Grid(("name", f"of {name}"), ((Name(name), name),)),
        Code((f"print({name})", name), f"with {name}"),
    )
    return Page((Section("grad", blocks, ("of ", Name(name))),))


def rendered(name, style):
    return render_pages([page(name)], Look(style))


def no_hidden(text):
    assert all(c.isprintable() or c == "\n" for c in text)


@given(names)
def test_text_shows_names(name):
    text = rendered(name, "table")
    no_hidden(text)
    joined = re.sub(r"\s", "", text)
    assert joined.count(re.sub(r"\s", "", visible(name))) >= 3


ALLOWED = {"paragraph", "heading", "fence", "inline", "table", "thead", "tbody", "tr", "th", "td"}
INLINE = {"text", "code_inline", "strong_open", "strong_close", "softbreak", "text_special"}


@given(names)
def test_markdown_has_no_markup_of_names(name):
    text = rendered(name, "markdown")
    no_hidden(text)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = [t.type.removesuffix("_open").removesuffix("_close") for t in tokens]
    assert set(kinds) <= ALLOWED
    assert kinds.count("heading") == 2  # its begin and its end
    assert [t.info for t in tokens if t.type == "fence"] == ["math", "python"]
    inline = [child for t in tokens for child in t.children or ()]
    assert {child.type for child in inline} <= INLINE
    assert {child.content for child in inline if child.type == "code_inline"} >= {visible(name)}
    code = next(t for t in tokens if t.info == "python")
    assert code.content == f"print({visible(name)})\n{visible(name)}\n"


UNESCAPED = {r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\ ": " "}
UNESCAPED |= {f"\\{c}": c for c in "&%$#_{}"}
_ESCAPE = re.compile("|".join(map(re.escape, UNESCAPED)))


def plain(latex):
    """Return what the LaTeX of a literal name shows."""
    (body,) = re.fullmatch(r"\\(?:mathtt|texttt)\{(.*)\}", latex).groups()
    rest = _ESCAPE.sub("", body)
    assert not re.search(r"[\\{}$%&#^_~]", rest)
    return _ESCAPE.sub(lambda match: UNESCAPED[match[0]], body)


@given(names)
def test_latex_shows_names(name):
    shown = plain(LatexNames()(name))
    assert shown == "".join(c if c.isascii() else f"#{ord(c):x}" for c in visible(name))
    text = rendered(name, "latex")
    no_hidden(text)
    before, _, shown = text.partition("\n\\begin{verbatim}\n")
    assert not re.search(r"\\(input|write|verbatim)", before)
    assert before.count(r"\end{align*}") == shown.count(r"\end{verbatim}") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    draw = random.Random(0)
    drawn = ["nn" + "".join(draw.choices(PARTS, k=4)) + "%q" for _ in range(60)] + [f"n{part}" for part in PARTS]
    text = document("\n".join(rendered(name, "latex") for name in drawn))
    (tmp_path / "names.tex").write_text(text, "utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "-draftmode", "names.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")


HOSTILE = "a\n```\n<script>alert(1)</script> `x` \\input{y}$%&#^_~{}| \x1b[31m"
SCRIPT = f"""\
import torch
name = {HOSTILE!r}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter(name, torch.nn.Parameter(torch.tensor([2., 3.])))
        self.add_module("\\\\write18{{ls}} <b>", torch.nn.Linear(2, 1))
    def forward(self, x):
        return self._modules["\\\\write18{{ls}} <b>"](x*getattr(self, name))
methods = {{"forward": staticmethod(lambda ctx, x: x*2), "backward": staticmethod(lambda ctx, g: g*2)}}
F = type("\\\\input{{F}}<i>", (torch.autograd.Function,), methods)
m = Model()
F.apply(m(torch.tensor([1., 2.]))).sum().backward()
"""


def test_a_script_may_call_its_parts_anything(cli):
    pages = {style: cli.done("run", "-f", style, "-c", SCRIPT).out for style in ("table", "json", "markdown", "latex")}
    leaves = json.loads(pages["json"])["leaves"]
    assert any(name.endswith(HOSTILE) for name in leaves)
    no_hidden(pages["table"] + pages["markdown"] + pages["latex"])
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(pages["markdown"])
    parts = [part for t in tokens for part in (t, *(t.children or ()))]
    assert not any(part.type.startswith(("html", "link", "image")) for part in parts)
    assert any(visible(HOSTILE) in part.content for part in parts if part.type == "code_inline")
    prose = re.sub(r"(?s)\\begin\{verbatim\}.*?\\end\{verbatim\}", "", pages["latex"])
    assert not re.search(r"\\(input|write)", prose)
    assert r"\textbackslash{}input\{y\}" in prose
