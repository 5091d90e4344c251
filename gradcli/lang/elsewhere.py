"""Functions of other libraries that gradcli does not have, and their equivalents.

A name is listed once: `CrossEntropyLoss` and `cross_entropy` are both `crossentropy` (see `key`).
"""

from __future__ import annotations

_ITSELF = "gradcli differentiates for you: `gradcli jacobian` shows the derivatives, `gradcli backward` the gradient"
_LISTS = "an array is a list of its elements: `[0, 1, 2]`"
_NOTHING = """
erfinv lstsq pinv cholesky eig eigh eigvals svd qr slogdet expm rank quantile unique fft convolve interp integrate
"""
_DATA = "random numbers and data are given as values: `--at x=@file.npy`"

ELSEWHERE = {
    # Losses
    "mae": "it is `l1_loss(x, target)`",
    "bce": "it is `binary_cross_entropy(x, target)`",
    "bcewithlogits": "it is `binary_cross_entropy_with_logits(x, target)`",
    "kldiv": "for the logarithms x, it is `mean(target*(log(target) - x))`",
    "cosinesimilarity": "it is `(x @ z)/(norm(x)*norm(z))`",
    # Activations and layers
    "relu6": "it is `clamp(x, 0, 6)`",
    "hardsigmoid": "it is `clamp(x/6 + 1/2, 0, 1)`",
    "hardswish": "it is `x*clamp(x/6 + 1/2, 0, 1)`",
    "swish": "it is `silu(x)`",
    "prelu": "it is `leaky_relu(x, slope)`",
    "normalize": "it is `x/norm(x)`",
    # Elementwise
    "reciprocal": "it is `1/x`",
    "rsqrt": "it is `1/sqrt(x)`",
    "logit": "it is `log(x/(1 - x))`",
    "sinc": "it is `sin(pi*x)/(pi*x)`",
    "csch": "it is `1/sinh(x)`",
    "coth": "it is `1/tanh(x)`",
    "asec": "it is `acos(1/x)`",
    "acsc": "it is `asin(1/x)`",
    "acot": "it is `atan(1/x)`",
    **dict.fromkeys(("deg2rad", "radians"), "it is `x*pi/180`"),
    **dict.fromkeys(("rad2deg", "degrees"), "it is `x*180/pi`"),
    "tg": "it is `tan(x)`",
    "ctg": "it is `cot(x)`",
    "arctg": "it is `atan(x)`",
    "sh": "it is `sinh(x)`",
    "ch": "it is `cosh(x)`",
    "th": "it is `tanh(x)`",
    "arsinh": "it is `asinh(x)`",
    "arcosh": "it is `acosh(x)`",
    "artanh": "it is `atanh(x)`",
    "lg": "it is `log10(x)`",
    **dict.fromkeys(("lb", "ld"), "it is `log2(x)`"),
    "fabs": "it is `abs(x)`",
    "negative": "it is `-x`",
    "factorial": "it is `gamma(n + 1)`",
    "beta": "it is `gamma(x)*gamma(z)/gamma(x + z)`",
    **dict.fromkeys(("binomial", "comb"), "it is `gamma(n + 1)/(gamma(k + 1)*gamma(n - k + 1))`"),
    "real": "numbers are real here: leave it out",
    "imag": "numbers are real here",
    "conj": "numbers are real here: leave it out",
    # Linear algebra
    **dict.fromkeys(("inner", "vdot"), "it is `x @ z`"),
    "dist": "it is `norm(x - z)`",
    "tensordot": 'products and sums are written with `@`, `outer(x, z)` or `einsum("ij,jk->ik", A, B)`',
    "logdet": "of a matrix whose determinant is positive, it is `log(det(A))`",
    "matrixpower": "it is `A @ A @ A` for the third power",
    # Arrays
    **dict.fromkeys(("array", "asarray", "tensor", "matrix", "vector", "list"), _LISTS),
    "range": "of 5 numbers, it is `arange(5)`",
    "swapaxes": "it is `transpose(x, 0, 1)`",
    "vstack": "it is `stack([x, z])`",
    "hstack": "it is `concatenate([x, z])`",
    "diagonal": "it is `diag(A)`",
    "diff": "it is `x[1:] - x[:-1]` of an array; " + _ITSELF,
    **dict.fromkeys(("len", "shape", "size", "numel"), "sizes are known: write the number"),
    **dict.fromkeys(("float", "double", "int", "long", "contiguous", "clone"), "numbers are float64: leave it out"),
    **dict.fromkeys(("rand", "randn", "normal", "uniform", "open", "load", "loadtxt"), _DATA),
    "average": "it is `mean(x)`",
    "reducesum": "it is `sum(x)`",
    "reducemean": "it is `mean(x)`",
    "reduceprod": "it is `prod(x)`",
    "reducemax": "it is `max(x)`",
    "reducemin": "it is `min(x)`",
    # Calculus
    **dict.fromkeys(("grad", "jacobian", "hessian", "derivative", "gradient", "dx", "d", "limit"), _ITSELF),
    "trapz": "it is `sum((x[1:] + x[:-1])*h)/2` for values a step h apart",
    # What has no other name here
    **dict.fromkeys(_NOTHING.split(), ""),
}


def key(name: str) -> str:
    """Return the key of a name in the table: in lower case, without `_` and `Loss`.

    >>> key("CrossEntropyLoss"), key("cross_entropy")
    ('crossentropy', 'crossentropy')
    """
    return name.lower().replace("_", "").removesuffix("loss")
