"""Loops in records: which operations are rounds, and where each operand comes from."""

from __future__ import annotations

import pytest

from gradcli.record.loops import Entry, loops
from gradcli.record.record import Source


def entries(*rounds, first=100):
    """Return entries with the ids of their results from `first` on; an operand is an id, or a name of a result."""
    ids, result = {}, []
    for statements in rounds:
        for kind, name, *operands in statements:
            read = tuple(ids.get(o, o) for o in operands)
            ids[name] = first + len(result)
            result.append(Entry(kind, read, (ids[name],), "f", "abcdefgh".index(kind[0])))
    return result


def test_a_recurrence_of_two_states():
    rounds = [[("a", "v", "v", 1), ("b", "x", "x", "v")] for _ in range(4)]
    (loop,) = loops(entries([("h", "v", 2), ("g", "x", 3)], *rounds))
    assert loop.rounds == ((2, 3), (4, 5), (6, 7), (8, 9))
    assert loop.sources == ((Source(None, 0, 0, 1), Source(1)), (Source(None, 1, 0, 1), Source(None, 0, 0, 0)))


def test_an_operand_two_rounds_before():
    run = entries([("h", "p", 1), ("g", "q", 2)], *([("a", f"f{k}", ("p", "q", "f0", "f1", "f2", "f3")[k],
                  ("q", "f0", "f1", "f2", "f3", "f4")[k])] for k in range(6)))  # fmt: skip
    (loop,) = loops(run)
    assert loop.sources == ((Source(None, 0, 0, 2), Source(None, 0, 0, 1)),)
    assert len(loop.rounds) == 6


def test_data_of_each_round_has_no_source():
    run = entries([("h", "s", 1)], *([("a", "s", "s", 10 + k)] for k in range(6)))
    (loop,) = loops(run)
    assert loop.sources == ((Source(None, 0, 0, 1), None),)


def test_a_first_round_that_makes_other_operations_is_no_round():
    run = entries([("h", "s", 1)], [("a", "t", 1), ("c", "s", "t")],
                  *([("a", "t", "s"), ("b", "u", "t", 2), ("c", "s", "u")] for _ in range(4)))  # fmt: skip
    (loop,) = loops(run)
    assert [ids[0] for ids in loop.rounds] == [3, 6, 9, 12]


def test_rounds_begin_where_the_code_goes_back():
    run = entries(*([("a", "t", "s" if k else 1), ("b", "u", "t"), ("c", "s", "u")] for k in range(4)))
    (loop,) = loops(run)
    assert loop.rounds[0] == (0, 1, 2)


@pytest.mark.parametrize("times", [2, 4])
def test_two_rounds_are_no_loop(times):
    assert len(loops(entries(*([("a", "s", "s" if k else 1), ("b", "s", "s")] for k in range(times))))) == (times > 2)


def test_rounds_that_differ_end_a_loop():
    usual, other = [("a", "s", "s"), ("b", "s", "s")], [("a", "s", "s"), ("c", "s", "s")]
    found = loops(entries([("h", "s", 1)], *[usual] * 3, other, *[usual] * 4))
    assert [len(loop.rounds) for loop in found] == [3, 4]


def test_the_cost_grows_with_the_rounds():
    calls = []

    class Counted(tuple):
        def __hash__(self):
            calls.append(1)
            return super().__hash__()

    counts = []
    for times in (500, 1000):
        run = entries([("h", "s", 1)], *[[("a", "t", "s"), ("b", "s", "t")]] * times)
        del calls[:]
        (loop,) = loops([e._replace(kind=Counted((e.kind,))) for e in run])
        assert len(loop.rounds) == times
        counts.append(len(calls))
    assert counts[1] <= 2.2 * counts[0]
