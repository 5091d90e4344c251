"""Functions with branches, where points change: files of points, live pages, the explorer, exports."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli import InputError
from gradcli.cli.inputs.system import check_branch, read_situation, read_system_of
from gradcli.cli.options import PointText, SystemOptions
from gradcli.errors import Notes
from gradcli.explore.state import Explorer, State

SOURCE = """\
import numpy as np

def f(x, w=2.0):
    if x > 0:
        return np.sin(x) * w
    return -x * w
"""


@pytest.fixture
def function(tmp_path):
    (tmp_path / "f.py").write_text(SOURCE, "utf-8")
    return f"{tmp_path / 'f.py'}:f"


def test_a_file_of_points_needs_a_choice_at_each_point(cli, function, tmp_path):
    (tmp_path / "p.csv").write_text("x\n1\n-1\n", "utf-8")
    said = cli.refused("backward", "-F", function, "--points", str(tmp_path / "p.csv"))
    assert "with --points, write `np.where(condition, a, b)`" in " ".join(said.split())


def test_a_live_page_says_on_which_branch_it_stays(cli, function):
    page = cli.done("graph", "-F", function, "--at", "x=1", "-f", "html").out
    assert "line 4: `if x &gt; 0` is True here" in page


@pytest.mark.parametrize("target", ["c", "javascript", "torch", "jax", "numpy"])
def test_a_function_is_exported(cli, function, target):
    assert "sin(" in cli.done("export", "-F", function, "--at", "x=1", "--to", target).out


def test_the_explorer_refuses_a_point_on_another_branch(function):
    options = SystemOptions((), (function,), (PointText("x=1"),), (), None, None)
    system = read_system_of(options)
    situation = read_situation(system, options, Notes())
    state = State({"x": np.array(1.0), "w": np.array(2.0)}, ({"f": np.array(1.0)},))
    explorer = Explorer(situation.graph, ["x"], state)
    explorer.check = lambda at: check_branch(system.subsystems, situation.graph, at)
    field = explorer.fields[0]
    explorer.enter(field, "2")
    with pytest.raises(InputError, match="another branch is taken there") as error:
        explorer.enter(field, "-2")
    assert error.value.span.line.strip() == "if x > 0:"
    assert explorer.value(field) == 2
