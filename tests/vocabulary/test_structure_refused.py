"""What structural functions refuse: quickly, in a sentence, and before any memory is taken."""

import re

import pytest
from conftest import at_most, each

from gradcli import InputError, parse

SHAPES = {
    "x": (3,), "M": (2, 3), "Q": (3, 3), "I": (1, 1, 5), "w": (1, 1, 2), "J": (1, 1, 4, 4), "k": (1, 1, 2, 2),
    "L": (4000, 4000),
}  # fmt: skip
SQUARE = "takes a square matrix, or a stack of them"

# The expression, and what is said.
REFUSED = [
    ("det(M)", f"`det` {SQUARE}, not an array of shape (2, 3)"),
    ("det(x[0])", f"`det` {SQUARE}"),
    ("solve(Q, M)", "a matrix of shape (3, 3) with a right-hand side of shape (2, 3)"),
    ("solve(Q, x[0])", "with a right-hand side of shape ()"),
    ("cross(x, x[:2])", "do not fit together"),
    ("cross(Q[:2], Q[:2], axis=0)", "`cross` multiplies vectors of 3"),
    ('cross(x, x, axis="a")', "one axis is needed"),
    ('einsum("ij,jk->ik", M, M)', "`j` is of size 3 and of size 2"),
    ('einsum("ij", x)', "the subscripts `ij` do not fit an array of shape (3,)"),
    ('einsum("i,j", x)', "are for 2 arrays, and 1 is given"),
    ('einsum("i", x, x)', "are for 1 array, and 2 are given"),
    ('einsum("...ij", x)', "do not fit 1 arrays"),
    ('einsum("i->ii", x)', "`i` appears twice in the result"),
    ('einsum("i->j", x)', "`j` appears in the result alone"),
    ('einsum("i->i->i", x)', "`-` is not a subscript"),
    ("einsum(3, x)", "the subscripts come first"),
    ("einsum(x, x)", "a word in quotes is needed here"),
    ('einsum("ij,kl->ijkl", L, L)', "too large"),
    ('einsum("a,b,c,d->", L[0], L[0], L[0][None], L)', "do not fit"),
    ("cumprod(M)", "`cumprod` of a matrix needs an axis"),
    ("squeeze(x, 4)", "no axis 4"),
    ("squeeze(x, (0, 0))", "named twice"),
    ("expand(x, -1, 3)", "does not expand to (-1, 3)"),
    ("repeat(M, 2)", "takes a number for each axis"),
    ("repeat(x, 0)", "integers from 1"),
    ("repeat(x, 2, axis=0)", "has no such setting"),
    ("tile(x, ())", "integers from 1"),
    (f"tile(x, ({'1,' * 40}))", "too many"),
    ("repeat_interleave(x, [1, 2, 3])", "equally often"),
    ('flip(x, "a")', "this must be an integer"),
    ("roll(x, (1, 2))", "a shift for each axis"),
    ("triu(x)", "`triu` takes a matrix"),
    ("tril(M, 1.5)", "the diagonal must be an integer"),
    ("x[[5]]", "no element 5 among 3"),
    ("x[[0, -4]]", "no element -4 among 3"),
    (f"x[[{10**30}]]", "no element of so large a number"),
    ("x[[0.5]]", "integer"),
    ("x[[]]", "an empty list"),
    ("x[[0, [1]]]", "equally long"),
    ("x[[True, False]]", "a mask of shape (2,) does not fit"),
    ("x[[False, False, False]]", "this slice is empty"),
    ("x[[0], [1]]", "`x` is an array of 1 dimension"),
    ("M[[[True, False], [False, True]]]", "a mask of shape (2, 2) does not fit an array of shape (2, 3)"),
    ("x[[x]]", "an index must consist of plain numbers"),
    ("x[{0}]", "a set is not part of the language"),
    ("take(x, [7])", "no element 7 among 3"),
    ("take(x, x)", "a plain number is needed"),
    ("gather(x, 0, [[0]])", "an index of shape (1, 1) does not fit"),
    ("gather(M, 1, [[0, 1], [1, 5]])", "no element 5 among 3"),
    ("gather(M, 0, [[0, 1, 1, 1]])", "an index of shape (1, 4) does not fit"),
    ('sort(x, descending="a")', "True or False"),
    ("topk(x, 4)", "from 1 to 3 of 3"),
    ("conv1d(x, w)", "`conv1d` takes an array of (batch, channels, length), not of shape (3,)"),
    ("conv1d(I, x)", "the weight of `conv1d` is an array of (outputs, channels, length)"),
    ("conv1d(I, w, stride=0)", "`stride` is at least 1, not 0"),
    ("conv1d(I, w, stride=1.5)", "`stride` is an integer"),
    (f"conv1d(I, w, stride={10**30})", "`stride` is too large"),
    ("conv1d(I, w, padding=-1)", "`padding` is at least 0"),
    (f"conv1d(I, w, padding={10**30})", "too large"),
    ('conv1d(I, w, padding="big")', "there is no padding `big`"),
    ('conv1d(I, w, padding="same", stride=2)', "goes with `stride=1`"),
    ("conv1d(I, w, dilation=0)", "`dilation` is at least 1"),
    ("conv1d(I, w, dilation=9)", "a window of 10 elements does not fit into 5"),
    ("conv1d(I, w, groups=0)", "`groups` is at least 1"),
    ("conv1d(I, w, groups=2)", "does not fit 1 channels in 2 groups"),
    ("conv1d(I, w, x)", "the bias is a vector of 1"),
    ("conv2d(J, k, stride=(1, 2, 3))", "`stride` is an integer, or 2 of them"),
    ("conv2d(J, w)", "the weight of `conv2d`"),
    ("conv2d(L[None], L[None, None, :99, :99])", "too large"),
    ("max_pool1d(x, 2)", "`max_pool1d` takes an array"),
    ("max_pool1d(I, 0)", "`kernel_size` is at least 1"),
    ("max_pool1d(I, 9)", "a window of 9 elements does not fit into 5"),
    ("max_pool1d(I, 2, padding=2)", "at most half of the window, 1 here, not 2"),
    ("max_pool1d(I[:, :, :2], 2, 1, 1, 3)", "whole window lies in the padding"),
    ("max_pool1d(I, 2, ceil_mode=1)", "`ceil_mode` must be True or False"),
    ("max_pool2d(L[None], 50, 1)", "too large"),
    ("adaptive_max_pool1d(I, 0)", "`output_size` is at least 1"),
    ("adaptive_avg_pool2d(L[None], (1, 2, 3))", "`output_size` is an integer, or 2 of them"),
    ("lstm(M, x)", "takes its input, the first states h and c, and the weights of 1 layer"),
    ("gru(M, x, M)", "takes its input, the first state, and the weights"),
    ("gru(M, [[1]], Q, Q[:, :1], x, x, num_layers=0)", "`num_layers` is a positive integer"),
    ("gru(M, [[1]], Q, Q[:, :1], x, x, result=2)", "`result` is the number of a result of `gru`"),
    ("gru(M, [[1]], Q, Q[:, :1], x, x, bidirectional=1)", "`bidirectional` must be True or False"),
    ("gru(M, [1], Q, Q[:, :1], x, x)", "a state of `gru` has the shape (1, 1) here, not (1,)"),
    ("gru(M, [[1]], Q[:, :2], Q[:, :1], x, x)", "a weight of `gru` has the shape (3, 3) here, not (3, 2)"),
    ("gru(x, [[1]], Q, Q[:, :1], x, x)", "takes an input of shape"),
    (
        "rnn_tanh(M, [[1], [1]], [x], [[1]], [[1]], [[1]], x, 0.5, num_layers=2, has_biases=False, dropout=True)",
        "a mask",
    ),
    ("interpolate(I)", "a size or a factor"),
    ("interpolate(I, 2, mode='cubic')", "no mode `cubic`"),
    ("interpolate(I, 2, mode='bilinear')", "is not for an array of shape"),
    ("interpolate(I, 2, align_corners=True)", "has no `align_corners`"),
    ("interpolate(I, 2.5)", "`size` is an integer"),
    ("interpolate(I, scale_factor=-1)", "`scale_factor` is a positive number"),
    ("interpolate(I, scale_factor=0.01)", "nothing is left of an axis"),
    ("avg_pool1d(I, 2, divisor_override=0)", "`divisor_override` is at least 1"),
    ("sort(x > 0)", "a condition is not a number"),
    ("where(x, x, x)", "a condition is needed here"),
    ("Piecewise((x, x > 0), (x, x), (0, True))", "a condition is needed here"),
    ('sum(x, keepdims="a")', "`keepdims` must be True or False"),
]


@each(("expression", "said"), REFUSED)
def test_it_is_refused(expression, said):
    shapes = {name: shape for name, shape in SHAPES.items() if re.search(rf"\b{name}\b", expression)}
    with at_most(10), pytest.raises(InputError, match=re.escape(said)) as caught:
        parse(f"out = {expression}", **shapes)
    assert caught.value.span is not None
    assert len(str(caught.value).splitlines()) <= 4


EXAMPLES = {
    "expand(x, 1.5)": "`expand(x, 2, -1)`",
    "tile(x, 1.5)": "`tile(x, 2, 1)`",
    "flip(x, 1.5)": "`flip(x, 0)`",
    "roll(x, 1.5)": "`roll(x, 1, 0)` or `roll(x, (1, 2), (0, 1))`",
    "reshape(x, 1.5)": "`reshape(x, 2, 3)` or `reshape(x, (2, 3))`",
    "repeat_interleave(x, [1, 2])": "`repeat_interleave(x, 2)`",
}


@pytest.mark.parametrize("expression", EXAMPLES)
def test_the_example_is_one_of_the_same_function(expression):
    with pytest.raises(InputError, match=re.escape(f"for example {EXAMPLES[expression]}")):
        parse(f"out = {expression}", x=(3,))
