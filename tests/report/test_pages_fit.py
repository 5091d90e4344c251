"""Pages fit: no line is wider than the terminal, and none is longer than a reader's patience."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from conftest import some

from gradcli.algebra import symbolic_jacobian as jacobian
from gradcli.errors import InputError, Notes, Source, Span, in_lines
from gradcli.report.documents import table
from gradcli.text.wrapping import broken, cells, wrapped

NETWORK = "h=relu(X@W1+b1); z=h@W2; loss=mean((z-t)**2)"
CHAIN = "h1=sin(x); " + "; ".join(f"h{k}=sin(h{k - 1})*{k}" for k in range(2, 61))
SHAPES = {"X": (8, 16), "W1": (16, 12), "b1": (12,), "W2": (12, 2), "t": (8, 2)}

# a command line, and how many lines its page may have
ARRAYS = "--at X=@X.npy,W1=@W1.npy,b1=@b1.npy,W2=@W2.npy,t=@t.npy --wrt W1,b1,W2"
PAGES = {
    "network steps": (f"backward '{NETWORK}' {ARRAYS} --steps", 110),
    "network": (f"backward '{NETWORK}' {ARRAYS}", 60),
    "batch norm by hand": (
        "backward 'm=mean(x,axis=0); s=var(x,axis=0,correction=0); n=(x-m)/sqrt(s+1e-5); y=g*n+b' "
        "--at x=[[1,2],[3,5],[4,9]],g=[1,2],b=[0,1] --v ones --steps",
        120,
    ),
    "batch_norm steps": ("backward 'y=batch_norm(x)' --at x=[[1,2],[3,5],[4,9]] --v [[1,0],[0,1],[1,1]] --steps", 120),
    "softmax": ("backward 'p=softmax(z); L=-sum(t*log(p))' --at z=[1,2,3],t=[0,0,1] --wrt z --steps", 70),
    "cross_entropy steps": ("backward 'L=cross_entropy(z,2)' --at z=[1,2,3] --steps", 70),
    "layer steps": ("backward 'h=relu(X@W1)' --at X=@X.npy,W1=@W1.npy --v ones --steps", 110),
    "layer_norm": ("backward 'y=layer_norm(x,4)' --at x=[[1,2,3,5],[2,2,1,0]] --v ones", 60),
    "conv2d formulas": ("backward 'y=conv2d(x,w)' --shape x=1x1x4x4,w=1x1x2x2 --v ones", 60),
    "conv2d": ("backward 'y=sum(conv2d(x,w)**2)' --at x=[[[[1,2,3],[4,5,6],[7,8,9]]]],w=[[[[1,0],[0,-1]]]]", 60),
    "max_pool1d": ("backward 'y=max_pool1d([x],2)' --at x=[1,3,2,2] --v ones", 60),
    "four of four": (
        "backward 'f0=x0**2-x1; f1=x1**3-x2; f2=x0*x1*x2-1; f3=exp(x3)-x0' "
        "--at x0=1.123456789,x1=2.3,x2=-0.7,x3=0.1 --v 1,-1,0.5,2",
        60,
    ),
    "quadratic form": ("backward 'y=x.T@A@x' --shape x=3,A=3x3", 60),
    "least squares": ("backward 'L=sum((X@w-t)**2)' --shape X=5x3,w=3,t=5 --wrt w", 60),
    "long formula steps": ("backward 'y=sin(x)*exp(-x**2/2)/sqrt(1+x**4)+log(1+x**2)*tanh(x)' --at x=0.7 --steps", 80),
    "calls": ("backward 'y=x**2' --at x=1 --v 1,10,100,1000", 60),
    "calls of many leaves": (
        f"backward y={'*'.join(f'w{k}' for k in range(40))} --at {','.join(f'w{k}=1' for k in range(40))} --v 1 --v 9",
        80,
    ),
    "retained": ("backward 'r=norm(x-c); y=1/r' --at x=[1,2,2],c=[0,0,0] --retain all --steps", 60),
    "corners": ("backward 'y=max(x)+abs(x[0])' --at x=[0,3,3]", 60),
    "det": ("backward 'y=det(A)+trace(inv(A))' --at A=[[2,1],[1,3]]", 60),
    "long chain": (f"backward '{CHAIN}' --at x=1", 60),
    "long names": (
        "backward 'a_long_name_of_a_variable=the_first_input**2; the_output=a_long_name_of_a_variable*the_second_input'"
        " --at the_first_input=1.5,the_second_input=2",
        60,
    ),
    "softmax jacobian": ("jacobian 'p=softmax(z)' --shape z=3", 60),
    "sparse jacobian": ("jacobian 'y=(x[1:]-x[:-1])**2' --shape x=30", 120),
    "jacobian steps": (
        "jacobian 'y0=sin(a*b)*c; y1=exp(a)*b/c; y2=a*b*c; y3=a**b' --at a=1.5,b=2.5,c=0.3 --steps",
        110,
    ),
    "layer jacobian": ("jacobian 'h=relu(X@W1)' --shape X=8x16,W1=16x12", 60),
    "layer norm and its weights": ("backward 'y=layer_norm(x,4); L=sum(y*w)' --shape x=2x4,w=2x4", 60),
    "attention": ("backward 'y=softmax(q@k.T,axis=1)@u' --shape q=3x2,k=4x2,u=4x2 --v ones", 60),
    "hessian": ("hessian 'y=exp(-a**2-b**2)*sin(a*b)*c' --at a=0.3,b=0.4,c=2", 60),
    "jvp": ("jvp 'h=relu(X@W1); y=sum(h**2)' --at X=[[1,2],[3,4]],W1=[[1,0],[0,1]] --u X=[[1,0],[0,1]] --steps", 60),
}


@pytest.fixture
def arrays(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        np.save(tmp_path / f"{name}.npy", random.normal(size=shape).round(2))
    monkeypatch.chdir(tmp_path)


WIDTHS = [60, 80, 120]


@pytest.fixture
def at_widths(cli, monkeypatch):
    """Return what a command prints at each width: its page is made once, and written three times."""

    def run(*arguments):
        shown, written = dict.fromkeys(WIDTHS, ""), table.render

        def render(page, digits):
            for columns in WIDTHS:
                patch.setenv("COLUMNS", str(columns))
                shown[columns] += written(page, digits)
            return "as at each width\n"

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "render", render)
            outcome = cli(*arguments)
        assert set(outcome.out.splitlines()) <= {"as at each width", ""}
        return outcome, shown

    return run


def test_a_width_changes_how_a_page_is_written_only(at_widths, cli, monkeypatch):
    arguments = (*shlex.split(PAGES["four of four"][0]), "--steps")
    _, shown = at_widths(*arguments)
    assert len({*shown.values()}) == len(WIDTHS)
    for columns, text in shown.items():
        monkeypatch.setenv("COLUMNS", str(columns))
        assert cli.done(*arguments).out == text


def too_wide(lines, columns):
    return [line for line in lines if cells(line) > columns or line != line.rstrip()]


@pytest.mark.parametrize(("line", "limit"), some(PAGES.values()), ids=some(PAGES))
@pytest.mark.usefixtures("arrays")
def test_a_page_fits(at_widths, line, limit):
    outcome, shown = at_widths(*shlex.split(line))
    assert outcome.status == 0, outcome.err
    for columns, text in shown.items():
        lines = text.splitlines()
        assert 0 < len(lines) <= limit
        assert too_wide(lines, columns) == []


SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.grad"))
CLAIMS = ["logistic_regression"]  # which is for `check`
LONG = ["bundle_adjustment", "gaussian_mixture", "broyden"]  # of 50 operations and more, which are a line each


@pytest.fixture
def one_calculus(monkeypatch):
    """The formulas of a system are worked out once for all of its pages."""
    found, worked_out = {}, jacobian.symbolic_entries

    def once(graph, rows, columns, derivatives, taken=()):
        key = (*columns, *rows, *taken)
        if key not in found:
            found[key] = worked_out(graph, rows, columns, derivatives, taken)
        return found[key]

    monkeypatch.setattr(jacobian, "symbolic_entries", once)


@pytest.mark.parametrize("path", some([p for p in SAMPLES if p.stem not in CLAIMS]), ids=lambda p: p.stem)
@pytest.mark.usefixtures("one_calculus")
def test_the_pages_of_a_sample_fit(at_widths, path):
    for command, limit in {"backward": 72, "backward --steps": 122, "jacobian": 60, "jacobian --steps": 110}.items():
        outcome, shown = at_widths(*command.split(), "-F", str(path))
        if "no v" in outcome.err:
            outcome, shown = at_widths(*command.split(), "-F", str(path), "--v", "ones")
        for columns, text in shown.items():
            lines = text.splitlines()
            assert lines
            assert len(lines) <= limit or (path.stem in LONG and "--steps" in command)
            assert too_wide(lines, columns) == []


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_is_told_fits(width):
    source = Source("y = " + " + ".join(f"sinn(x{k})" for k in range(20)))
    message = "a message that is long enough to need a second line, and a third one where lines are short"
    error = InputError(message, Span(source, 60, 64), "a hint that says in many words what would mend it, and how")
    lines = error.render(width, "error: ").splitlines()
    assert max(map(cells, lines)) <= width
    assert any("^^^^" in line for line in lines)
    notes = Notes()
    notes.add("note", message)
    assert max(map(cells, in_lines(notes.lines[0], width))) <= width


@pytest.mark.parametrize("width", range(8, 40, 4))
def test_breaking_changes_no_formula(width):
    formula = "x̄ = (a + b*c)**2*exp(-x/2) + where(x > 0, [1, 2, 3], y) = t̄1·(2*x) + 1.5e-07"
    lines = broken(formula, width, "  ")
    together = "".join(line.strip() for line in lines)
    assert together.replace(" ", "") == formula.replace(" ", "")
    assert all(not line.rstrip().endswith(("**", "1.5e")) for line in lines)
    words = "one two three four five six seven eight"
    assert " ".join(line.strip() for line in wrapped(words, width, "  ")) == words
    assert max(map(cells, wrapped(words, width, "  "))) <= width


def test_a_unit_is_the_cell_of_a_terminal():
    assert cells("t̄1·雪") == 5
