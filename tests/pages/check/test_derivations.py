"""Derivations of different fields: right ones are right, and what people get wrong in them is called what it is."""

from pathlib import Path
from typing import NamedTuple

import pytest
from checked import in_this_process, verdict  # noqa: F401
from conftest import long, some

from gradcli.lang.values import read_shapes

pytestmark = pytest.mark.usefixtures("in_this_process")


class Derivation(NamedTuple):
    source: str
    system: str
    shapes: dict[str, tuple[int, ...]]
    right: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]

    def title(self):
        return self.source.partition(":")[0]


def read(text):
    source, shapes, *lines = text.splitlines()
    right = tuple(line.removeprefix("right: ") for line in lines if line.startswith("right: "))
    wrong = (line.removeprefix("wrong: ").partition(" --> ") for line in lines if line.startswith("wrong: "))
    system = "\n".join(line for line in lines if not line.startswith(("right: ", "wrong: ")))
    known = {} if shapes == "scalars" else read_shapes(shapes)
    return Derivation(source.removeprefix("# "), system, known, right, tuple((claim, told) for claim, _, told in wrong))


_, *TEXTS = Path(__file__).with_name("derivations.txt").read_text("utf-8").strip().split("\n\n")
DERIVATIONS = [read(text) for text in TEXTS]


def test_there_are_twenty_and_half_of_them_are_spoiled():
    assert len({d.source for d in DERIVATIONS}) >= 20
    assert sum(bool(d.wrong) for d in DERIVATIONS) >= 10


@pytest.mark.parametrize("derivation", some(DERIVATIONS), ids=Derivation.title)
def test_as_it_stands_in_the_book(derivation):
    found = {claim: verdict(derivation.system, derivation.shapes, claim) for claim in derivation.right}
    assert {claim: v.why for claim, v in found.items() if v.verdict != "right"} == {}


@long
@pytest.mark.parametrize("derivation", [d for d in DERIVATIONS if d.wrong], ids=Derivation.title)
def test_as_people_get_it_wrong(derivation):
    for claim, told in derivation.wrong:
        found = verdict(derivation.system, derivation.shapes, claim)
        assert found.verdict == "wrong"
        assert told in found.why
        assert found.difference == pytest.approx(found.true, rel=1e-5, abs=10 * found.error)
