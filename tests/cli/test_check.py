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


def test_wrong_and_right(cli):
    outcome = cli("check", "f=x**2*y", "df/dx=x*y", "df/dy=x**2", "-f", "json")
    assert outcome.status == 1
    wrong, right = outcome.objects
    assert wrong["claim"] == "df/dx"
    assert wrong["verdict"] == "wrong"
    assert wrong["why"] == "in ∂f/∂x you wrote x: the derivative of x**2 is 2*x"
    (slip,) = wrong["slips"]
    assert slip == {
        "kind": "power", "step": "∂f/∂x", "node": "x**2", "operand": "x", "wrote": "x", "right": "2*x", "times": 1,
    }  # fmt: skip
    assert wrong["formula"] == "2*x*y"
    x, y = wrong["at"]["x"], wrong["at"]["y"]
    assert wrong["yours"] == pytest.approx(x * y)
    assert wrong["is"] == pytest.approx(2 * x * y)
    assert wrong["difference"] == pytest.approx(2 * x * y, rel=1e-8)
    assert right == {"claim": "df/dy", "said": "x**2", "verdict": "right", "by": "proof", "formula": "x**2"}


def test_a_file_of_claims_with_comments(cli, tmp_path):
    path = tmp_path / "model.grad"
    path.write_text(FILE)
    outcome = cli("check", "-F", str(path), "-f", "json")
    assert outcome.status == 1
    assert [o["verdict"] for o in outcome.objects] == ["right", "right", "wrong"]
    assert outcome.objects[2]["why"] == "yours is 2 times the right value"
    path.write_text(FILE.replace("2*h ", "h "))
    assert cli("check", "-F", str(path)).status == 0


@pytest.mark.parametrize(
    ("system", "claim"),
    [
        ("h=relu(W@x); L=sum((h-t)**2)/2", "dL/dW=outer((h-t)*(h>0),x)"),
        ("y=abs(x)", "x.grad=v*(2*(x>0)-1)"),
        ("y=clamp(x,-1,1)", "x.grad=v*(x>-1)*(x<1)"),
    ],
)
def test_a_condition_times_a_number_is_a_mask(cli, system, claim):
    cli.done("check", system, claim, "--shape", "x=3" + ",W=2x3,t=2" * ("W" in system))


def test_a_point_is_where_the_claim_is_tried(cli):
    outcome = cli("check", "f=x**2", "df/dx=x", "--at", "x=3", "-f", "json")
    assert outcome.objects[0]["at"] == {"x": 3}
    assert outcome.objects[0]["is"] == 6
    # By chance right at this point, and no proof
    (found,) = cli("check", "f=x**2", "df/dx=x+3", "--at", "x=3", "-f", "json").objects
    assert (found["verdict"], found["by"], found["points"]) == ("right", "points", 1)


def test_a_corner_decides_nothing(cli):
    outcome = cli("check", "f=relu(x)", "df/dx=1", "--at", "x=0", "-f", "json")
    assert outcome.status == 1
    assert outcome.objects[0]["verdict"] == "undecided"
    assert "corner" in outcome.objects[0]["why"]


@long
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("system", ["y=1/det(expand(x,{n},{n}))", "y=sum(inv(expand(x,{n},{n})))"])
def test_a_matrix_that_is_singular_everywhere_leaves_no_point_to_decide_at(cli, system, size):
    outcome = cli("check", system.format(n=size), "dy/dx=1", "-f", "json")
    assert outcome.objects[0]["verdict"] == "undecided"
    assert "no point was found" in outcome.objects[0]["why"]


def test_domains_are_found(cli):
    system = ("f=sqrt(x-1000)*asin(y)*log(-z)", "df/dx=asin(y)*log(-z)/(3*sqrt(x-1000))")
    (found,) = cli("check", *system, "-f", "json").objects
    assert found["verdict"] == "wrong"
    assert found["at"]["x"] > 1000
    assert abs(found["at"]["y"]) <= 1
    assert found["at"]["z"] < 0


def test_the_tolerance_is_for_rounded_constants(cli):
    assert cli("check", "f=pi*x**2", "df/dx=6.2832*x").status == 1
    assert cli("check", "f=pi*x**2", "df/dx=6.2832*x", "--tolerance", "1e-4").status == 0
    assert cli("check", "f=pi*x**2", "df/dx=2*pi*x", "--tolerance", "1e-4", "--require-proof").status == 0


def test_the_seed_decides_the_points(cli):
    def at(*options):
        return cli("check", "f=x**2*y", "df/dx=x*y", *options, "-f", "json").objects[0]["at"]

    assert at() == at("--seed", "0")
    assert at("--seed", "7") != at()


def test_a_claim_of_a_smaller_domain_is_right_with_a_note(cli):
    (found,) = cli("check", "f=log(S/K)", "df/dS=exp(-log(S))", "-f", "json").objects
    assert (found["verdict"], found["note"]) == ("right", "yours is not finite at every point where the derivative is")
    assert "note" not in cli("check", "f=log(x)**2", "df/dx=2*log(x)/x", "-f", "json").objects[0]
    # A step function of what is nan there: that side is a region as any other.
    (found,) = cli("check", "f=x**2", "df/dx=2*x+round(sigmoid(sqrt(x)))-1", "-f", "json").objects
    assert (found["why"], found["at"]["x"] < 0) == ("yours is not finite at every point where the derivative is", True)


def test_a_claim_that_is_finite_nowhere_is_wrong(cli):
    outcome = cli("check", "f=x**2", "df/dx=1/(x-x)", "-f", "json")
    assert outcome.status == 1
    assert (outcome.objects[0]["verdict"], outcome.objects[0]["why"]) == ("wrong", "yours is not finite")


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
