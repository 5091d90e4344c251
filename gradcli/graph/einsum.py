"""Einstein's sums: subscripts such as `ij,jk->ik`, parsed and split into contractions of two arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from string import ascii_letters

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import diagonal, index, reduce, transpose
from gradcli.graph.node import Node
from gradcli.graph.shapes import check_size, size_of

MAX_LETTERS = 30  # in one contraction: NumPy has no more axes


def einsum(subscripts: str, *operands: Node) -> Node:
    """Return the sum of products that the subscripts describe, from the left, two arrays at a time as in PyTorch.

    Without `->`, the letters that occur once are the result's, in alphabetical order.  `...` are the axes of an operand
    that have no letter, which broadcast.

    Errors: `InputError` for subscripts that cannot be read, or do not fit the operands.

    >>> from gradcli.graph.node import leaf
    >>> einsum("ij,jk->ik", leaf((2, 3)), leaf((3, 4)))
    einsum(input, input), shape (2, 4)
    """
    terms, result = _read(subscripts, operands)
    sizes = _sizes(terms, operands)
    ready = [_plain(letters, x, sizes) for letters, x in zip(terms, operands, strict=True)]
    letters, x = ready[0]
    for i, (others, y) in enumerate(ready[1:], 2):
        later = set(result).union(*(t for t, _ in ready[i:]))
        letters, x = _summed(letters, x, later.union(others))
        others, y = _summed(others, y, later.union(letters))
        kept = "".join(c for c in dict.fromkeys(letters + others) if c in later)
        kept = result if i == len(ready) else kept
        letters, x = kept, contract(f"{letters},{others}->{kept}", x, y)
    letters, x = _summed(letters, x, result)
    return transpose(x, tuple(letters.index(c) for c in result))


def contract(subscripts: str, a: Node, b: Node) -> Node:
    """Return the contraction of two arrays: a letter occurs at most once in a term, and in two of the three terms."""
    first, second, result = parts(subscripts)
    sizes = dict(zip(first + second, a.shape + b.shape, strict=True))
    if len(sizes) > MAX_LETTERS:
        raise InputError(f"`einsum` multiplies arrays of {MAX_LETTERS} different letters at most")
    return Node("einsum", (a, b), check_size(tuple(sizes[c] for c in result)), (subscripts,))


def parts(subscripts: str) -> tuple[str, str, str]:
    """Return the letters of the two factors and of the result.

    >>> parts("ij,jk->ik")
    ('ij', 'jk', 'ik')
    """
    factors, _, result = subscripts.partition("->")
    first, _, second = factors.partition(",")
    return first, second, result


Labels = tuple[Sequence[object], Sequence[object], Sequence[object]]


def labels(node: Node) -> Labels:
    """Return the labels of the axes of both factors, and of the result, of a contraction.

    An axis of size 1 may have the label of a longer one.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> labels(matmul(leaf((5, 2, 3)), leaf((3,))))
    ([-1, 'i', 'j'], ['j'], [-1, 'i'])
    """
    return _LABELS[node.op](node)


def _of_product(node: Node) -> Labels:
    a, b = (len(x.shape) for x in node.args)
    rows, columns = ["i"] * (a > 1), ["k"] * (b > 1)
    return (
        [*range(2 - a, 0), *rows, "j"],
        [*range(2 - b, 0), "j", *columns],
        [*range(2 - max(a, b), 0), *rows, *columns],
    )


_LABELS: Mapping[str, Callable[[Node], Labels]] = {
    "einsum": lambda node: parts(node.settings[0]),
    "outer": lambda node: ("i", "k", "ik"),
    "matmul": _of_product,
}


def aligned(node: Node, factors: Iterable[Array]) -> list[Array]:
    """Return the two factors of a contraction with axes added so that they broadcast; the summed axes are last.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> [x.shape for x in aligned(matmul(leaf((2, 3)), leaf((3, 4))), [np.ones((2, 3)), np.ones((3, 4))])]
    [(2, 1, 3), (1, 4, 3)]
    """
    *terms, result = labels(node)
    order = [*result, *dict.fromkeys(c for term in terms for c in term if c not in result)]
    moved = []
    for term, x in zip(terms, factors, strict=True):
        transposed = x.transpose([list(term).index(c) for c in order if c in term])
        moved.append(np.expand_dims(transposed, tuple(i for i, c in enumerate(order) if c not in term)))
    return moved


def products(node: Node) -> int:
    """Return how many products a contraction adds up in all."""
    first, _, result = labels(node)
    return node.size * size_of(
        tuple(n for n, label in zip(node.args[0].shape, first, strict=True) if label not in result)
    )


# Reading


def _read(subscripts: str, operands: Sequence[Node]) -> tuple[list[str], str]:
    """Return the letters of each operand, and of the result."""
    if not isinstance(subscripts, str):
        raise InputError("the subscripts come first, as text", hint=_EXAMPLE)
    text = subscripts.replace(" ", "")
    text = without_dots(text, [len(x.shape) for x in operands]) if "..." in text else text
    left, arrow, result = text.partition("->")
    odd = next((c for c in left.replace(",", "") + result if not (c.isascii() and c.isalpha())), None)
    if odd is not None:
        raise InputError(f"`{odd}` is not a subscript", hint=f"axes are letters: {_EXAMPLE}")
    terms = left.split(",")
    _check_operands(left, terms, operands)
    counts = Counter(chain.from_iterable(terms))
    if not arrow:
        return terms, "".join(sorted(c for c, n in counts.items() if n == 1))
    wrong = next((c for c in result if c not in counts or result.count(c) > 1), None)
    if wrong is not None:
        what = "appears twice in the result" if wrong in counts else "appears in the result alone"
        raise InputError(f"`{wrong}` {what} of `{text[:40]}`", hint=_EXAMPLE)
    return terms, result


def without_dots(subscripts: str, ranks: Sequence[int]) -> str:
    """Return subscripts with letters in the place of `...`, for operands with so many axes.

    Errors: `InputError` for subscripts that are for other operands.

    >>> without_dots("...i,ij", [3, 2]), without_dots("...i->...", [2])
    ('ABi,ij->ABj', 'Ai->A')
    """
    left, arrow, result = subscripts.partition("->")
    terms = left.split(",")
    plain = [len(term.replace("...", "")) for term in terms]
    counts = [n - m if "..." in t else 0 for t, n, m in zip(terms, ranks, plain, strict=False)]
    letters = "".join(c for c in ascii_letters[26:] + ascii_letters[:26] if c not in subscripts)
    if len(terms) != len(ranks) or min(counts) < 0 or max(counts) > len(letters):
        raise InputError(f"the subscripts `{left[:40]}` do not fit {len(ranks)} arrays", hint=_EXAMPLE)
    letters = letters[: max(counts)]
    full = [term.replace("...", letters[len(letters) - n :]) for term, n in zip(terms, counts, strict=True)]
    if not arrow:
        result = "..." + "".join(sorted(c for c in set(left) if c not in ",." and left.count(c) == 1))
    return f"{','.join(full)}->{result.replace('...', letters)}"


def _check_operands(left: str, terms: Sequence[str], operands: Sequence[Node]) -> None:
    if len(terms) != len(operands):
        raise InputError(
            f"the subscripts `{left[:40]}` are for {len(terms)} array{'s' * (len(terms) > 1)}, and {len(operands)} "
            f"{'are' if len(operands) != 1 else 'is'} given",
            hint=_EXAMPLE,
        )
    for term, x in zip(terms, operands, strict=True):
        if len(term) != len(x.shape):
            raise InputError(f"the subscripts `{term[:40]}` do not fit an array of shape {x.shape}", None, _EXAMPLE, x)


_EXAMPLE = 'for example `einsum("ij,jk->ik", A, B)`'


def _sizes(terms: Iterable[str], operands: Iterable[Node]) -> dict[str, int]:
    """Return the size of each letter; those of size 1 broadcast, but not within one operand."""
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        within: dict[str, int] = {}  # this operand
        for c, n in zip(term, x.shape, strict=True):
            here, known = within.setdefault(c, n), sizes.setdefault(c, n)
            if here != n or (known != n and 1 not in (known, n)):
                raise InputError(f"`{c}` is of size {known if here == n else here} and of size {n}", None, _EXAMPLE, x)
            sizes[c] = max(known, n)
    return sizes


def _plain(letters: str, x: Node, sizes: Mapping[str, int]) -> tuple[str, Node]:
    """Return an operand without repeated letters (their diagonal), and without axes of size 1 that broadcast."""
    while repeated := next((c for c in letters if letters.count(c) > 1), None):
        i = letters.index(repeated)
        j = letters.index(repeated, i + 1)
        rest = [k for k in range(len(letters)) if k not in (i, j)]
        x = diagonal(transpose(x, (i, j, *rest)))
        letters = repeated + "".join(letters[k] for k in rest)
    ones = [n == 1 != sizes[c] for c, n in zip(letters, x.shape, strict=True)]
    x = index(x, tuple(0 if one else range(n) for one, n in zip(ones, x.shape, strict=True)))
    return "".join(c for c, one in zip(letters, ones, strict=True) if not one), x


def _summed(letters: str, x: Node, kept: Iterable[str]) -> tuple[str, Node]:
    """Return an operand summed over its letters that are not in `kept`."""
    kept = set(kept)
    axes = tuple(i for i, c in enumerate(letters) if c not in kept)
    return "".join(c for c in letters if c in kept), reduce("sum", x, axes) if axes else x
