"""What a picture shows: the numbers of the trace, each where it belongs, whether parts are folded or not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradcli import parse
from gradcli.graph.calls import opened
from gradcli.pages.picture.boxes import View
from gradcli.pages.picture.picture import least_boxes, picture
from gradcli.report.pictures.labels import Labels


def drawn(text, at=None, v=None, wrt=None, fold=True):
    at = at and {name: np.asarray(value, dtype=float) for name, value in at.items()}
    v = v and {name: np.asarray(value, dtype=float) for name, value in v.items()}
    graph = parse(text, **({n: a.shape for n, a in at.items()} if at else {}))
    return picture(graph, View(list(graph.inputs) if wrt is None else wrt, at, v, fold))


def boxes(*arguments, **more):
    return {box.name: box for box in drawn(*arguments, **more).boxes}


def told(found):
    labels = Labels(found, 6)
    return {box.name: labels.locals(box) for box in found.boxes}


def test_values_adjoints_and_local_derivatives():
    found = drawn("y = x**2 + x", {"x": 3}, {"y": 1})
    assert [(b.name, b.kind, float(b.value), float(b.adjoint)) for b in found.boxes] == [
        ("x", "leaf", 3, 7),
        ("t1", "intermediate", 9, 1),
        ("y", "output", 12, 1),
    ]
    assert [[a.source for a in b.arrows] for b in found.boxes] == [[], [0], [1, 0]]
    assert told(found) == {"x": [], "t1": ["∂t1/∂x = 2*x = 6"], "y": ["∂y/∂t1 = 1", "∂y/∂x = 1"]}
    assert (found.scalar, found.loss) == ("y", None)


CALLS = {
    "linear(x, w, b)": {"x": (2, 3), "w": (4, 3), "b": (4,)},
    "conv2d(x, w, b, padding=1)": {"x": (1, 1, 3, 3), "w": (1, 1, 2, 2), "b": (1,)},
    "scaled_dot_product_attention(x, w, b)": {"x": (2, 3), "w": (4, 3), "b": (4, 2)},
    "gru(x, b, w, u, has_biases=False)": {"x": (5, 1), "b": (1, 1), "w": (3, 1), "u": (3, 1)},
    "cross_entropy(x, [1, 0])": {"x": (2, 3)},
}


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_one_box(text):
    found = drawn(f"y = {text}", {name: np.ones(shape) for name, shape in CALLS[text].items()})
    *leaves, call = found.boxes
    assert [b.kind for b in leaves] == ["leaf"] * len(CALLS[text])
    assert (call.name, call.kind) == ("y", "output")
    assert {found.boxes[a.source].name for a in call.arrows} == {*CALLS[text]}


@pytest.mark.parametrize("text", CALLS)
def test_an_opened_call_has_the_value_and_the_adjoints_that_it_has_as_one_box(text):
    rng = np.random.default_rng(3)
    at = {name: rng.normal(size=shape) for name, shape in CALLS[text].items()}
    graph = parse(f"y = {text}", **CALLS[text])
    view = View(list(at), at, {"y": rng.normal(size=graph.outputs["y"].shape)})
    closed, whole = ({box.name: box for box in picture(g, view).boxes} for g in (graph, opened(graph)))
    assert len(whole) > len(closed)
    for name, box in closed.items():
        assert_allclose(whole[name].value, box.value, rtol=1e-12)
        assert_allclose(whole[name].adjoint, box.adjoint, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "folded", "whole"),
    [
        ("y = x**2 + 3*x", 4, 4),
        ("y0 = a*b; y1 = b; z = 3*y0", 4, 4),
        ("\n".join(["t0 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(20)), "y = t20 + x"]), 3, 23),
    ],
)
def test_boxes_are_counted_before_they_are_drawn(text, folded, whole):
    graph = parse(text)
    for fold, count in ((True, folded), (False, whole)):
        assert least_boxes(graph, fold) == len(picture(graph, View(list(graph.inputs), fold=fold)).boxes) == count


@pytest.mark.parametrize(
    ("formula", "local"), [("x*x", "x + x = 6"), ("x - x", "0"), ("x**x", "x*x**(x - 1) + y*log(x) = 56.6625")]
)
def test_a_value_that_is_read_twice_by_one_operation_has_one_arrow(formula, local):
    """What is said there is its adjoint's share: x̄ = ȳ·∂y/∂x, of the whole ∂y/∂x."""
    found = drawn(f"y = {formula}", {"x": 3}, {"y": 1})
    assert told(found)["y"] == [f"∂y/∂x = {local}"]
    assert f"{float(found.boxes[0].adjoint):g}" == local.rpartition("= ")[2]


def test_without_a_cotangent_there_are_local_derivatives():
    found = drawn("y = x**2; z = 3*x", {"x": 3})
    assert {b.adjoint for b in found.boxes} == {None}
    assert told(found) == {"x": [], "y": ["∂y/∂x = 2*x = 6"], "z": ["∂z/∂x = 3"]}


def test_what_has_no_adjoint_says_why():
    """A condition, what the cotangent does not reach, and an input that is a constant: none of them is 0."""
    found = boxes("y = where(x > 0, x, 2*a)", {"x": 1, "a": 1}, {"y": 1}, wrt=["x"])
    assert found["t1"].adjoint == "no gradient (a condition)"
    assert found["t2"].adjoint == found["a"].adjoint == "requires no gradient"
    assert float(found["x"].adjoint) == 1
    assert boxes("y = sqrt(2)*x", {"x": 1}, {"y": 1})["t1"].adjoint is None  # there is nothing to differentiate by


def test_a_chain_is_one_box_with_the_derivative_of_all():
    chain = "\n".join(["t1 = sin(x)", *(f"t{k + 1} = sin(t{k})" for k in range(1, 3000))])
    found = drawn(chain, {"x": 1}, {"t3000": 1})
    value = 1.0
    slope = 1.0
    for _ in range(3000):
        slope *= math.cos(value)
        value = math.sin(value)
    x, y = found.boxes
    assert Labels(found, 6).equation(y)[1] == "sin, 3,000 times"
    assert (x.kind, y.kind, y.times) == ("leaf", "output", 3000)
    assert_allclose([float(y.value), float(x.adjoint)], [value, slope])
    assert told(found)["t3000"] == [f"∂t3000/∂x = {slope:.6g}"]
    assert len(drawn(chain, {"x": 1}, {"t3000": 1}, fold=False).boxes) == 3001


BRANCHES = (
    "; ".join(f"h{k} = tanh(w*x{k} + b*x{k}**2)" for k in range(10))
    + "; L = "
    + " + ".join(f"h{k}**2" for k in range(10))
)


def test_branches_alike_are_one_box_for_each_operation_with_all_numbers():
    x, w, b = np.linspace(-1, 1, 10), 0.5, 0.25
    at = {f"x{k}": value for k, value in enumerate(x)} | {"w": w, "b": b}
    found = drawn(BRANCHES, at, {"L": 1})
    labels = Labels(found, 6)
    said = {labels.equation(box)[0]: labels.equation(box)[1] for box in found.boxes}
    assert said["h0, …, h9"] == "tanh(t4), 10 alike"
    assert said["L"] == "sum of 10 terms"
    assert said["x0, …, x9"] == "10 leaves"
    (h,) = [box for box in found.boxes if box.name == "h0, …, h9"]
    values = np.tanh(w * x + b * x**2)
    assert_allclose(h.value, values)
    assert_allclose(h.adjoint, 2 * values)
    assert labels.reverse(h)[0] == "h̄0, …, h̄9"
    assert labels.foot()[:1] == ["x̄0 = ∂L/∂x0"]
    alone = {box.name: box for box in drawn(BRANCHES, at, {"L": 1}, fold=False).boxes}
    assert {box.name for box in found.boxes if not box.ends} <= set(alone)
    for box in found.boxes:
        if not box.ends:
            assert_allclose([float(box.value), float(box.adjoint)], [alone[box.name].value, alone[box.name].adjoint])
        assert all(arrow.source < found.boxes.index(box) for arrow in box.arrows)


@pytest.mark.parametrize(
    ("text", "v", "foot"),
    [
        ("y = x**2", {"y": 1}, ["x̄ = ∂y/∂x"]),
        ("y = x**2", {"y": 3}, ["x̄ = ∂L/∂x", "L = 3·y"]),
        (
            "y = x; z = 2*x",
            {"y": 1, "z": 10},
            ["x̄ = ∂L/∂x", "L = 1·y + 10·z", "z: 10·2 = 20 is z̄·∂z/∂x, the part of x̄ from z"],
        ),
        (
            "L = 2*x; y = 3*L; z = x",
            {"y": 1, "z": 10},
            ["x̄ = ∂loss/∂x", "loss = 1·y + 10·z", "L: 3·2 = 6 is L̄·∂L/∂x, the part of x̄ from L"],
        ),
        ("y = x**2; z = 2*x", None, []),
        ("y = stack([x, x])", None, ["x̄ = ∂L/∂x", "L is any number computed from the output"]),
    ],
)
def test_what_adjoints_are_derivatives_of(text, v, foot):
    assert Labels(drawn(text, {"x": 3}, v), 6).foot() == foot


def test_a_value_with_two_names_has_both():
    found = drawn("y = x; z = 3*y", {"x": 2}, {"z": 1})
    assert Labels(found, 6).equation(found.boxes[0]) == ["y", "x", "2"]


def test_what_arrives_along_each_path_is_told_the_largest_first():
    found = drawn("a = w*x; b = a + x; y = a*b", {"w": 3, "x": 0.5}, {"y": 1})
    (box,) = (box for box in found.boxes if box.name == "x")
    assert [(p.source, p.product, p.contribution) for p in box.paths] == [
        ("a", (3.5, 3.0), 10.5),
        ("b", (1.5, 1.0), 1.5),
    ]
    labels = Labels(found, 6)
    assert labels.paths(box) == ["a: 3.5·3 = 10.5", "b: 1.5·1 = 1.5"]
    assert labels.foot()[-1].startswith("a: 3.5·3 = 10.5 is a\u0304·∂a/∂x, the part of x\u0304")
    assert not any(box.paths for box in drawn("y = exp(x)*w", {"w": 3, "x": 0.5}, {"y": 1}).boxes)


LOOP = "h[0] = x; h[t] = tanh(w*h[t-1]) for t in 1..30; L = h[30]**2"


def test_a_loop_is_one_box_with_what_each_round_assigns_and_adds():
    x, w = 0.5, 1.25
    found = drawn(LOOP, {"x": x, "w": w}, {"L": 1})
    labels = Labels(found, 6)
    (loop,) = [box for box in found.boxes if box.repeats]
    assert [labels.writer.sides(s) for s in loop.statements] == [["h[t]", "tanh(w*h[t-1]) for t in 1..30"]]
    h = [x]
    for _ in range(30):
        h.append(math.tanh(w * h[-1]))
    bars = [2 * h[-1]]
    for k in range(30, 1, -1):
        bars.insert(0, bars[0] * (1 - h[k] ** 2) * w)
    added = [bar * (1 - h[k + 1] ** 2) * h[k] for k, bar in enumerate(bars)]
    assert_allclose([float(loop.value), float(loop.adjoint)], [h[-1], bars[-1]])
    assert [(r.what, r.name, [*r.sizes]) for r in loop.rounds] == [
        ("added to ", "w̄", [*range(1, 31)]),
        ("", "h̄[t]", [*range(1, 31)]),
    ]
    assert_allclose([*loop.rounds[0].sizes.values()], added)
    assert_allclose([*loop.rounds[1].sizes.values()], bars)
    assert len(picture(parse(LOOP), View(["x", "w"], unroll=True)).boxes) == 2 + 60 + 1


def test_a_sum_of_many_terms_is_one_box_with_an_arrow_for_each():
    found = drawn("L = a + b**2 - c + d - a + 3", {"a": 2, "b": 3, "c": 4, "d": 5}, {"L": 1})
    y = found.boxes[-1]
    assert told(found)["L"] == ["∂L/∂a = 0", "∂L/∂t1 = 1", "∂L/∂c = -1", "∂L/∂d = 1"]
    assert Labels(found, 6).equation(y) == ["L", "a + t1 - c + d - a + 3", "13"]
    assert [box.name for box in found.boxes] == ["b", "t1", "a", "c", "d", "L"]
    assert len(drawn("L = a + b + c", {"a": 2, "b": 3, "c": 4}).boxes) == 5  # few are drawn one by one
