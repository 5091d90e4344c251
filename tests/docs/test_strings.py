"""What a user reads is plain English: no text has a phrase that the project avoids."""

from __future__ import annotations

import pytest
from conftest import each

from tests.docs.strings import PROGRAM, ROOT, Text, of_python, texts

TEXTS = list(texts())
ROOMS = sorted({text.room for text in TEXTS})


@each("room", ROOMS)
def test_a_room_has_no_avoided_phrases(room):
    """`python -m tests.docs.strings --avoided ROOM` lists them, with what to write instead."""
    found = [f"{t.path}:{t.line}: {[*t.avoided]}: {t.text}" for t in TEXTS if t.room == room and t.avoided]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "avoided"),
    [
        ("an index is a whole number", ["whole number"]),
        ("values are parted by one comma", ["parted by"]),
        ("`told` is a name", []),
        ("there is no point, and it is no longer needed", []),
        ("it is no .npz file, and lacks a header", ["is no ", "lacks"]),
    ],
)
def test_an_avoided_phrase_is_seen(text, avoided):
    assert [*Text("gradcli/lang/x.py", 1, text).avoided] == avoided


def test_strings_that_reach_a_user_are_listed_and_others_are_not(tmp_path):
    """Help of commands and texts with values, but no docstring, annotation or regular expression."""
    module = PROGRAM / "cli" / "commands" / "jacobian.py"
    found = [text.text for text in of_python(module)]
    assert any(text.startswith("Show the Jacobian: J[i, j] = ∂y_i/∂x_j. EXPR is") for text in found)
    assert all("help=" not in text and not text.startswith("gradcli jacobian") for text in found)
    assert any("`…`" in text.text for text in TEXTS if text.path == "gradcli/lang/expressions.py")
    assert {"README.md", "gradcli/guide/run.md", "samples/mean.grad"} <= {text.path for text in TEXTS}
    assert all((ROOT / text.path).exists() for text in TEXTS)
