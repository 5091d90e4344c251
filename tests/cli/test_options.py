"""Options that are repeated, and options side by side: each is honoured or refused, and none is ignored in silence."""

from __future__ import annotations

import pytest
from conftest import each

SYSTEM = ("h=2*a", "k=h*b", "y=k*h", "z=k")
REPEATED = {
    "retain": ("backward", *SYSTEM, "--v", "ones", "--retain", "h", "--retain", "k"),
    "retain all": ("backward", *SYSTEM, "--v", "ones", "--retain", "k", "--retain", "all"),
    "wrt": ("jacobian", *SYSTEM, "--wrt", "b", "--wrt", "a"),
    "outputs": ("jacobian", *SYSTEM, "--outputs", "z", "--outputs", "k,y"),
    "only": ("backward", *SYSTEM, "--v", "ones", "--only", "v", "--only", "grad"),
    "what": ("export", *SYSTEM, "--to", "c", "--what", "value", "--what", "jvp"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_list_of_names_that_is_repeated_goes_on(cli, name):
    command = REPEATED[name]
    first, second = command[-3], command[-1]
    together = (*command[:-4], command[-2], "all" if second == "all" else f"{first},{second}")
    assert cli.done(*command).out == cli.done(*together).out
    assert cli.done(*command).out != cli.done(*command[:-2]).out


@pytest.mark.parametrize("command", [("jacobian", "y=a"), ("backward", "y=a"), ("check", "y=a", "dy/da=1")])
def test_points_are_in_one_file(cli, command):
    assert "--points is given twice" in cli.refused(*command, "--points", "a.csv", "--points", "b.csv")


ONE, AT = ("h=2*a", "y=h**2*b"), ("--at", "a=1,b=2")
REFUSED = {
    ("jvp", *ONE, *AT, "--u", "a=1", "--only", "pairing"): "nothing to show in pairing",
    ("hessian", *ONE, "--only", "curvature"): "nothing to show in curvature",
    ("backward", *ONE, *AT, "--only", "calls"): "nothing to show in calls",
    ("backward", *ONE, *AT, "--only", "jacobian", "--no-jacobian"): "nothing to show in jacobian",
    ("jacobian", *ONE, "--points", "p.csv", "--order", "2"): "--order is for single points",
    ("check", "f=x", "df/dx=1", "--points", "p.csv", "--trials", "5"): "leave out --trials, or leave out --points",
    ("check", "f=x", "df/dx=1", "--at", "x=1", "--trials", "20"): "leave out --trials, or leave out --at",
}


@pytest.mark.usefixtures("own_folder")
@each(("command", "told"), REFUSED.items())
def test_an_answer_with_nothing_in_it_is_refused(cli, command, told):
    with open("p.csv", "w") as file:
        file.write("a,b\n1,2\n")
    assert told in cli.refused(*command)
