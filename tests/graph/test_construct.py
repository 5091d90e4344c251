"""What constructors accept and refuse: axes, shapes that fit, sizes that are absurd; and what they leave as it is."""

import numpy as np
import pytest

from gradcli import InputError, evaluate
from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.shapes import MAX_ELEMENTS, MAX_RANK, broadcast_shapes, check_size

A, X, Y, M, N = leaf(), leaf((3,)), leaf((4,)), leaf((2, 3)), leaf((3, 4))


@pytest.mark.parametrize(
    ("axis", "rank", "axes"),
    [
        (None, 0, ()),
        (None, 2, (0, 1)),
        (0, 1, (0,)),
        (-1, 1, (0,)),
        (1, 2, (1,)),
        (-2, 2, (0,)),
        (-1, 3, (2,)),
        ((2, 0), 3, (0, 2)),
        ([-1, -3], 3, (0, 2)),
        ((), 2, ()),
    ],
)
def test_axes_are_counted_from_the_front(axis, rank, axes):
    assert construct.axes_of(axis, rank) == axes


@pytest.mark.parametrize(
    ("axis", "rank", "says"),
    [
        (1, 1, "there is no axis 1 in an array of 1 dimension"),
        (-2, 1, "there is no axis -2 in an array of 1 dimension"),
        (0, 0, "there is no axis 0 in an array of 0 dimensions"),
        (-1, 0, "there is no axis -1 in an array of 0 dimensions"),
        (2, 2, "there is no axis 2 in an array of 2 dimensions"),
        (-3, 2, "there is no axis -3 in an array of 2 dimensions"),
        ((0, 3), 3, "there is no axis 3 in an array of 3 dimensions"),
        ((0, 0), 2, "an axis is named twice"),
        ((1, -1), 2, "an axis is named twice"),
        (True, 2, "an axis must be an integer or a tuple of integers"),
        ((0, 1.0), 2, "an axis must be an integer or a tuple of integers"),
        ("0", 1, "an axis must be an integer or a tuple of integers"),
    ],
)
def test_axes_that_there_are_not(axis, rank, says):
    with pytest.raises(InputError) as caught:
        construct.axes_of(axis, rank)
    assert str(caught.value).splitlines()[0].removeprefix("error: ") == says


@pytest.mark.parametrize(
    ("shapes", "together"),
    [
        ([()], ()),
        ([(), ()], ()),
        ([(3,), ()], (3,)),
        ([(), (3,)], (3,)),
        ([(3, 1), (4,), ()], (3, 4)),
        ([(1,), (0,)], (0,)),
        ([(2, 1, 3), (5, 1)], (2, 5, 3)),
        ([(1, 1), (1,)], (1, 1)),
        ([(4096, 1), (4096,)], (4096, 4096)),
    ],
)
def test_shapes_that_fit(shapes, together):
    assert broadcast_shapes(shapes) == together
    assert call("add", *(leaf(s) for s in (shapes * 2)[:2])).shape == np.broadcast_shapes(*(shapes * 2)[:2])


@pytest.mark.parametrize("shapes", [[(2,), (3,)], [(3, 2), (3,)], [(2, 3), (3, 2)], [(0,), (2,)], [(2,), (), (3,)]])
def test_shapes_that_do_not_fit(shapes):
    with pytest.raises(InputError, match="do not fit together"):
        broadcast_shapes(shapes)


BIG, WIDE = leaf((5000,)), leaf((4097, 2))


@pytest.mark.parametrize(
    "build",
    [
        lambda: call("add", leaf((5000, 1)), BIG),
        lambda: BIG * leaf((5000, 1)),
        lambda: construct.broadcast(BIG, (5000, 5000)),
        lambda: construct.outer(BIG, BIG),
        lambda: construct.matmul(WIDE, construct.swap(WIDE)),
        lambda: construct.matmul(leaf((5000, 1, 1, 1)), leaf((5000, 1, 1))),
        lambda: construct.from_diagonal(BIG, (5000, 5000)),
        lambda: construct.stack([BIG] * 3356, 0),
        lambda: construct.concatenate([BIG] * 3356, 0),
        lambda: check_size((2**12, 2**12 + 1)),
        lambda: check_size((MAX_ELEMENTS + 1,)),
    ],
)
def test_absurd_sizes_are_refused(build):
    with pytest.raises(InputError, match=r"is too large(?s:.*)at most 16,777,216 elements fit"):
        build()


def test_very_many_dimensions_are_refused():
    x = leaf((1,) * MAX_RANK)
    assert check_size(x.shape) == x.shape
    for build in (
        lambda: construct.stack([x]),
        lambda: construct.index(x, (None, *(range(1) for _ in x.shape))),
        lambda: construct.reshape(x, (1, *x.shape)),
    ):
        with pytest.raises(InputError, match="an array of 33 dimensions has too many"):
            build()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: construct.matmul(A, X), "`@` multiplies vectors and matrices, but the left factor is a scalar"),
        (lambda: construct.matmul(X, const(2)), "but the right factor is a scalar"),
        (lambda: construct.matmul(X, Y), "shapes (3,) and (4,) cannot be multiplied: 3 columns meet 4 rows"),
        (lambda: construct.matmul(N, M), "shapes (3, 4) and (2, 3) cannot be multiplied: 4 columns meet 2 rows"),
        (lambda: construct.matmul(X, M), "3 columns meet 2 rows"),
        (lambda: construct.matmul(leaf((2, 2, 3)), leaf((3, 3, 2))), "do not fit together"),
        (lambda: construct.outer(X, M), "`outer` takes two vectors, not shapes (3,) and (2, 3)"),
        (lambda: construct.outer(A, X), "`outer` takes two vectors"),
        (lambda: construct.trace(X), "`trace` takes a matrix, not an array of shape (3,)"),
        (
            lambda: construct.check_matrix("diag", leaf((2, 2, 2))),
            "`diag` takes a matrix, not an array of shape (2, 2, 2)",
        ),
        (lambda: construct.transpose(M, (0, 0)), "axes (0, 0) are not a permutation of the 2 axes"),
        (lambda: construct.transpose(M, (0,)), "are not a permutation of the 2 axes"),
        (lambda: construct.reshape(M, (4,)), "6 elements of shape (2, 3) do not fill shape (4,)"),
        (lambda: construct.reshape(M, (4, -1)), "do not fill shape (4, -1)"),
        (lambda: construct.reshape(M, (-1, -1)), "do not fill shape (-1, -1)"),
        (lambda: construct.reshape(M, (-2, -3)), "do not fill shape (-2, -3)"),
        (lambda: construct.reshape(M, (0, -1)), "do not fill shape (0, -1)"),
        (lambda: construct.broadcast(M, (3,)), "shape (2, 3) does not broadcast to (3,)"),
        (lambda: construct.broadcast(X, (1,)), "shape (3,) does not broadcast to (1,)"),
        (lambda: construct.concatenate([M, N], 0), "shapes (2, 3) and (3, 4) do not fit along axis 0"),
        (lambda: construct.concatenate([M, construct.swap(M)], 1), "do not fit along axis 1"),
        (lambda: construct.stack([X, Y]), "elements of shapes (3,) and (4,) cannot be stacked into one array"),
        (lambda: construct.reduce("max", leaf((0, 2)), (0,), "even"), "`max` of an empty array has no value"),
    ],
)
def test_what_does_not_fit_is_refused(build, says):
    with pytest.raises(InputError) as caught:
        build()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda: construct.matmul(X, X), ()),
        (lambda: construct.matmul(M, X), (2,)),
        (lambda: construct.matmul(X, N), (4,)),
        (lambda: construct.matmul(M, N), (2, 4)),
        (lambda: construct.matmul(leaf((5, 2, 3)), N), (5, 2, 4)),
        (lambda: construct.matmul(leaf((5, 1, 2, 3)), leaf((6, 3, 4))), (5, 6, 2, 4)),
        (lambda: construct.matmul(leaf((5, 2, 3)), X), (5, 2)),
        (lambda: construct.matmul(X, leaf((6, 3, 4))), (6, 4)),
        (lambda: construct.diagonal(N), (3,)),
        (lambda: construct.reshape(M, (3, -1)), (3, 2)),
        (lambda: construct.reshape(leaf((0, 2)), (-1,)), (0,)),
        (lambda: construct.concatenate([M, M, M], 1), (2, 9)),
        (lambda: construct.stack([M, M, M], 1), (2, 3, 3)),
        (lambda: construct.stack([A, A]), (2,)),
        (lambda: construct.index(M, (1,)), (3,)),
        (lambda: construct.index(M, (None, range(1, 2), None, 0)), (1, 1, 1)),
        (lambda: construct.reduce("sum", leaf((2, 3, 4)), (0, 2)), (3,)),
        (lambda: construct.sum_to(leaf((2, 3, 4)), (3, 1)), (3, 1)),
        (lambda: construct.sum_to(leaf((2, 3, 4)), ()), ()),
    ],
)
def test_shapes_of_results(build, shape):
    node = build()
    assert node.shape == shape
    leaves = {f"x{i}": n for i, n in enumerate(scheduled([node])) if n.op == "input"}
    graph = Graph.of(leaves, {"y": node})
    (value,) = evaluate(graph, {name: np.ones((*n.shape, 2)) for name, n in leaves.items()}).values()
    assert value.shape == (*shape, 2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: construct.transpose(M, (0, 1)),
        lambda: construct.reshape(M, (2, 3)),
        lambda: construct.reshape(M, (2, -1)),
        lambda: construct.broadcast(M, (2, 3)),
        lambda: construct.sum_to(M, (2, 3)),
        lambda: construct.index(M, (range(2), range(3))),
        lambda: construct.index(M, (range(2),)),
        lambda: construct.concatenate([M], 1),
        lambda: construct.concatenate([leaf((2, 0)), M, leaf((2, 0))], 1),
    ],
)
def test_what_changes_nothing_is_no_operation(build):
    assert build() is M


def test_what_changes_something_is_one():
    for key in [(range(1, -1, -1),), (range(1),), (None,), (range(2), range(2, -1, -1))]:
        assert isinstance(construct.index(M, key), Node)
        assert construct.index(M, key).op == "index"
    assert construct.concatenate([leaf((2, 0)), leaf((2, 0))], 1).shape == (2, 0)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: construct.transpose(x, (1, 0)),
        lambda x: construct.reshape(x, (3, 2)),
        lambda x: construct.broadcast(x, (4, 2, 3)),
        lambda x: construct.index(x, (0,)),
        lambda x: construct.flip(x, (0,)),
    ],
)
def test_a_number_is_the_same_wherever_it_is_moved(build):
    moved = build(const(7, (2, 3)))
    assert moved.value == 7
    assert moved.shape == build(M).shape
