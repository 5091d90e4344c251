"""Verdicts do not depend on units: every quantity of forty systems is scaled by powers of ten from -30 to 30."""

import re
from pathlib import Path

import pytest
from conftest import long, some

from gradcli import check
from gradcli.cli.inputs.claims import cases
from gradcli.errors import Source
from gradcli.lang.claims import read_claims
from gradcli.lang.system import read_system
from gradcli.pages.check.trials import TOLERANCE, Tally, drawn

TABLE = Path(__file__).with_name("textbooks.txt").read_text("utf-8").strip().partition("\n\n")[2]
SYSTEMS = [[cell.strip() for cell in line.split("|")] for line in TABLE.splitlines()]
SCALES = range(-30, 31, 5)
TRIALS = 8


def read(inputs):
    """Return the shapes of inputs, and whether each is measured in the unit or in one over it: by turns."""
    found = {}
    for k, text in enumerate(inputs.split()):
        name, _, shape = text.partition(":")
        found[name] = (tuple(map(int, shape.split("x"))) if shape else (), 1 - k % 2 * 2)
    return found


def scaled(inputs, formula, power):
    """Return a formula of quantities that are 10**power, or 10**-power, times as large."""
    for name, (_, sign) in inputs.items():
        formula = re.sub(rf"\b{name}\b", f"({name}*1e{-sign * power})", formula)
    return formula


def texts(system, power):
    """Return the scaled system, and its right and its wrong claim; the output is in the unit."""
    _, inputs, formula, by, right, wrong = system
    inputs = read(inputs)
    factor = f"1e{power}*1e{-inputs[by][1] * power}"
    claims = [f"dy/d{by} = {factor}*({scaled(inputs, claim, power)})" for claim in (right, wrong)]
    return f"y = 1e{power}*({scaled(inputs, formula, power)})", claims


def tallies(system, power):
    statement, claims = texts(system, power)
    rest, read_ones = read_claims([Source(statement), *map(Source, claims)])
    found = read_system(rest)
    shapes = {name: shape for name, (shape, _) in read(system[1]).items()}
    graph = found.graph(shapes, found.assigned)
    return [Tally(TOLERANCE).add(drawn(case, TRIALS, 0)) for case in cases(read_ones, graph, found.outputs)]


def test_there_are_forty():
    assert len(SYSTEMS) == 40
    assert len(SCALES) == 13


@pytest.mark.parametrize("system", some(SYSTEMS), ids=lambda system: system[0])
def test_verdicts_do_not_depend_on_units(system):
    for power in SCALES:
        right, wrong = tallies(system, power)
        assert (right.wrong, power) == (0, power)
        assert right.counted >= TRIALS / 2, power
        assert wrong.wrong > 0, power


def checked(system, power):
    statement, claims = texts(system, power)
    shapes = {name: shape for name, (shape, _) in read(system[1]).items()}
    return check("; ".join([statement, *claims]), **shapes).verdicts


@long
@pytest.mark.parametrize("power", [-30, -5, 5, 30])
def test_verdicts_by_proof_and_slips_do_not_either(power):
    told_otherwise = []
    for system in SYSTEMS:
        found, usual = checked(system, power), checked(system, 0)
        assert [v.verdict for v in found] == [v.verdict for v in usual], system
        if [s.kind for s in found[1].slips] != [s.kind for s in usual[1].slips]:
            told_otherwise.append((system[0], found[1].why, usual[1].why))
    assert len(told_otherwise) <= 2, told_otherwise
