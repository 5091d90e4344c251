"""Faults that the suite once did not notice, told at the command line."""


def test_an_axis_that_there_is_not(cli):
    assert "there is no axis 1" in cli.refused("jacobian", "y=sum(x, axis=1)", "--shape", "x=3")


def test_a_broadcast_of_absurd_size(cli):
    assert "is too large" in cli.refused("jacobian", "y=a+b", "--shape", "a=5000x1,b=5000")


def test_a_running_sum_depends_on_what_comes_before_alone(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("x[0],x[1]\n1,2\n")
    done = cli.done("jacobian", "y=cumsum(x)", "--points", "p.csv", "--sparse")
    assert done.out.splitlines()[0] == "dy[0]/dx[0],dy[1]/dx[0],dy[1]/dx[1]"


def test_a_divisor_is_never_below_zero(cli):
    (found,) = cli("backward", "y=var(x, correction=3)", "--at", "x=[1,2]", "-f", "json").objects
    assert found["value"] == {"y": "Infinity"}


def test_a_condition_passes_nothing_on(cli):
    found = cli.json("backward", "y=where((x>0)&(x<2), x*x, x)", "--at", "x=1", "--steps")
    assert [step["passes_to"] for step in found["steps"]["reverse"]] == ["t4", "x", "x", "x"]
