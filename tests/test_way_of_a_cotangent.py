"""The way of `--v` from the command to its page: the modules whose functions it is given to, in their order.

A reader who follows a value enters as many modules as it does, and loses the way at each return to a lower room.  Both
counts may fall; what makes them grow is another way than the shortest.
"""

from __future__ import annotations

import os
import sys
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from test_rooms import MAY_IMPORT

import gradcli
from gradcli.cli.main import gradcli as command
from gradcli.cli.main import run

HERE = str(Path(gradcli.__file__).parent) + os.sep
V = 7.53125  # no other number of the run, and exact in binary
ROOMS = [*MAY_IMPORT]  # from the lowest to the highest
STAYS, RETURNS = 35, 7  # in 23 modules


def has_v(x, depth=3):
    """Return whether a value is v, or a text, an array or a container that holds it."""
    if isinstance(x, str):
        return str(V) in x
    if isinstance(x, float | np.ndarray):
        return bool(np.any(np.asarray(x) == V))
    if isinstance(x, dict):
        x = [*x.values()]
    return depth > 0 and isinstance(x, list | tuple) and any(has_v(item, depth - 1) for item in x)


def modules_with_v(arguments):
    """Return the modules of the functions that v is given to, as parts of their paths, in the order of the calls."""
    result = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HERE):
            count = code.co_argcount + code.co_kwonlyargcount
            count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
            if any(has_v(frame.f_locals.get(name)) for name in code.co_varnames[:count]):
                result.append(Path(code.co_filename.removeprefix(HERE)).parts)

    run(command, arguments)  # what is imported and prepared once is not on the way
    sys.setprofile(note)
    try:
        run(command, arguments)
    finally:
        sys.setprofile(None)
    return result


def test_the_way_of_a_cotangent_is_no_longer_than_it_was(capsys):
    modules = modules_with_v(["backward", "y = x**2", "--at", "x=3", "--v", str(V)])
    assert capsys.readouterr().out.count(f"{V}·6 = 45.1875") == 2
    printed = next(k for k, (room, *_) in enumerate(modules) if room == "report")  # the page is ready
    stays = [module for module, _ in groupby(modules[:printed])]
    assert stays[0][0] == "cli"
    assert stays[-1][0] == "pages"
    rooms = [ROOMS.index(room) for room, *rest in stays]
    returns = sum(after < before for before, after in pairwise(rooms))
    assert len(stays) <= STAYS
    assert returns <= RETURNS
