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
SCRIPT = ("-c", "import torch\nx = torch.tensor(3., requires_grad=True)\n(x**2).backward()")
REFUSED = {
    # Pages, and data
    ("backward", *ONE, *AT, "-f", "json", "--only", "grad"): "--only is for pages",
    ("jacobian", *ONE, *AT, "-f", "csv", "--only", "jacobian"): "--only is for pages",
    ("hessian", *ONE, "--points", "p.csv", "--only", "hessian"): "--only is for pages",
    ("check", *ONE, "dy/db=h**2", "-f", "json", "--only", "claims"): "--only is for pages",
    ("backward", *ONE, *AT, "-f", "json", "--jacobian"): "--jacobian is for pages",
    ("backward", *ONE, "--points", "p.csv", "--jacobian"): "--jacobian is for pages",
    ("backward", *ONE, "--points", "p.csv", "--standalone"): "--standalone makes a document of LaTeX",
    ("backward", *ONE, *AT, "-f", "csv", "--steps"): "--steps has no place in CSV",
    ("jvp", *ONE, *AT, "--u", "a=1", "-f", "csv", "--steps"): "--steps has no place in CSV",
    ("jvp", *ONE, *AT, "--u", "a=1", "-f", "csv", "--v", "1"): "--v has no place in CSV",
    ("jacobian", *ONE, *AT, "-f", "json", "--steps"): "--steps is for pages",
    ("run", *SCRIPT, "-f", "json", "--steps"): "--steps has no place in JSON",
    # What is asked for, and left out
    ("backward", *ONE, *AT, "--steps", "--only", "grad"): "it is in --only grad,steps",
    ("backward", *ONE, *AT, "--jacobian", "--only", "grad,v"): "it is in --only grad,v,jacobian",
    ("jacobian", *ONE, *AT, "--steps", "--only", "system"): "--steps shows the section steps",
    ("jvp", *ONE, *AT, "--u", "a=1", "--v", "1", "--only", "jvp"): "it is in --only jvp,pairing",
    ("jvp", *ONE, *AT, "--u", "a=1", "--only", "pairing"): "nothing to show in pairing",
    ("hessian", *ONE, "--only", "curvature"): "nothing to show in curvature",
    ("backward", *ONE, *AT, "--only", "calls"): "nothing to show in calls",
    ("backward", *ONE, *AT, "--only", "jacobian", "--no-jacobian"): "nothing to show in jacobian",
    # Single points, and many
    ("jacobian", *ONE, "--points", "p.csv", "--order", "2"): "--order is for single points",
    ("jacobian", *ONE, "--points", "p.csv", "--steps"): "--steps is for single points",
    ("jacobian", "y=a**2", "--order", "2", "--steps"): "--steps is for J",
    ("jacobian", "y=a**2", "--order", "2", "--only", "jacobian"): "--only is for J",
    ("check", *ONE, "dy/db=h**2", *AT, "--trials", "20"): "--trials is for random points",
    ("check", *ONE, "dy/db=h**2", "--points", "p.csv", "--seed", "0"): "--seed is for random points",
    # Explanations, and none
    ("run", "--quiet", "--all", *SCRIPT): "--all goes with",
    ("run", "--quiet", "--line", "3", *SCRIPT): "--line goes with",
    ("run", "--quiet", "-f", "markdown", *SCRIPT): "-f goes with",
    ("run", "--quiet", "--output", "page.md", *SCRIPT): "--output goes with",
    ("run", "--quiet", "--check", *SCRIPT): "--check goes with",
    ("run", "--check", "--steps", *SCRIPT): "--steps goes with explanations",
}


@pytest.mark.usefixtures("own_folder")
@each(("command", "told"), REFUSED.items())
def test_an_option_that_would_do_nothing_is_refused(cli, command, told):
    with open("p.csv", "w") as file:
        file.write("a,b\n1,2\n")
    assert told in cli.refused(*command)


@pytest.mark.usefixtures("own_folder")
def test_a_file_that_is_asked_for_is_written_though_there_is_nothing_to_tell(cli):
    cli.done("run", "--check", "--output", "o.txt", *SCRIPT)
    with open("o.txt") as file:
        assert file.read() == ""
