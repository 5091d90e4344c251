"""gradcli check: verdicts, what is wrong, exit statuses, files of claims, and what is refused."""

import pytest
from conftest import long

FILE = """\
# a model and its gradient, derived by hand
input x = [1, 2]
input w = [3, 4]
h = x**2        # squares
L = sum(h*w)
dL/dx = 2*x*w   # right
dL/dh = w
dL/dw = 2*h     # wrong
"""


def test_a_file_of_claims_with_comments(cli, tmp_path):
    path = tmp_path / "model.grad"
    path.write_text(FILE)
    outcome = cli("check", "-F", str(path), "-f", "json")
    assert outcome.status == 1
    assert [o["verdict"] for o in outcome.objects] == ["right", "right", "wrong"]
    assert outcome.objects[2]["why"] == "yours is 2 times the right value"
    path.write_text(FILE.replace("2*h ", "h "))
    assert cli("check", "-F", str(path)).status == 0


@long
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("system", ["y=1/det(expand(x,{n},{n}))", "y=sum(inv(expand(x,{n},{n})))"])
def test_a_matrix_that_is_singular_everywhere_leaves_no_point_to_decide_at(cli, system, size):
    outcome = cli("check", system.format(n=size), "dy/dx=1", "-f", "json")
    assert outcome.objects[0]["verdict"] == "undecided"
    assert "no point was found" in outcome.objects[0]["why"]


def test_finite_differences_have_an_error(cli):
    (exact,) = cli("check", "f=sin(x)", "df/dx=1", "-f", "json").objects  # by a complex step
    assert exact["difference"] == pytest.approx(exact["is"], rel=1e-15, abs=1e-15)
    assert exact["difference_error"] <= 1e-13
    (central,) = cli("check", "f=abs(x)**3", "df/dx=1", "-f", "json").objects
    assert abs(central["difference"] - central["is"]) <= 10 * central["difference_error"]


def test_every_entry_has_its_difference():
    """A derivative of ours that is wrong in one entry is not believed at any point."""
    from gradcli.graph.construct import reduce
    from gradcli.graph.graph import Graph
    from gradcli.graph.node import const, leaf
    from gradcli.pages.check import trials
    from gradcli.pages.check.claim import Case, derivative

    x = leaf((5,))
    base = reduce("sum", x**3, (0,))
    graph = Graph.of({"x": x}, {"": base})
    right = derivative(graph, base, x)
    spoiled = right + const((0, 0, 1, 0, 0), (5,))
    for truth, counts in ((right, True), (spoiled, False)):
        case = Case("df/dx", "", graph, base, x, truth, truth)
        assert trials.drawn(case, 5, 0).counted.all() == counts
