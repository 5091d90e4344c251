"""What one box has: isomorphic operations, nothing twice or left out, and each box behind those that it needs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conftest import each

from gradcli import parse
from gradcli.pages.picture import folding
from gradcli.pages.picture.boxes import View
from gradcli.pages.picture.folding import folds, isomorphic_groups, isomorphic_leaves
from gradcli.pages.picture.picture import picture


def computed(graph):
    return [n for n in graph.nodes if n.op not in ("input", "const")]


def some_system(seed):
    """Rows that do the same to leaves of their own and to shared ones, what joins them, and some of another kind."""
    chance = random.Random(seed)
    rows, shared = chance.randrange(3, 14), chance.choice(["w", "w*w", "sin(w)"])
    body = chance.choice(["{s}*x{k}", "tanh({s}*x{k} + b)", "x{k}*exp(-x{k})", "p[{k}]*x{k}", "sin(x{k})*cos(x{k})"])
    lines = [f"h{k} = {body.format(s=shared, k=k)}" for k in range(rows)]
    names = [f"h{k}" for k in range(rows)]
    join = chance.choice([" + ", "*", " - "]).join
    last = chance.choice([join(names), join(f"{n}**2" for n in names), f"{join(names)} + {chance.choice(names)}"])
    odd = chance.sample([f"z{j} = {chance.choice(names)}*{chance.choice(names)} + w" for j in range(4)], 2)
    return parse("\n".join([*lines, *odd, f"y = {last}"]), p=(rows,) if "p[" in body else ())


@each("seed", range(40))
def test_each_operation_is_in_one_box_behind_what_it_needs(seed):
    graph = some_system(seed)
    parts = folds(graph, computed(graph))
    assert sorted(map(id, computed(graph))) == sorted(id(n) for part in parts for n in part.nodes)
    place = {n: k for k, part in enumerate(parts) for n in part.nodes}
    for n in computed(graph):
        assert all(place[a] <= place[n] for a in n.args if a in place)
    for part in parts:
        if part.side_by_side:
            assert len({(n.op, n.shape, len(n.args)) for n in part.nodes}) == 1
            assert not {a for n in part.nodes for a in n.args} & set(part.nodes)
    leaves = [leaf for group in isomorphic_leaves(graph, parts) for leaf in group]
    assert len(leaves) == len(set(leaves))


def test_a_leaf_that_all_read_is_told_from_leaves_of_their_own():
    graph = parse("; ".join([*(f"y{k} = a{k}*w" for k in range(10)), *(f"z{k} = a{k}*b{k}" for k in range(10))]))
    assert [[n.op for n in group] for group in isomorphic_groups(graph, graph.nodes)] == [["mul"] * 10] * 2
    groups = isomorphic_leaves(graph, folds(graph, computed(graph)))
    assert sorted(len(group) for group in groups) == [10, 10]


@pytest.mark.parametrize("seed", range(8))
def test_what_stands_by_itself_has_the_same_numbers_as_without_folding(seed):
    graph = some_system(seed)
    chance = np.random.default_rng(seed)
    at = {name: chance.uniform(0.5, 1.5, x.shape) for name, x in graph.inputs.items()}
    v = {name: np.ones(y.shape) for name, y in graph.outputs.items()}
    folded, whole = (picture(graph, View(list(graph.inputs), at, v, fold)).boxes for fold in (True, False))
    each = {box.nodes[-1]: box for box in whole}
    for k, box in enumerate(folded):
        assert all(arrow.source < k for arrow in box.arrows)
        if box.times == 1:
            np.testing.assert_array_equal(box.value, each[box.nodes[-1]].value)
            np.testing.assert_array_equal(box.adjoint, each[box.nodes[-1]].adjoint)
        for end in box.nodes if box.ends else ():
            assert each[end].kind == box.kind


@each("seed", range(5))
def test_the_middle_of_a_long_system_is_one_box_and_the_others_keep_their_numbers(seed, monkeypatch):
    """Whatever is repeated or read by many: the picture has no circle, and no more boxes than it may."""
    monkeypatch.setattr(folding, "MOST_BOXES", 30)
    chance = random.Random(seed)
    names = [f"x{k}" for k in range(25)]
    lines = []
    for k in range(80):
        lines.append(f"s{k} = sin({chance.choice(names)})*{chance.choice(names)} + {chance.choice(names)}")
        names.append(f"s{k}")
    graph = parse("\n".join(lines))
    at = {name: np.array(chance.uniform(0.5, 1.5)) for name in graph.inputs}
    v = {name: np.ones(()) for name in graph.outputs}
    drawn, whole = (picture(graph, View(list(graph.inputs), at, v, fold)) for fold in (True, False))
    middle = [box for box in drawn.boxes if box.formula == drawn.middle]
    count = sum(1 for box in whole.boxes if box.kind != "leaf") - sum(
        box.times
        for box in drawn.boxes
        if box.kind != "leaf" and box not in middle and "leaves" not in str(box.formula)
    )
    assert [box.times for box in middle] == [count]
    assert len(drawn.boxes) <= 32
    each = {box.name: box for box in whole.boxes}
    for k, box in enumerate(drawn.boxes):
        sources = [arrow.source for arrow in box.arrows]
        assert all(source < k for source in sources)
        assert sources.count(drawn.boxes.index(middle[0])) <= 1
        if box.times == 1:
            np.testing.assert_array_equal(box.value, each[box.name].value)
            np.testing.assert_array_equal(box.adjoint, each[box.name].adjoint)
