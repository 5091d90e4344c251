"""Constructors of nodes: each checks shapes and complains in the user's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product
from operator import mul

from gradcli.errors import InputError
from gradcli.graph.array import Array, Weights, exact
from gradcli.graph.dtypes import DType, summed
from gradcli.graph.node import Constant, Exact, Node, cast, compare, const, elementwise, is_const, lift
from gradcli.graph.shapes import Shape, bare, broadcast_shapes, check_size, size_of

# A slice with known ends is a range: hashable, and its length is its size.
Index = tuple[int | range | None, ...]
Axes = tuple[int, ...]

LISTED = 16  # elements of an array that are numbers of their own in a constant


def array_const(value: Array, dtype: DType = "float64", listed: int = LISTED) -> Node:
    """Return an array as a constant of that type, or of booleans; of more than `listed` elements it has the array.

    Errors: `InputError` for an array of anything but real numbers, and of integers of fewer than 8 bits.

    >>> import numpy as np
    >>> array_const(np.array([1, 2])).values, array_const(np.zeros(100)).values, array_const(np.array(True)).dtype
    ((1, 2), 100 numbers, 'bool')
    """
    if value.dtype.kind not in "biuf" and value.dtype.name != "bfloat16":
        raise InputError(f"an array of `{value.dtype}` is not supported")
    kind: DType = "bool" if value.dtype.kind == "b" else dtype
    shape = check_size(value.shape)
    if value.size == 1:
        return const(exact(value.reshape(-1)[0]), shape, kind)
    if value.size <= listed:
        return const(tuple(exact(number) for number in value.reshape(-1)), shape, kind)
    return const(Weights(value), shape, kind)


def where(condition: Node, a: Node | Exact, b: Node | Exact) -> Node:
    """Return the node that is `a` where the condition holds and `b` elsewhere."""
    return selection("where", condition, lift(a), lift(b))


def corner(condition: Node, value: Node | Exact, formula: Node) -> Node:
    """Return the node of a formula that has no value of its own where the condition holds, and this value there.

    It computes what `where` computes; a page shows the formula alone.
    """
    return selection("corner", condition, lift(value), formula)


def selection(op: str, condition: Node, a: Node, b: Node) -> Node:
    """Return the node of an operation that selects; of two equal constants it is that constant."""
    result = elementwise(op, condition, a, b)
    return const(a.value, result.shape) if a.value is not None and a.value == b.value else result


def equal(a: Node, b: Node | Exact) -> Node:
    """Return the node of the comparison `a == b`."""
    return compare("eq", a, lift(b))


def call(op: str, *args: Node | Exact) -> Node:
    """Return the node of a function of the table."""
    return elementwise(op, *map(lift, args))


def axes_of(axis: int | Sequence[int] | None, rank: int) -> Axes:
    """Return the axes as counted from the front; `None` means all.

    >>> axes_of(-1, 3), axes_of(None, 2)
    ((2,), (0, 1))
    """
    if axis is None:
        return tuple(range(rank))
    wanted = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(isinstance(a, bool) or not isinstance(a, int) for a in wanted):
        raise InputError(
            "an axis must be an integer or a tuple of integers", hint="for example `axis=0` or `axis=(0, 1)`"
        )
    for a in wanted:
        if not -rank <= a < rank:
            raise InputError(f"there is no axis {a} in an array of {rank} dimension{'s' * (rank != 1)}")
    axes = tuple(a % rank for a in wanted)
    if len(set(axes)) < len(axes):
        raise InputError("an axis is named twice")
    return tuple(sorted(axes))


def one_axis(axis: int, rank: int) -> int:
    """Return one axis as counted from the front."""
    if not isinstance(axis, int):
        raise InputError("exactly one axis is needed here", hint="for example `axis=0`")
    return axes_of(axis, rank)[0]


def without(shape: Shape, axes: Axes) -> Shape:
    """Return the shape that is left when the axes are reduced."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reduce(op: str, x: Node, axes: Axes, *settings: int | str) -> Node:
    """Return a reduction over the axes: `sum`, `mean`, `prod`, `norm`, `logsumexp`, or one that has a setting.

    `var` and `std` are divided by n less that number, 1 in PyTorch.  At a tie, the gradient of `max`, `min` and
    `median` (of an even number of elements, the lower of the two in the middle) goes to the `first`, or is shared,
    `even`ly as by PyTorch's max, or by `factors` as by amax: these differ where the value is NaN, and where the
    gradient is infinite.
    """
    if op in ("max", "min", "median") and not x.size:
        raise InputError(f"`{op}` of an empty array has no value")
    x = cast(x, summed(x.dtype)) if op in ("sum", "prod") else x
    return Node(op, (x,), without(x.shape, axes), (axes, *settings))


def kept(reduced: Node, x: Node, axes: Axes) -> Node:
    """Return what a reduction of x over some axes gives with these axes, of size 1.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2, 3))
    >>> kept(reduce("sum", x, (1,)), x, (1,)).shape
    (2, 1)
    """
    return reshape(reduced, tuple(1 if i in axes else n for i, n in enumerate(x.shape)))


def channels(numbers: Node, x: Node) -> Node:
    """Return a number for each channel of x, which its second axis counts, in a shape that broadcasts to it."""
    return reshape(numbers, (numbers.size, *(1,) * (len(x.shape) - 2)))


def total(x: Node) -> Node:
    """Return the sum of all elements; a scalar is its own.

    >>> from gradcli.graph.node import leaf
    >>> total(leaf((2, 3))).settings, total(leaf()).op
    (((0, 1),), 'input')
    """
    return reduce("sum", x, tuple(range(len(x.shape)))) if x.shape else x


def product_of_others(x: Node, axes: Axes) -> Node:
    """Return for each element the product of all other elements along the axes: the derivative of `prod`."""
    return Node("product_of_others", (x,), x.shape, (axes,))


def softmax(op: str, x: Node, axis: int) -> Node:
    """Return `softmax`, exp(x) over its sum along the axis, or the logarithm of that, `log_softmax`."""
    return Node(op, (x,), x.shape, (axis,))


def cumulative(op: str, x: Node, axis: int) -> Node:
    """Return the running sums, products or extremes along the axis: `cumsum`, `cumprod`, `cummax` or `cummin`."""
    x = cast(x, summed(x.dtype)) if op in ("cumsum", "cumprod") else x
    return Node(op, (x,), x.shape, (axis,), x.dtype)


def recurrence(a: Node, b: Node, axis: int) -> Node:
    """Return y with `y[0] = b[0]` and `y[k] = b[k] + a[k-1]*y[k-1]` along the axis; `a` has one element less there."""
    return Node("recurrence", (a, b), b.shape, (axis,))


def argument_mask(op: str, x: Node, axis: int) -> Node:
    """Return the one-hot mask of the first extremum, or of the median, along an axis: `argmax_mask` and the like."""
    return Node(op, (x,), x.shape, (axis,), "bool")


def ordered(op: str, x: Node, axis: int, descending: bool) -> Node:
    """Return the elements sorted along the axis (`sort`), or the indices that sort them (`argsort`)."""
    return Node(op, (x,), x.shape, (axis, descending), _index_dtype(x) if op == "argsort" else None)


def _index_dtype(x: Node) -> DType:
    """Return the dtype of indices: int64, but float64 in formulas, where everything is."""
    return "float64" if x.dtype == "float64" else "int64"


def along(op: str, x: Node, order: Node, axis: int) -> Node:
    """Return the elements at indices along the axis (`take_along`), or the inverse of that (`put_along`)."""
    return Node(op, (x, order), x.shape, (axis,), x.dtype)


def argument(op: str, x: Node, axis: int) -> Node:
    """Return the index of the first extremum along the axis: `argmax` or `argmin`."""
    return Node(op, (x,), without(x.shape, (axis,)), (axis,), _index_dtype(x))


def matmul(a: Node, b: Node) -> Node:
    """Return `a @ b` by NumPy's rules: vectors, matrices, and stacks of matrices that broadcast.

    Errors: `InputError` for scalars, and when the inner sizes differ.
    """
    for x, which in ((a, "left"), (b, "right")):
        if not x.shape:
            raise InputError(
                f"`@` multiplies vectors and matrices, but the {which} factor is a scalar",
                hint="scalars are multiplied with `*`; an input without a value needs a shape: --shape x=3,M=2x2",
            )
    inner = b.shape[0] if len(b.shape) == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        message = f"shapes {a.shape} and {b.shape} cannot be multiplied: {a.shape[-1]} columns meet {inner} rows"
        fits_transposed = inner in a.shape[-2:-1] or a.shape[-1] in b.shape[-1:]
        raise InputError(message, hint="`.T` transposes a matrix" if fits_transposed else "these two must be equal")
    stack = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if len(b.shape) > 1 else ()
    return Node("matmul", (a, b), check_size((*stack, *rows, *columns)))


def outer(a: Node, b: Node) -> Node:
    """Return the matrix of products a_i·b_j of two vectors."""
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise InputError(f"`outer` takes two vectors, not shapes {a.shape} and {b.shape}")
    return Node("outer", (a, b), check_size(a.shape + b.shape))


def trace(x: Node) -> Node:
    """Return the sum of a matrix's diagonal."""
    check_matrix("trace", x)
    return Node("trace", (x,), ())


def diagonal(x: Node) -> Node:
    """Return a matrix's diagonal as a vector; of an array with more axes, that of the first two."""
    return Node("diagonal", (x,), (min(x.shape[:2]), *x.shape[2:]))


def check_matrix(name: str, x: Node) -> None:
    """Check that a node is a matrix.

    Errors: `InputError`.
    """
    if len(x.shape) != 2:
        raise InputError(f"`{name}` takes a matrix, not an array of shape {x.shape}")


def from_diagonal(x: Node, shape: Shape) -> Node:
    """Return an array of that shape with `x` on the diagonal of its first two axes and zeros elsewhere."""
    return Node("from_diagonal", (x,), check_size(shape), (shape,))


def inverse(order: Axes) -> Axes:
    """Return the order of axes that undoes a transposition."""
    return tuple(order.index(i) for i in range(len(order)))


def transpose(x: Node, order: Axes) -> Node:
    """Return the array with its axes in that order."""
    if sorted(order) != list(range(len(x.shape))):
        raise InputError(f"axes {order} are not a permutation of the {len(x.shape)} axes")
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[i] for i in order)
    return Node("transpose", (x,), shape, (order,)) if x.value is None else const(x.value, shape)


def swap(x: Node) -> Node:
    """Return the array with its last two axes exchanged."""
    n = len(x.shape)
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def reshape(x: Node, shape: Sequence[int]) -> Node:
    """Return the same elements in another shape; one size may be -1.

    Errors: `InputError` when the number of elements differs.
    """
    shape = tuple(shape)
    if shape.count(-1) == 1:
        known = size_of(tuple(n for n in shape if n != -1))
        if known and x.size % known == 0:
            shape = tuple(x.size // known if n == -1 else n for n in shape)
    if any(n < 0 for n in shape) or size_of(shape) != x.size:
        raise InputError(f"{x.size} elements of shape {x.shape} do not fill shape {shape}")
    if x.is_constant and not _is_array(x):
        return replace(x, shape=check_size(shape))
    return x if shape == x.shape else Node("reshape", (x,), check_size(shape), (shape,))


def broadcast(x: Node, shape: Shape) -> Node:
    """Return the array broadcast to the shape, by NumPy's rule."""
    if broadcast_shapes([x.shape, shape]) != shape:
        raise InputError(f"shape {x.shape} does not broadcast to {shape}")
    if x.value is not None:
        return const(x.value, shape, x.dtype)
    return x if x.shape == shape else Node("broadcast", (x,), shape, (shape,))


def spread(x: Node, shape: Shape) -> Node:
    """Return the array broadcast to the shape, in which axes of size 1 in front may be fewer than before."""
    inner = bare(x.shape)
    return reshape(x, shape) if inner == bare(shape) else broadcast(reshape(x, inner), shape)


def sum_to(g: Node, shape: Shape) -> Node:
    """Undo a broadcast: sum over the axes along which `shape` was repeated."""
    if g.shape == shape:
        return g
    if is_const(g, 0):
        return const(0, shape)
    extra = len(g.shape) - len(shape)
    axes = tuple(i for i, n in enumerate(g.shape) if i < extra or shape[i - extra] != n)
    return reshape(reduce("sum", g, axes), shape)


def index(x: Node, key: Index) -> Node:
    """Return `x[key]`; ints count from the front, ranges lie within their axis, `None` is a new axis.

    >>> index(const((1, 2, 3), (3,)), (1,)).value
    2
    """
    taken = sum(k is not None for k in key)
    result = (*(1 if k is None else len(k) for k in key if not isinstance(k, int)), *x.shape[taken:])
    if result == x.shape and all(isinstance(k, range) and k.step == 1 for k in key):
        return x
    if x.is_constant and not _is_array(x) and all(k is None or isinstance(k, int | range) for k in key):
        return const(_taken(x, key), check_size(result), x.dtype)
    return Node("index", (x,), check_size(result), (key,))


def sliced(x: Node, axis: int, k: int | range) -> Node:
    """Return `x[..., k, ...]`: the elements at the key `k` along one axis, and all along the others.

    >>> sliced(const(0, (2, 3, 4)), 1, range(2)).shape, sliced(const(0, (2, 3, 4)), 1, 0).shape
    ((2, 2, 4), (2, 4))
    """
    return index(x, (*map(range, x.shape[:axis]), k, *map(range, x.shape[axis + 1 :])))


def flip(x: Node, axes: Axes) -> Node:
    """Return the array with its elements in opposite order along the axes."""
    return index(x, tuple(range(n)[::-1] if i in axes else range(n) for i, n in enumerate(x.shape)))


def _is_array(x: Node) -> bool:
    return isinstance(x.settings[0], Weights) if x.is_constant else False


def _taken(x: Node, key: Index) -> Constant | tuple[Constant, ...]:
    """Return the values of a constant at an index."""
    if x.value is not None:
        return x.value
    indices = [k if isinstance(k, range) else (k,) for k in key if k is not None]
    indices += map(range, x.shape[len(indices) :])
    steps = [size_of(x.shape[axis + 1 :]) for axis in range(len(x.shape))]
    taken = tuple(x.values[sum(map(mul, index, steps))] for index in product(*indices))
    return taken[0] if all(isinstance(k, int) for k in key) and len(key) == len(x.shape) else taken


def scatter(shape: Shape, parts: Sequence[tuple[Index, Node]]) -> Node:
    """Return zeros of that shape to which each part is added at its index: the pullback of indexing.

    A part that fills them, in order, is that part in another shape.

    >>> scatter((3,), [((None,), const((1, 2, 3), (1, 3)))]).values
    (1, 2, 3)
    """
    if all(is_const(part, 0) for _, part in parts):
        return const(0, shape)
    key, part = parts[0]
    is_plain = all(k is None or (isinstance(k, range) and k.step == 1) for k in key)
    if is_plain and len(parts) == 1 and part.size == size_of(shape):
        return reshape(part, shape)
    return Node("scatter", tuple(p for _, p in parts), shape, (shape, tuple(k for k, _ in parts)))


def concatenate(parts: Sequence[Node], axis: int) -> Node:
    """Return the arrays joined along an axis; their other sizes agree."""
    parts = [p for p in parts if p.shape[axis]] or list(parts[:1])
    if len({without(p.shape, (axis,)) for p in parts}) > 1:
        raise InputError("shapes " + " and ".join(str(p.shape) for p in parts[:6]) + f" do not fit along axis {axis}")
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape
    joined = sum(p.shape[axis] for p in parts)
    return Node("concatenate", tuple(parts), check_size((*shape[:axis], joined, *shape[axis + 1 :])), (axis,))


def stack(parts: Sequence[Node], axis: int = 0) -> Node:
    """Return the arrays, all of one shape, as slices of a new axis; of numbers it is one constant."""
    shapes = list(dict.fromkeys(p.shape for p in parts))
    if len(shapes) > 1:
        raise InputError(f"elements of shapes {shapes[0]} and {shapes[1]} cannot be stacked into one array")
    shape = shapes[0]
    stacked = check_size((*shape[:axis], len(parts), *shape[axis:]))
    if axis == 0 and all(len(p.values) == p.size and not _is_array(p) for p in parts):
        return const(tuple(chain.from_iterable(p.values for p in parts)), stacked)
    return Node("stack", tuple(parts), stacked, (axis,))
