"""What a notebook shows of `gradcli.explain`: the live page in a frame; printed, the page of `gradcli backward`."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from gradcli import InputError, explain, parse


def test_it_is_the_page_of_backward_as_text(cli):
    shown = str(explain("y = x @ M", {"x": [1, 2], "M": [[1, 2], [3, 4]]}, {"y": [1, 10]}))
    assert shown == cli.done("backward", "y = x @ M", "--at", "x=[1,2],M=[[1,2],[3,4]]", "--v", "1,10").out.rstrip("\n")


def test_a_notebook_shows_the_live_page_in_a_frame():
    shown = explain(parse("y = x**2 + x"), {"x": 3.0})
    (source,) = re.fullmatch(
        r'<iframe [^>]*sandbox="allow-scripts" srcdoc="([^"]*)"></iframe>', shown._repr_html_()
    ).groups()
    assert html.unescape(source) == shown.html()
    assert 'data-grad-of="x" data-number="7"' in shown.html()


def test_the_package_may_be_called_too():
    import gradcli.pages.live

    assert "x.grad = " in str(gradcli.explain("y = x**2", {"x": np.float64(3)}))


@pytest.mark.parametrize(
    ("system", "at", "v", "told"),
    [
        ("y = x**2", {}, None, "the input `x` has no value"),
        (parse("y = x**2"), {"x": [1, 2]}, None, "the input `x` has shape (2,)"),
        ("y = x**2", {"x": [1, 2]}, None, "only a single scalar output has a gradient without v"),
        ("y = x**2", {"x": [1, 2]}, {"y": 1}, "v: `y` has shape ()"),
        ("y = x**2", {"x": 1}, {"z": 1}, "v: `z` is not an output"),
        ("y = x**2", {"x": "one"}, None, "is not an array of numbers"),
    ],
)
def test_mistakes(system, at, v, told):
    with pytest.raises(InputError) as caught:
        explain(system, at, v)
    assert told in str(caught.value)
