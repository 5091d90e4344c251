"""Messages as PyTorch 2.13 says them, and as other versions did, are found; what is none of them is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import each

from gradcli.guide.messages import find
from gradcli.guide.topics import topics

LINES = (Path(__file__).parent / "messages.txt").read_text("utf-8").splitlines()
RECORDED = [tuple(line.split(" | ", 1)) for line in LINES]


@each(("topic", "message"), RECORDED)
def test_a_message_is_found_in_a_traceback_and_in_lines(topic, message):
    traceback = 'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    loss.backward()\n'
    words = message.split(" ")
    broken = "\n".join(" ".join(words[i : i + 6]) for i in range(0, len(words), 6))
    assert find(traceback + message).topic.name == topic
    assert find(broken).topic.name == topic


def test_the_recorded_messages_reach_every_message_of_the_guide():
    reached = {find(message).section.heading for _, message in RECORDED}
    assert reached == {section.heading for t in topics().values() for section in t.sections if section.messages}


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("retain-graph", "backward through the graph a second time"),
        (
            "retain-graph",
            "Trying to backward through the graph a second time, but the buffers have already been freed.",
        ),
        ("retain-graph", "Trying to go backward through this graph for a second time"),
        ("gradient-argument", "invalid gradient at index 0 - expected shape [] but got [2, 2]"),
        ("gradient-argument", "RuntimeError: grad can be created implicitly only for scalar outputs"),
        ("autograd-grad", "One of the differentiated Tensors appears to not have been used in the graph."),
        (
            "in-place",
            "modified by an inplace operation: [torch.FloatTensor [10, 10]], which is output 0 of SigmoidBackward0",
        ),
        ("in-place", "RuntimeError: leaf variable has been moved into the graph interior"),
        ("leaf-and-intermediate", "element 0 of variables does not require grad and does not have a grad_fn"),
        ("detach-and-no-grad", "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead."),
        ("corners", "Function 'LogBackward' returned nan values in its 0th output."),
        ("shapes", "only one element tensors can be converted to Python scalars"),
    ],
)
def test_other_wordings_and_parts_are_found(topic, text):
    assert find(text).topic.name == topic


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "x",
        "RuntimeError",
        "got 5 tensors and 3 labels",
        "hello world",
        "CUDA out of memory. Tried to allocate 2",
    ],
)
def test_what_is_no_message_is_not_found(text):
    assert find(text) is None
