"""What other libraries have: each piece of advice gives what the function would have given."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from gradcli import evaluate, parse
from gradcli.lang.advice import ELSEWHERE, key
from gradcli.vocabulary import FUNCTIONS

A = np.array([[0.5, -1.0], [3.0, 0.25]])
W = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
b, h, slope = np.array([1.0, 2.0]), 0.25, 0.1
x, z, target = np.array([0.2, 0.5, 0.7]), np.array([0.3, -1.4, 0.9]), np.array([0.1, 0.0, 1.0])
n, k = np.array([5.0, 6.0, 7.0]), np.array([2.0, 3.0, 0.0])
POINT = {"A": A, "W": W, "b": b, "h": h, "slope": slope, "x": x, "z": z, "target": target, "n": n, "k": k}


def each(function, *arrays):
    return np.array([function(*values) for values in zip(*arrays, strict=True)])


def beta(a, c):
    return math.gamma(a) * math.gamma(c) / math.gamma(a + c)


COMB = each(lambda a, c: math.comb(int(a), int(c)), n, k)
CROSS_ENTROPY = -np.sum(target * np.log(x) + (1 - target) * np.log(1 - x)) / 3
LOGISTIC = 1 / (1 + np.exp(-x))
WITH_LOGITS = -np.mean(target * np.log(LOGISTIC) + (1 - target) * np.log(1 - LOGISTIC))
EXPECTED = {
    "mae": np.abs(x - target).mean(),
    "bce": CROSS_ENTROPY,
    "bcewithlogits": WITH_LOGITS,
    "cosinesimilarity": np.dot(x, z) / np.sqrt(np.dot(x, x) * np.dot(z, z)),
    "relu6": x,
    "hardsigmoid": (x + 3) / 6,
    "hardswish": x * (x + 3) / 6,
    "prelu": x,
    "normalize": x / np.linalg.norm(x),
    "reciprocal": np.reciprocal(x),
    "rsqrt": x**-0.5,
    "logit": -np.log(1 / x - 1),
    "sinc": np.sinc(x),
    "csch": 1 / np.sinh(x),
    "coth": 1 / np.tanh(x),
    "asec": None,  # these two of values above 1
    "acsc": None,
    "acot": np.pi / 2 - np.arctan(x),
    "deg2rad": np.deg2rad(x),
    "radians": np.deg2rad(x),
    "rad2deg": np.rad2deg(x),
    "degrees": np.rad2deg(x),
    "factorial": [120, 720, 5040],
    "beta": each(beta, x, z),
    "binomial": COMB,
    "comb": COMB,
    "inner": np.inner(x, z),
    "vdot": np.vdot(x, z),
    "dist": np.sqrt(np.sum((x - z) ** 2)),
    "matrixpower": np.linalg.matrix_power(A, 3),
    "swapaxes": None,
    "vstack": np.vstack([x, z]),
    "hstack": np.hstack([x, z]),
    "diagonal": np.diagonal(A),
    "diff": np.diff(x),
    "range": None,  # it reads no variable
    "logdet": None,  # of another matrix
    "average": np.average(x),
    "reducesum": x.sum(),
    "reducemean": x.mean(),
    "reduceprod": x.prod(),
    "reducemax": x.max(),
    "reducemin": x.min(),
    "trapz": (x[0] / 2 + x[1] + x[2] / 2) * h,
}
WRITTEN = {name: found[1] for name, advice in ELSEWHERE.items() if (found := re.search("it is `(.+?)`", advice))}


def test_all_advice_is_tested():
    assert {*WRITTEN} | {"kldiv"} == {*EXPECTED, "kldiv"}
    assert not {*map(key, FUNCTIONS)} & set(ELSEWHERE)


def value(text, **other):
    point = {name: np.asarray(v, dtype=float) for name, v in (POINT | other).items()}
    graph = parse(f"y={text}", **{name: a.shape for name, a in point.items() if name in re.findall(r"\w+", text)})
    (found,) = evaluate(graph, {name: a[..., None] for name, a in point.items()}).values()
    return found[..., 0]


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected is not None])
def test_advice(name):
    text = WRITTEN.get(name) or re.search("`(.+?)`", ELSEWHERE[name])[1]
    found = value(text)
    assert found.shape == np.shape(EXPECTED[name])
    np.testing.assert_allclose(found, EXPECTED[name], rtol=1e-12)


def test_advice_elsewhere_than_at_that_point():
    """Of negative values and of large ones, of which the point above has none."""
    wide = np.array([-9.0, -0.5, 7.0])
    soft = np.clip(wide / 6 + 0.5, 0, 1)
    for name, expected in {
        "asec": np.arccos(1 / wide[[0, 2]]),
        "acsc": np.arcsin(1 / wide[[0, 2]]),
        "relu6": np.clip(wide, 0, 6),
        "hardsigmoid": soft,
        "hardswish": wide * soft,
        "prelu": np.where(wide > 0, wide, slope * wide),
    }.items():
        text = WRITTEN.get(name) or re.search("`(.+?)`", ELSEWHERE[name])[1]
        np.testing.assert_allclose(value(text, x=wide[[0, 2]] if name in ("asec", "acsc") else wide), expected)
    np.testing.assert_allclose(value(WRITTEN["swapaxes"], x=W), W.T)
    np.testing.assert_allclose(value(WRITTEN["logdet"], A=A @ A.T), np.log(np.linalg.det(A @ A.T)))
    chances = np.array([0.2, 0.3, 0.5])
    divergence = np.mean(chances * np.log(chances / x))
    np.testing.assert_allclose(value(WRITTEN["kldiv"], x=np.log(x), target=chances), divergence)


OTHER_NAMES = {"tg": np.tan, "arctg": np.arctan, "sh": np.sinh, "ch": np.cosh, "th": np.tanh, "arsinh": np.arcsinh}
OTHER_NAMES |= {"artanh": np.arctanh, "lg": np.log10, "lb": np.log2, "ld": np.log2, "fabs": np.abs}
OTHER_NAMES |= {"negative": np.negative, "ctg": lambda x: 1 / np.tan(x), "swish": lambda x: x / (1 + np.exp(-x))}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_textbooks_and_libraries_have_other_names(name):
    np.testing.assert_allclose(value(f"{name}(x)"), OTHER_NAMES[name](x), rtol=1e-12)
    np.testing.assert_allclose(value("arcosh(x)", x=x + 1), np.arccosh(x + 1), rtol=1e-12)
