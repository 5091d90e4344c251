"""Wrong derivations as people post them: what the thread says that the slip is, `check` names."""

from pathlib import Path
from typing import NamedTuple

import pytest
from checked import in_this_process, verdict  # noqa: F401
from conftest import long
from judge import is_named
from slips_of_scalars import ScalarDerivation
from spoiler import Claim

from gradcli.lang.values import read_shapes

pytestmark = pytest.mark.usefixtures("in_this_process")

NAMED = 37  # of forty


class Post(NamedTuple):
    source: str
    system: str
    shapes: dict[str, tuple[int, ...]]
    claim: str
    kinds: tuple[str, ...]


def posts():
    _, *blocks = Path(__file__).with_name("students.txt").read_text("utf-8").strip().split("\n\n")
    for block in blocks:
        source, shapes, *system, claim = block.partition("\nkinds:")[0].splitlines()
        kinds = tuple(kind.strip() for kind in block.partition("\nkinds:")[2].split(",") if kind.strip())
        known = {} if shapes == "scalars" else read_shapes(shapes)
        yield Post(source.removeprefix("# "), "\n".join(system), known, claim.removeprefix("wrong: "), kinds)


POSTS = list(posts())


def as_claim(post):
    """Return a post about scalars as a claim of the law's."""
    left, _, right = post.claim.partition(" = ")
    of, by = left[1:].split("/d")
    d = ScalarDerivation(post.system, of, by, post.shapes)
    values = d.read_numbers(right)
    count = 2 if post.source.endswith("(two slips)") else 1
    return Claim(post.source, post.system, post.shapes, post.claim, (), count, "", d, values, {})


def named(post, found):
    if post.kinds:
        kinds = " + ".join(dict.fromkeys(s.kind for s in found.slips))
        return kinds in post.kinds or any(kind.strip('"') in found.why for kind in post.kinds if '"' in kind)
    return is_named(as_claim(post), found.why, found.slips)


def test_there_are_forty():
    assert len(POSTS) == 40


@long
def test_their_slips_are_named():
    missed = []
    for post in POSTS:
        found = verdict(post.system, post.shapes, post.claim)
        assert found.verdict == "wrong", post.claim
        if not named(post, found):
            missed.append(f"{post.source}: {post.claim}: {found.why}")
    print(f"{len(missed)} of {len(POSTS)} are not named:", *missed, sep="\n")
    assert len(POSTS) - len(missed) >= NAMED
