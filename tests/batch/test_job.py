"""What a run over many points is made of: a job that travels to other processes, blocks, and a tally of the points."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gradcli.batch import job
from gradcli.batch.job import Job, Tally
from gradcli.data.block import GivenPoints
from gradcli.errors import InputError, Notes, Source, Span
from gradcli.graph.vjp import sweep
from gradcli.lang.system import read_system


def system(text, **shapes):
    return read_system([Source(text)]).graph(shapes)


# Pickles


@pytest.mark.parametrize(
    "graph",
    [
        system("y0=a*b; y1=b**2"),
        system("h=x@M; y=softmax(h)[0]*0.1+pi/3; z=where(h>0, h, inf)", x=(2,), M=(2, 2)),
        sweep(system("h=x*x; y=sum(h)", x=(3,)), ["x"]).graph,
    ],
)
def test_a_graph_is_the_same_after_a_pickle(graph):
    found = pickle.loads(pickle.dumps(graph))
    for one, two in zip(graph.nodes, found.nodes, strict=True):
        assert (one.op, one.shape, one.settings, one.dtype) == (two.op, two.shape, two.settings, two.dtype)
    graphs = [(g, {node: k for k, node in enumerate(g.nodes)}) for g in (graph, found)]
    for kind in ("inputs", "outputs", "names"):
        before, after = ([(name, place[n]) for name, n in getattr(g, kind).items()] for g, place in graphs)
        assert before == after
    # What two nodes share is shared again: it is not computed twice.
    arguments = [[[place[a] for a in n.args] for n in g.nodes] for g, place in graphs]
    assert arguments[0] == arguments[1]
    assert pickle.dumps(found) == pickle.dumps(graph)


@pytest.mark.parametrize(
    "error",
    [
        InputError("a message"),
        InputError("a message", hint="a way out"),
        InputError("unknown function `sinn`", Span(Source("y = sinn(x)", "net.grad"), 4, 8), "did you mean `sin`?"),
    ],
)
def test_a_mistake_is_the_same_after_a_pickle(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is InputError
    assert found.render() == error.render()
    assert (found.message, found.span, found.hint) == (error.message, error.span, error.hint)


def test_a_job_is_the_same_after_a_pickle():
    graph = sweep(system("y=a*b+c"), ["a", "c"]).graph
    same = {"c": np.array([3.0]), "y.v": np.array([10.0])}
    found = pickle.loads(pickle.dumps(Job(graph, {"a": (), "b": ()}, same, {"a.grad": ["a.grad"]}, "llvm", 3)))
    assert (found.varying, found.columns, found.engine, found.threads) == (
        {"a": (), "b": ()},
        {"a.grad": ["a.grad"]},
        "llvm",
        3,
    )
    assert {name: value.tolist() for name, value in found.same.items()} == {"c": [3], "y.v": [10]}
    assert found.shapes == {"a.grad": (), "c.grad": ()}


# Blocks


class Written:
    """Keeps the blocks that are written."""

    def __init__(self):
        self.blocks = []

    def write(self, block):
        self.blocks.append({name: value.copy() for name, value in block.items()})


@pytest.mark.parametrize("size", [1, 3, 4, 9, 10, 11])
def test_blocks_of_any_size(monkeypatch, size):
    """The memory of one block serves the next: results of any block stay what they were when they were written."""
    monkeypatch.setattr(job, "_LONGEST", size)
    graph = sweep(system("y=a*b+c*c; z=3*c"), ["a", "b", "c"]).graph
    values = np.arange(20.0).reshape(2, 10)
    points = GivenPoints([{"a": np.array(a), "b": np.array(b)} for a, b in values.T])
    same = {"c": np.array([5.0]), "y.v": np.array([10.0]), "z.v": np.array([1.0])}
    written, heard = Written(), []
    tally = Job(graph, {"a": (), "b": ()}, same, {}).run(points, written.write, Notes(), heard.append)
    sizes = [min(size, 10 - start) for start in range(0, 10, size)]
    assert [b["a.grad"].shape[-1] for b in written.blocks] == sizes
    assert heard == np.cumsum(sizes).tolist()
    found = {n: np.concatenate([b[n] for b in written.blocks], -1).tolist() for n in written.blocks[0]}
    assert found == {"a.grad": (10 * values[1]).tolist(), "b.grad": (10 * values[0]).tolist(), "c.grad": [103] * 10}
    assert (tally.points, tally.not_finite) == (10, 0)


# The tally


def counted(*results, start=0):
    """Return the tally of blocks of results of two variables, at points that are numbered."""
    tally = Tally()
    for values in results:
        count = np.shape(values)[-1]
        block = {"a": np.arange(start, start + count, dtype=float), "x": np.ones((2, count))}
        tally.add(block, {"y.grad": np.array(values), "z.grad": np.ones((2, 1))})
        start += count
    return tally


NAN, INF = np.nan, np.inf


PARTS = [[[1.0, 2]], [[1.0], [INF, NAN]], [[1.0, 1, 1]], [[NAN, 1.0]]]


@pytest.mark.parametrize("cut", range(len(PARTS) + 1))
def test_parts_are_joined_as_if_they_were_one(cut):
    """The tallies of parts add up to that of all their points, joined in any groups."""
    starts = np.cumsum([0, *(sum(map(len, part)) for part in PARTS)])
    tallies = [counted(*part, start=start) for part, start in zip(PARTS, starts, strict=False)]
    groups = [Tally(), Tally()]
    for k, tally in enumerate(tallies):
        groups[k >= cut].join(pickle.loads(pickle.dumps(tally)))
    groups[0].join(groups[1])
    whole = counted(*(block for part in PARTS for block in part))
    for name in ("points", "not_finite", "first", "at", "results"):
        np.testing.assert_equal(getattr(groups[0], name), getattr(whole, name))
    assert (whole.points, whole.not_finite, whole.first) == (10, 3, 3)
