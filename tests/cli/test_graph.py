"""gradcli graph: which picture is drawn, into which file, and what is refused."""

from __future__ import annotations

import re

import pytest

STATEMENTS = (
    "c1=conv2d(x, W1)", "r1=relu(c1)", "p1=max_pool2d(r1, 2)", "f=reshape(p1, (1, 8))", "z=linear(f, W2, b2)",
    "loss=cross_entropy(z, [1])",
)  # fmt: skip
CNN = (*STATEMENTS, "--shape", "x=1x1x5x5,W1=2x1x2x2,W2=3x8,b2=3")
BOX = {
    "text": r"^[ │├╰─┼┤┴]*[○●◆](?! leaf)",
    "svg": r'<rect class="gg-(box|leaf|output)" [^>]*rx="\d+"/>\n<(?!text class="gg-local")',
    "dot": r"^  n\d+ \[",
    "mermaid": r"^  n\d+[(\[]",
    "tikz": r"^\\node\[(leaf|intermediate|output),",
    "html": r' data-box="',
}


def test_the_ending_of_the_output_chooses_the_format(cli, tmp_path):
    file = tmp_path / "p.txt"
    file.write_text("old")
    outcome = cli.done("graph", "y=x**2", "--at", "x=3", "--output", str(file))
    assert outcome.out == ""
    assert re.fullmatch(rf"wrote {re.escape(str(file))}: [a-z ]+, \d+ nodes, \d+ (bytes|kB)\n", outcome.err)
    assert file.read_text("utf-8") == cli.done("graph", "y=x**2", "--at", "x=3").out
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["p.txt", "p.gv", "p.picture", "-"])
def test_a_file_whose_ending_says_nothing_else_has_the_format_asked_for(cli, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    out = cli.done("graph", "y=x**2", "-f", "dot", "--output", name).out
    assert (out or (tmp_path / name).read_text("utf-8")).startswith("digraph")


def test_a_picture_that_nobody_could_look_at_is_refused_before_it_is_computed(cli, monkeypatch):
    lines = "\n".join(f"t{k + 1} = sin(t{k}) + {k + 2}*t{k // 2}" for k in range(100))
    monkeypatch.setattr("gradcli.pages.picture.picture.picture", None)
    monkeypatch.setattr("gradcli.cli.commands.graph.LAID_OUT", 200)
    said = cli.refused("graph", lines, "--all", "-f", "svg")
    assert "301 boxes, and more than 200" in said
    assert "leave out --all" in said
    assert "-f text" in said


def test_more_arrows_than_mermaid_draws_are_told(cli):
    lines = "\n".join(f"t{k + 1} = sin(t{k}) + {k + 2}*t{k // 2}" for k in range(200))
    assert "maxEdges" in cli.done("graph", lines, "--all", "-f", "mermaid").err
    assert cli.done("graph", "y=x**2", "-f", "mermaid").err == ""


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("svg", "<svg "), ("dot", "digraph"), ("mmd", "%%{init"), ("tex", "% needs"), ("gv", "dig")],
)
def test_endings(ending, begins, cli, tmp_path):
    file = tmp_path / f"p.{ending}"
    cli.done("graph", "y=x**2", "--output", str(file))
    assert file.read_text("utf-8").startswith(begins)


@pytest.mark.parametrize("style", BOX)
def test_a_call_is_one_box_in_each_format_until_it_is_opened(style, cli):
    """Four inputs and six statements are ten boxes; the definitions of a pool and of a loss are more."""
    counts = []
    for more in ((), ("--open", "p1"), ("--open", "p1,loss"), ("--open", "all")):
        out = re.sub("<template.*?</template>", "", cli.done("graph", *CNN, "-f", style, *more).out, flags=re.DOTALL)
        counts.append(len(re.findall(BOX[style], out, re.MULTILINE)))
    assert counts[0] == len(STATEMENTS) + 4
    assert counts == sorted({*counts})


def test_an_onnx_model_opens_too(cli, tmp_path):
    pytest.importorskip("onnx")
    model = str(tmp_path / "cnn.onnx")
    cli.done("export", *CNN, "--to", "onnx", "--what", "value", "--output", model)
    closed, whole = (cli.done("graph", "-F", model, *more).out for more in ((), ("--open", "all")))
    boxes = [len(re.findall(BOX["text"], out, re.MULTILINE)) for out in (closed, whole)]
    assert boxes[0] < boxes[1]
    assert "max_pool2d(" in closed
    assert "max_pool2d(" not in whole
    assert "argmax" not in closed
