"""`input P symmetric = …`: what gradcli check may assume of inputs, in derivatives as textbooks have them."""

import json

import hypothesis.extra.numpy
import numpy as np
import pytest
from conftest import some
from hypothesis import given

from gradcli.graph.kinds import KINDS

P = "input P {} = [[2, 1], [1, 3]]"
COVARIANCES = """
input P symmetric = [[2, 1], [1, 3]]
input R positive = [[1]]
input H = [[1, 0.5]]
input K = [[1], [2]]
"""
KALMAN = "S = H@P@H.T + R; A = eye(2) - K@H; J = trace(A@P@A.T + K@R@K.T)"
GAUSSIAN = "input S positive = [[2,1],[1,3]]; input d = [1, 2]; L = -(d@inv(S)@d + log(det(S)))/2"
ENTROPY = "p = softmax(z); L = -sum(t*log(p))"
ROWS = "input Z = [[1,2,3],[3,2,2]]; P = softmax(Z); L = -sum(t*log(P))/2"
CLAIMS = [
    (P + "; input x = [1, 2]; f = x@P@x", "symmetric", "df/dx = 2*P@x"),
    (P + "; f = log(det(P))", "positive", "df/dP = inv(P)"),
    (P + "; input x = [1, 2]; f = x@inv(P)@x", "symmetric", "df/dP = -outer(inv(P)@x, inv(P)@x)"),
    (P + "; input x = [1, 2]; f = (x@P@x)/(x@x)", "symmetric", "df/dx = 2*(P@x - f*x)/(x@x)"),
    (COVARIANCES + KALMAN, "", "dJ/dK = 2*K@S - 2*P@H.T"),
    (GAUSSIAN, "", "dL/dS = (outer(inv(S)@d, inv(S)@d) - inv(S))/2"),
    (GAUSSIAN, "", "dL/dd = -inv(S)@d"),
    ("input Q orthogonal = [[0,1],[-1,0]]; input x = [1, 2]; y = Q@x; f = y@y", "", "df/dx = 2*x"),
    ("input a positive = 2; input b positive = 3; f = sqrt(a**2*b)", "", "df/da = sqrt(b)"),
    ("input a positive = [2, 3]; f = sum(abs(a))", "", "df/da = [1, 1]"),
    ("input t {} = [0, 1, 0]; input z = [1, 2, 3]; " + ENTROPY, "onehot", "dL/dz = p - t"),
    ("input t {} = [0.5, 0.25, 0.25]; input z = [1, 2, 3]; " + ENTROPY, "simplex", "dL/dz = p - t"),
    ("input t {} = [[0, 1, 0], [1, 0, 0]]; " + ROWS, "onehot", "dL/dZ = (P - t)/2"),
    ("input t {} = [[0, 1, 0], [0.5, 0.5, 0]]; " + ROWS, "simplex", "dL/dZ = (P - t)/2"),
    ("input t {} = [0, 1, 0]; input z = [1, 2, 3]; f = (t@z)**2", "onehot", "df/dz = 2*t*z"),
    ("input t {} = [0, 1, 0]; input z = [1, 2, 3]; f = sum(t**3*z**2)", "onehot", "df/dz = 2*t*z"),
    ("input t {} = [[0, 1], [1, 0]]; input z = [1, 2]; f = z@t.T@t@z", "onehot", "df/dz = 2*sum(t, axis=0)*z"),
    ("input p {} = [0.5, 0.5]; H = -sum(p*log(p))", "simplex", "dH/dp = -log(p) - sum(p)"),
    ("input p {} = [0.5, 0.5]; q = softmax(log(p) + c); f = sum(q)*c", "simplex", "df/dc = p[0] + p[1]"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "kind", "claim"), some(CLAIMS))
def test_a_textbook_derivative_is_right(cli, system, kind, claim):
    (found,) = cli("check", system.format(kind), claim, "-f", "json").objects
    assert found["verdict"] == "right"
    assert found["by"] == ("points" if "orthogonal" in system else "proof")
    (wrong,) = cli("check", system.format(kind), claim.replace("= ", "= 1.01*(") + ")", "-f", "json").objects
    assert wrong["verdict"] == "wrong"


@pytest.mark.parametrize(("system", "kind", "claim"), [c for c in CLAIMS if c[1] in ("onehot", "simplex")])
def test_without_the_word_a_claim_that_needs_it_is_wrong(cli, system, kind, claim):
    (found,) = cli("check", system.format(""), claim, "-f", "json").objects
    assert found["verdict"] == "wrong"


def test_a_claim_that_needs_one_hot_rows_is_wrong_where_rows_only_sum_to_1(cli):
    system = "input t {} = [0, 1, 0]; input z = [1, 2, 3]; f = (t@z)**2"
    for kind, verdict in (("onehot", "right"), ("simplex", "wrong")):
        (found,) = cli("check", system.format(kind), "df/dz = 2*t*z", "-f", "json").objects
        assert found["verdict"] == verdict
    rows = np.array(found["at"]["t"])
    assert (rows >= 0).all()
    assert rows.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["onehot", "simplex"])
@given(hypothesis.extra.numpy.arrays(float, (2, 3, 4)))
def test_points_are_of_their_kind(kind, values):
    nearest = KINDS[kind].nearest(values)
    assert (nearest >= 0).all()
    np.testing.assert_allclose(nearest.sum(axis=1), 1, rtol=1e-12)
    assert kind == "simplex" or np.isin(nearest, (0, 1)).all()
    assert KINDS[kind].holds(nearest).all()
    np.testing.assert_array_equal(KINDS[kind].nearest(nearest), nearest)


@pytest.mark.parametrize(("system", "kind", "claim"), [c for c in CLAIMS if c[1] == "symmetric"])
def test_without_the_word_the_verdict_proposes_it(cli, system, kind, claim):
    (found,) = cli("check", system.format(""), claim, "-f", "json").objects
    assert found["verdict"] == "wrong"
    assert found["why"].endswith("right only where P is symmetric: `input P symmetric = …`")


def test_points_that_are_not_of_the_kind_do_not_count(cli):
    system = P.format("symmetric") + "; input x = [1, 2]; f = x@P@x"
    points = 'x[0],x[1],"P[0,0]","P[0,1]","P[1,0]","P[1,1]"\n1,2,1,5,5,2\n1,2,1,5,6,2\n'
    (found,) = cli("check", system, "df/dx = P@x", "--points", "-", "-f", "json", stdin=points).objects
    assert (found["points"], found["wrong"]) == (1, 1)
    outcome = cli("check", system, "df/dx = 2*P@x", "--at", "P=[[1,2],[3,4]]")
    assert outcome.status == 0
    assert "1 point does not count: an input there is not symmetric" in " ".join(outcome.out.split())


def test_values_that_are_not_finite_are_of_no_kind(cli, tmp_path):
    np.save(tmp_path / "P.npy", [[np.inf, 1.0], [1.0, np.nan]])
    for kind in KINDS:
        outcome = cli("backward", f"input P {kind} = @{tmp_path}/P.npy", "f = sum(P)")
        assert outcome.status == 2
        assert outcome.err.startswith(f"error: `P` is declared as {kind}, and its value is not\n")


def test_a_file_may_have_the_value(cli, tmp_path):
    np.save(tmp_path / "P.npy", [[1.0, 2.0], [2.5, 1.0]])
    outcome = cli("backward", f"input P symmetric = @{tmp_path}/P.npy", "f = sum(P*P)")
    assert outcome.status == 2
    np.save(tmp_path / "P.npy", [[1.0, 2.0], [2.0, 1.0]])
    outcome = cli("backward", f"input P symmetric = @{tmp_path}/P.npy", "f = sum(P*P)", "-f", "json")
    assert json.loads(outcome.out)["grad"]["P"] == [[2, 4], [4, 2]]
