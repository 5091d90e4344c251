"""The law of truth over the corpus: what a page says of a script is what the script's tensors had, line by line.

Each number beside a name is one that the variable had, each equation holds, and each `.grad` is the tensor's.  A trace
of the test's own sees what variables had; formulas are typed back, as a reader would.
"""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
from conftest import some
from recurrences import CASES

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Source
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.lang.builder import build
from gradcli.lang.expressions import read_expression
from tests.pytorch.collection import scripts

HERE = Path(__file__).parent
FOLDERS = (HERE.parents[1] / "samples", HERE / "pinned")
SCRIPTS = {p.stem: p.read_text("utf-8") for folder in FOLDERS for p in sorted(folder.glob("*.py"))}
SCRIPTS |= {name: case.code for name, case in CASES.items()}
# Scripts whose names are those of several things by turns, or whose pages are of functions and calls in words.
UNREAD = [
    "attention: attention in several heads", "attention: encoder layers of transformers",
    "autograd: gradients with and without create_graph", "autograd: own functions that change a view, or return one",
    "functions: nothing in a batch", "inplace: what is retained of a tensor that is changed in place",
    "inplace: data that is assigned before a backward", "layers: norms, pools and sizes",
    "layers: linear of what is not contiguous", "layers: classes learnt",
    "layers: channels, dropouts of channels, margins and bilinear maps", "layouts: gradients of functions",
    "matrices: orthogonal and triangular factors", "matrices: the inverse of erf",
    "pooling: maxima of windows of unequal sizes", "recurrent: a projection of the output",
    "tensors: functions of torch.special", "tensors: one matrix for all of a stack",
    "tensors: values and gradients of layers and losses",
    "transforms: functions that are transformed, and what they may not do", "transforms: derivatives that are strict",
]  # fmt: skip
SCRIPTS |= {name: text for name, text in scripts().items() if name not in UNREAD}
LARGEST = 5000  # elements of an array that is looked at
CHOICES = 200  # of values that names without a number on the page had
WORDS = re.compile(r"∂| for \w+ in|Backward|[Hh]ook|…|\.backward")  # no formula, or one in words
NUMBER = re.compile(r"\[.*\]|-?(?:[\d.]+(?:e[-+]?\d+)?|inf|nan)")
EXCUSED = ("The formula need not be nan", "differs from its formula", "as written is nan here", "has no derivative")


def tensors(scope):
    """Yield the tensors of a scope with the names that the script has for them."""
    for name, x in [*scope.items()]:
        if not name.startswith("__"):
            yield from parts(name, x, 0)


def parts(name, x, depth):
    """Yield the tensors in a value: itself, or those of a list, a dictionary, a module or an object."""
    if hasattr(x, "_a"):
        yield name, x
    elif hasattr(type(x), "named_parameters"):
        before = "" if name == "self" else f"{name}."
        yield from ((before + inner, p) for inner, p in [*x.named_parameters(), *x.named_buffers()])
        yield from ((before + inner, y) for inner, y in vars(x).items() if hasattr(y, "_a"))
    elif isinstance(x, list | tuple | dict) and len(x) <= 64 and depth < 2:
        for key, y in x.items() if isinstance(x, dict) else enumerate(x):
            yield from parts(key if isinstance(key, str) and not depth else f"{name}[{key}]", y, depth + 1)
    elif not depth and type(x).__module__ == "__main__" and not isinstance(x, type):
        yield from (
            (inner if name == "self" else f"{name}.{inner}", y) for inner, y in vars(x).items() if hasattr(y, "_a")
        )


def run(cli, path):
    """Return the pages of a script, as lists of lines, and the values that its variables and their `.grad` had."""
    had = {}

    def note(name, a):
        known = had.setdefault(name, [])
        if a.size <= LARGEST and not any(same(a, b) for b in known[-3:]):
            known.append(a.copy())

    def line(frame, event, argument):
        if frame.f_code.co_filename != str(path):
            return None
        for name, x in tensors({**frame.f_globals, **frame.f_locals}):
            note(name, x._a[..., 0])
            if x._grad is not None:
                note(f"{name}.grad", x._grad._a[..., 0])
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        outcome = cli("run", str(path))
    finally:
        sys.settrace(before)
    pages = re.findall(r"^(── line .*\n(?:.*\n)*?)─+$", unicodedata.normalize("NFC", outcome.out), re.MULTILINE)
    return [page.splitlines() for page in pages], had


def same(a, b):
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def close(a, b):
    """Return whether numbers are equal as far as a page has digits of the largest."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape:
        return False
    largest = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, rtol=3e-4, atol=3e-4 * largest, equal_nan=True)


def number(text):
    """Return the numbers that a text is; None for a formula, and for the first entries of a large array."""
    if not NUMBER.fullmatch(text) or "…" in text:
        return None
    try:
        items = ast.literal_eval(re.sub(r"\bnan\b", "None", re.sub(r"\binf\b", "1e999", text)))
        return np.array(items, float)  # None is nan
    except (ValueError, SyntaxError):
        return None


def read(page):
    """Return the equations of a page as their sides, and the numbers of the point."""
    equations, known = [], {}
    for line in page:
        if row := re.match(r"^  +(?:[a-z][a-z ]*[a-z]  +)?(\S+)  +(?:scalar|[\d×]+)  +(.*)$", line):
            known[row[1]] = number(row[2])
        point = re.search(r"(?:^|   )at (\S+ = .+)$", line)
        for name, value in re.findall(r"(\S+) = (\[[^=]*\]|[-\d.einfa]+)(?:, |$)", point[1]) if point else ():
            known[name] = number(value)
        line = line[: point.start()] if point else line
        if cotangent := re.match(r"^v = (?:[^;=]+ = )?(\[.*?\]+|[-\d.e]+)(?:[;:,]|$)", line):
            known["v"] = number(cotangent[1])
        elif re.match(r"^[^\s=:]+ +=", line) and not line.startswith("v = "):
            equations.append([side.strip() for side in re.split(r" +=(?!=) ", line)])
    return equations, {name: a for name, a in known.items() if a is not None and not np.isinf(a).any()}


def value(formula, known):
    """Return the value of a formula as it is typed, and the names in it."""
    names = sorted(known, key=len, reverse=True)
    either = "|".join(rf"(?<![\w.\]]){re.escape(name)}(?![\w(.\[\u0304])" for name in names) or r"(?!)"
    text = re.sub(either, lambda m: f"q{names.index(m[0])}q", formula.replace("·", "*"))
    used = {f"q{k}q": name for k, name in enumerate(names) if f"q{k}q" in text}
    scope = {short: leaf(np.shape(known[name])) for short, name in used.items()}
    node = build(read_expression(Source(text)), scope)
    at = {short: np.asarray(known[name], float) for short, name in used.items()}
    with np.errstate(all="ignore"):
        return at_point(Graph.of(scope, {"": node}), at, [node])[node], [*used.values()]


def may_be(side, numbers, known, shown, had):
    """Return whether a formula has these numbers; names without a number on the page have one that they had.

    None is for what cannot be typed.
    """
    try:
        result, used = value(side, known)
        if close(result, numbers):
            return True
        free = [name for name in used if name not in shown and len(had.get(name, ())) > 1]
        choices = islice(product(*(had[name] for name in free)), CHOICES) if free else ()
        return any(close(value(side, known | dict(zip(free, some_of, strict=True)))[0], numbers) for some_of in choices)
    except InputError:
        return None


def check(page, had, script):
    """Check a page; return how many of its formulas were held to their numbers, and how many were not read."""
    equations, shown = read(page)
    for left, *sides in equations:
        if not left.endswith(".grad") and (a := number(sides[-1])) is not None:
            shown.setdefault(left, a)
    for name, numbers in [pair for pair in shown.items() if pair[0] != "v"]:  # the cotangent
        variable = name if name in had else re.sub(r"_\d+$", "", name)
        if variable in had:
            assert any(close(numbers, a) for a in had[variable]), (name, numbers, page)
    known = {name: a[-1] for name, a in had.items() if a and not name.endswith(".grad")} | shown
    checked = unread = 0
    excused = any(text in " ".join(page) for text in EXCUSED)
    for left, *sides in equations:
        numbers = number(sides[-1])
        numbers = known.get(left) if numbers is None else numbers
        for side in [s for s in sides if not WORDS.search(s)]:
            if numbers is None:  # the formula defines what the page has no number of
                try:
                    numbers = known[left] = value(side, known)[0]
                except InputError:
                    unread += 1
                continue
            holds = may_be(side, numbers, known, shown, had)
            assert holds is not False or excused, (left, side, page)
            checked += bool(holds)
            unread += holds is None
    for text in page:
        line = re.match(r"^(\S+)\.grad: .*→ (\[.*\]|[-\d.e]+)(?:, kept.*)?$", text)
        if line and (numbers := number(line[2])) is not None and f"{line[1]}.grad" in had:
            grads = had[f"{line[1]}.grad"]
            # Where a line has several statements, no trace sees what is between them.
            at = re.search(r"line (\d+)", page[0])
            assert ";" in script.splitlines()[int(at[1]) - 1] or any(close(numbers, a) for a in grads), (text, page)
    return checked, unread


@pytest.mark.parametrize("name", some(SCRIPTS))
def test_the_pages_of_a_script_are_true(cli, tmp_path, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "4000")
    path = tmp_path / "script.py"
    path.write_text(SCRIPTS[name], "utf-8")
    pages, had = run(cli, path)
    counts = [check(page, had, SCRIPTS[name]) for page in pages]
    assert "fault of gradcli" not in "".join(map("".join, pages))
    checked, unread = map(sum, zip((0, 0), *counts, strict=True))
    assert checked >= unread, (checked, unread)  # the law is about most of what pages say
