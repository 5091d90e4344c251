"""Options that are repeated, and options side by side: each is honoured or refused, and none is ignored in silence."""

from __future__ import annotations

import pytest

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
