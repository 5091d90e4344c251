"""The cause, the fix and the topic of each broken script are the same under PyTorch and without it, but for a list."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")
sys.path.append(str(Path(__file__).parents[1] / "script"))

from broken import BROKEN, DETACHED, IN_WORDS, SLIPS
from causes import CAUSES

from tests.realtorch.alike import WAYS, listed, said, same, seeded, told

TEXTS = {
    **BROKEN, **IN_WORDS, **SLIPS,
    **{name: text for name, (text, _) in DETACHED.items()},
    **{name: cause.text for name, cause in CAUSES.items()},
}  # fmt: skip
UNLIKE = listed("unlike_errors.txt")


def test_all_but_the_listed_scripts_are_tried():
    assert {*TEXTS} >= UNLIKE
    assert len(TEXTS) - len(UNLIKE) >= 520


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in UNLIKE])
def test_a_broken_script_has_the_same_cause_and_fix(name):
    under, without = (told(said(seeded(TEXTS[name]), way, "table")[1]) for way in WAYS)
    assert same(under, without), (under, without)
