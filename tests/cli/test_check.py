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


CLAIMS = [
    # A right one in an unusual form, found equal by algebra
    ("f=tanh(x)", "df/dx=4/(exp(x)+exp(-x))**2", "right", "proof"),
    ("f=sigmoid(x)", "df/dx=f*(1-f)", "right", "proof"),
    ("f=relu(x)**2", "df/dx=2*relu(x)", "right", "proof"),
    ("f=abs(x)", "df/dx=x/abs(x)", "right", "proof"),
    ("f=maximum(x, y)", "df/dx=where(x < y, 0, 1)", "right", "proof"),
    ("f=sin(x)**2", "df/dx=sin(2*x)", "right", "proof"),
    ("f=x**2", "∂f/∂x=2*x", "right", "proof"),
    ("h=x**2;f=sin(h)", "df/dh=cos(h)", "right", "proof"),
    ("y=[x*z, x**2]", "dy/dx=[z, 2*x]", "right", "proof"),
    ("f=x[0]*x[1]**2", "df/dx[1]=2*x[0]*x[1]", "right", "proof"),
    ("f=x[0]*x[1]**2", "df/dx[1]=x[0]*x[1]", "wrong", "points"),
    ("f=x**3*z", "d2f/dx/dz=3*x**2", "right", "proof"),
    ("f=x1**3", "d2f/dx12=6*x1", "right", "proof"),
    ("h=x*z;d=2*asin(sqrt(h))", "dd/dh=1/sqrt(h*(1-h))", "right", "proof"),
    ("f=log(x)", "df/dx=1/sqrt(x**2)", "right", "proof"),
    ("f=x**2*abs(x)", "df/dx=3*sqrt(x**2)*x", "right", "points"),
    ("p=sigmoid(z);L=-(1-p)**g*log(p)", "dL/dz=g*p*(1-p)**g*log(p)-(1-p)**(g+1)", "right", "proof"),
    ("f=x**4*z", "d3f/dx2/dz=12*x**2", "right", "proof"),
    ("f=x2**3*z", "d2f/dx2/dz=3*x2**2", "right", "proof"),
    ("y=3*x", "x.grad=3*v", "right", "proof"),
    ("y=x*z; w=x**2", "x.grad=y.v*z + 2*x*w.v", "right", "proof"),
    ("y=x*z; w=x**2", "x.grad=w.v*z + 2*x*y.v", "wrong", "points"),
    ("f=3*z+0*x", "df/dx=0", "right", "proof"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "claim", "verdict", "by"), CLAIMS)
def test_verdicts(cli, system, claim, verdict, by):
    outcome = cli("check", *system.split(";"), claim, "-f", "json")
    assert outcome.err == ""
    (found,) = outcome.objects
    assert (found["verdict"], found["by"]) == (verdict, by)
    assert outcome.status == (verdict == "wrong")


WHY = [
    ("f=sin(3*x)", "df/dx=cos(3*x)",
     "in ∂f/∂x the inner derivative is missing: times 3, the derivative of 3*x"),
    ("f=x*sin(x)", "df/dx=sin(x)", "in ∂f/∂x a term is missing: + x*cos(x)"),
    ("f=x*sin(x)", "df/dx=sin(x)+x*cos(x)+x", "extra term: + x"),
    ("f=cos(x)", "d2f/dx2=cos(x)", "the minus before sin(x) is left out; the first derivative is -sin(x)"),
    ("f=cos(x)", "d2f/dx2=-sin(x)", "yours is the first derivative: differentiate it once more"),
    ("f=x**3*y", "d2f/dxdy=3*x**2*y", "yours is the first derivative: differentiate it once more"),
    ("f=exp(2*x)", "d3f/dx3=4*exp(2*x)", "yours is the second derivative: differentiate it once more"),
    ("f=cos(x)", "df/dx=sin(x)", "in ∂f/∂x the sign is wrong: the derivative of cos(x) is -sin(x)"),
    ("y=-log(x)", "dy/dx=1/x", "in ∂y/∂x the minus before log(x) is left out"),
    ("y=1-x**2", "dy/dx=2*x", "in ∂y/∂x the minus before x**2 is left out"),
    ("y=(a-b)/c", "dy/db=1/c", "in ∂y/∂b the minus before b is left out"),
    ("y=exp(-(x+x**2))", "dy/dx=exp(-(x+x**2))*(1+2*x)", "in ∂y/∂x the minus before (x + x**2) is left out"),
    ("y=1+x**2", "dy/dx=-2*x", "in ∂y/∂x the sign of the derivative of x**2 is wrong"),
    ("y=x*z;w=x**2", "x.grad=z+2*x*w.v",
     "the incoming gradient y.v is missing: x.grad = vᵀJ, and yours is for y.v = ones"),
    ("f=x**3/6-x", "df/dx=x**2-1",
     "in ∂f/∂x the derivative of x**3/6 - x with respect to x**3/6 is 2 times the right one"),
    ("f=x**2", "df/dx=-6*x", "the sign and the factor: yours is -3 times the right value"),
    ("f=pi*x**2", "df/dx=6.28*x", "yours is 0.999493 times the right value: rounded? `--tolerance 1e-3` accepts it"),
    ("f=abs(x)", "df/dx=1", "in ∂f/∂x you took abs(x) for x: right only where x > 0"),
    ("f=relu(x)", "df/dx=1", "in ∂f/∂x you took relu(x) for x: right only where x > 0"),
    ("f=x**2*z**3", "df/dx=3*x**2*z**2", "inputs exchanged: this is the derivative with respect to z, not x"),
    ("f=log(x)", "df/dx=log(x)", "in ∂f/∂x you wrote log(x): the derivative of log(x) is 1/x"),
    ("f=5*x**4-2*x**2", "df/dx=20*x**2-4*x", "in ∂f/∂x you wrote 4*x**2: the derivative of x**4 is 4*x**3"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "claim", "why"), WHY)
def test_what_is_wrong(cli, system, claim, why):
    assert cli("check", system, claim, "-f", "json").objects[0]["why"] == why


ARRAYS = [
    ("f=x@A@x", "df/dx=2*A@x", "x=3,A=3x3", "right only where A is symmetric"),
    ("f=c*(2+sum((A-A.T)*B))", "df/dc=2", "A=3x3,B=3x3", "right only where A is symmetric"),  # or B, where A is not
    ("L=-sum(t*log(softmax(z)))", "dL/dz=softmax(z)-t", "z=3,t=3", "right only where t sums to 1"),
    ("Y=X@W", "W.grad=X@v", "X=3x3,W=3x3", "in ∂Y/∂W you wrote X @ v: it is X.T @ v"),
    ("y=x**2", "x.grad=2*x", "x=3", "the incoming gradient y.v is missing: x.grad = vᵀJ, and yours is for y.v = ones"),
    ("p=softmax(z);L=-log(p[1])", "dL/dz=p-[1,0,0]", "z=3", "yours is the derivative with p[0] in place of p[1]"),
    ("Y=X+b", "b.grad=sum(v,axis=1)", "X=3x3,b=3", "in ∂Y/∂b you wrote sum(v, axis=1): it is sum(v, axis=0)"),
    ("f=sum(x**3)", "df/dx=3*x**2+[0,1,0,0]", "x=4", "right except for the entry [1]: extra term: + 1"),
    ("f=mean(x**2)", "df/dx=2*x", "x=4", "yours is 4 times the right value: off by 1/n? x has 4 elements along axis 0"),
    (
        "Y=X+b;f=sum(Y)",
        "df/db=1",
        "X=4x3,b=3",
        "X has 4 elements along axis 0, and a mean divides by their number, or a sum over them is missing",
    ),
    ("Y=X@W+b;f=mean(Y)", "df/db=4", "X=4x3,W=3x2,b=2", "8 times the right value: off by 1/n? Y has 8 elements"),
    ("p=softmax(z);f=-log(p[0])", "df/dz=p", "z=3", "in ∂p/∂z you wrote p: it is p - [1, 0, 0]"),
    ("P=softmax(Z);f=-log(P[0,1])-log(P[1,0])", "df/dZ=P", "Z=2x3", "in [0,1] the right value is yours minus 1"),
    ("f=sum(x**3+x)", "df/dx=[1,2,3]", "x=3", "in [2] the right value is yours plus 3*x[2]**2 - 2"),
]


ALONE = [  # a slip in a second derivative is told without a cotangent, and a cotangent is no input
    ("f=x@A@x", "d2f/dx2=2*A", "x=2,A=2x2", "right only where A is symmetric: `input A symmetric = …`"),
    ("y=A.T@A", "A.grad=2*A@v", "A=2x2", "right only where v is symmetric"),
]


@pytest.mark.parametrize(("system", "claim", "shape", "why"), ALONE)
def test_what_a_claim_holds_for_is_told_alone(cli, system, claim, shape, why):
    assert cli("check", system, claim, "--shape", shape, "-f", "json").objects[0]["why"] == why


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


@pytest.mark.parametrize(("system", "claim", "shape", "why"), ARRAYS)
def test_what_is_wrong_with_arrays(cli, system, claim, shape, why):
    assert why in cli("check", system, claim, "--shape", shape, "-f", "json").objects[0]["why"]


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


MISTAKES = {
    "no claim": (["f=x**2"], "there is no claim to check"),
    "no system": (["df/dx=1"], 'no system is given\n  for example: gradcli check "f=x**2*y"'),
    "a vector for a scalar": (["f=x", "df/dx=[1,2]"], "`df/dx` is a scalar, and your formula is of shape (2,)"),
    "not summed": (["Y=X+b", "b.grad=v", "--shape", "X=4x3,b=3"], "what was broadcast is summed: sum(…, axis=0)"),
    "no v": (["y=x@M", "x.grad=M", "--shape", "x=2,M=2x2"],
             "the incoming gradient is missing: x.grad = vᵀJ, and v is y.v"),
    "no v of two": (["y=A*b;z=b+1", "b.grad=A", "--shape", "A=2x3,b=3"], "and v is y.v and z.v"),
    "one v of two": (["y=A*b;z=b+1", "b.grad=A*y.v", "--shape", "A=2x3,b=3"], "what was broadcast is summed"),
    "a transpose": (["f=sum(X@W)", "df/dX=ones(3,2)", "--shape", "X=2x3,W=3x4"], "is it transposed?"),
    "a loss of a vector": (["L=x**2", "dL/dx=2*x", "--shape", "x=3"], "is of shape (3, 3), and your formula"),
    "by an intermediate twice": (["h=x;f=h**2", "d2f/dh2=2"], "higher derivatives are taken by inputs"),
    "too large": (["f=x*2", "df/dx=1", "--shape", "x=2000"], "`df/dx` has 4,000,000 entries"),
    "a tolerance": (["f=x", "df/dx=1", "--tolerance", "0"], "0"),
    "a tolerance that is no number": (["f=x", "df/dx=1", "--tolerance", "nan"], "nan is not a number"),
    "a claim of a claim": (["f=x**2", "df/dx=2*x", "d(df/dx)/dx=2"], "write `d2f/dx2 =`"),
    "trials": (["f=x", "df/dx=1", "--trials", "1000000"], "--trials"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(cli, mistake):
    arguments, told = MISTAKES[mistake]
    assert told in cli.refused("check", *arguments)


def test_the_caret_stands_in_what_was_typed(cli):
    told = cli.refused("check", "f = x**2; df/dx = 2*x*q; df/dx = 3")
    assert "f = x**2; df/dx = 2*x*q; df/dx = 3\n                        ^" in told
    told = cli.refused("check", "f = x**2; df/dx = 2*x; g = q(x)")
    assert "f = x**2; df/dx = 2*x; g = q(x)" in told


def test_a_claim_that_takes_too_long_at_one_point_is_refused(cli):
    refused = cli.refused("check", "y=sum(A@B)", "dy/dA=ones(1000,1000)@B.T", "--shape", "A=1000x1000,B=1000x1000")
    assert "multiplications at each point" in refused
    assert "smaller arrays" in refused
