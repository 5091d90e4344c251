"""The pages of the guide: they are found by name, and the scripts below a message raise it, or print what is shown."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import warnings

import pytest
from conftest import each

from gradcli.guide.messages import find
from gradcli.guide.topics import PARTS, topic_named, topics
from gradcli.process.script import Script
from gradcli.pytorch.session import MODULES, public, run

MESSAGES = [
    pytest.param(topic, section, id=section.heading[:60])
    for topic in topics().values()
    for section in topic.sections
    if section.messages
]
_SCRIPT = re.compile(r"(?:<!-- needs (torch|cuda) -->\n)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def ran(source, real):
    """What a script prints, and what it says at its end: its error, or its warnings; in PyTorch itself if `real`."""
    out, error = io.StringIO(), None
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if real:
            try:
                exec(source, {})
            except Exception as raised:
                error = raised
        else:
            error = run(Script(source, "script.py", None)).error
    return out.getvalue(), [str(error)] if error else [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("topic", "section"), MESSAGES)
def test_one_script_provokes_the_message_and_the_other_is_right(topic, section):
    scripts = _SCRIPT.findall(section.text)
    assert len(scripts) == 2
    real = any(needs == "torch" for needs, _ in scripts)
    if real and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    (needs, wrong), (_, right) = scripts
    _, said = ran(wrong, real)
    if needs == "cuda":  # there is none: the script ends where it asks for it
        assert said == ["Torch not compiled with CUDA enabled"]
    else:
        assert any((found := find(text)) and found.section == section for text in said), said
    printed, said = ran(right, real)
    assert said == []
    assert printed.splitlines() == re.findall(r"  # (.*)$", right, re.MULTILINE)
    assert printed


def test_every_topic_is_one_of_a_part_and_found_by_all_its_names():
    named = [name for topic in topics().values() for name in (topic.name, *topic.also)]
    assert len(named) == len(set(named))
    for topic in topics().values():
        assert topic.part in PARTS
        assert all(topic_named(name) is topic for name in (topic.name, *topic.also))
        assert topic_named(topic.name.replace("-", " ").upper()) is topic


@each("topic", topics().values())
def test_a_summary_is_a_sentence_that_fits_on_a_line(topic):
    assert re.fullmatch(r"\S.{10,51}[.?]", topic.summary)


def test_the_guide_lists_what_there_is_of_torch():
    (section,) = [s for s in topic_named("run").text.split("\n## ") if s.startswith("What is supported")]
    parts = [re.findall("`(.*?)`", part) for part in re.split(r"\n- ", section.partition("\n\nThere are no")[0])]
    listed = {name: {n for n in names if "." not in n} for name, *names in filter(None, parts) if name in MODULES}
    assert len(listed) == 12
    for name, names in listed.items():
        module = importlib.import_module(f"gradcli.pytorch.{MODULES[name]}")
        elsewhere = (n for n in getattr(module, "ELSEWHERE", ()) if n[0] != "_")
        assert names == {*public(module), *elsewhere}, name
