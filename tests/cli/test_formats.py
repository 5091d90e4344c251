"""Numbers are never cut short, however narrow the page."""

from __future__ import annotations

import re

import pytest

NUMBERS = [1.2345678901234567e-300, 1.7976931348623157e308, 0.30000000000000004, 1234567890123456.8, 5e-324]


@pytest.mark.parametrize("columns", ["10", "80", "400"])
@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_numbers_are_never_cut_short(cli, monkeypatch, style, columns):
    monkeypatch.setenv("COLUMNS", columns)
    whole = ("-f", style, "--steps", "--digits", "full")
    out = cli.done("backward", "y=x*1", "--at", f"x={NUMBERS}", "--v", str(NUMBERS), *whole).out
    for number in NUMBERS:
        # In the point, in the value, and in the gradient.
        assert len(re.findall(rf"(?<![\d.]){re.escape(repr(number))}(?![\d.e])", out)) >= 3
