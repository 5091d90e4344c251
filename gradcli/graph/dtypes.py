"""The dtypes of numbers, and their promotion: PyTorch's rules, which are NumPy's but for two.

A floating-point operand decides alone among integers (int64 and float32 give float32).  A constant has no dtype of its
own: it takes that of the other operand, unless that is of another kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

DType = Literal["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]

# In the order of promotion: of two, the later one is the result's.
DTYPES: tuple[DType, ...] = get_args(DType)
FLOATING = frozenset(("float16", "float32", "float64"))

# The elementwise operations whose result of integers are integers, and those that select by a condition: nodes need
# these facts before the table of operations exists, which fills both sets from its rows.
KEEPING_INTEGERS: set[str] = set()
SELECTING: set[str] = set()


def promoted(dtypes: Iterable[DType]) -> DType:
    """Return the type of a result of numbers of these types.

    >>> promoted(["int64", "float32"]), promoted(["bool", "uint8"]), promoted(["int8", "uint8"])
    ('float32', 'uint8', 'int16')
    """
    widest, *others = sorted(set(dtypes), key=DTYPES.index, reverse=True)
    return "int16" if (widest, *others[:1]) == ("int8", "uint8") else widest


def summed(dtype: DType) -> DType:
    """Return the dtype of a sum or a product of many numbers of a dtype: integers and booleans are added in int64.

    >>> summed("bool"), summed("float32")
    ('int64', 'float32')
    """
    return dtype if dtype in FLOATING else "int64"


def floated(dtype: DType) -> DType:
    """Return the dtype of a real function of this dtype: float32 of integers and booleans, as in PyTorch.

    >>> floated("int64"), floated("float64")
    ('float32', 'float64')
    """
    return dtype if dtype in FLOATING else "float32"
