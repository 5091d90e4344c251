"""Pages, JSON and what is said of errors are the same under PyTorch and without it, but for scripts with a reason."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from tests.realtorch.alike import listed, texts, unlike

TEXTS = texts()
UNLIKE = listed("unlike.txt")


def test_all_but_the_listed_scripts_are_tried():
    assert {*TEXTS} >= UNLIKE
    assert len(UNLIKE) <= 40


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in UNLIKE])
def test_a_script_has_the_same_pages_with_and_without_pytorch(name):
    assert [*unlike(TEXTS[name])] == []


@pytest.mark.parametrize("name", sorted(UNLIKE))
def test_a_listed_script_differs(name):
    assert [*unlike(TEXTS[name])]
