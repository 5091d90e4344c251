"""`torch.distributions`: `Normal`, `Bernoulli` and `Categorical`, and the divergence between two of these of a kind."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch.distribution import NONE, POSITIVE, REAL, REAL_VECTOR, Constraint, Distribution, broadcast, derived
from gradcli.pytorch.dtypes import Size
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.modes import unrecorded
from gradcli.pytorch.names import TORCH
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.operations.joining import broadcast_tensors

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "kl_divergence"]

_PROBABILITY = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1))
_SIMPLEX = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6))
_BOOLEAN = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))


def _interval(count: int) -> Constraint:
    words = f"IntegerInterval(lower_bound=0, upper_bound={count - 1})"
    return Constraint(words, lambda x: (x % 1 == 0) & (x >= 0) & (x < count))


class Normal(Distribution):
    """The normal distribution of a mean and a standard deviation."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": REAL, "scale": POSITIVE}
    support = REAL
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    @unrecorded(".sample()")
    def sample(self, sample_shape: Any = NONE) -> Any:
        shape = self._shape(sample_shape)
        return TORCH["normal"](self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = NONE) -> Any:
        noise = TORCH["empty"](self._shape(sample_shape), dtype=self.loc.dtype).normal_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return distance - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)


class _OfProbabilities(Distribution):
    """A distribution of probabilities, or of what they are computed from."""

    has_enumerate_support = True
    probs: Any
    logits: Any

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        raise_if((probs is None) == (logits is None), "probabilities or logits")
        kind, values = ("logits", logits) if probs is None else ("probs", probs)
        self._param = vars(self)[kind] = self._normalized(kind, values)
        super().__init__(self._batch(), validate_args=validate_args)

    param_shape = property(lambda self: self._param.size())

    def _normalized(self, kind: str, values: Any) -> Any:
        return broadcast(values)[0]

    def _batch(self) -> Any:
        return self._param.shape

    def _clamped(self) -> Any:
        """Return the probabilities without 0 and 1."""
        eps = float(np.finfo(self.probs.dtype.numpy).eps)
        return self.probs.clamp(min=eps, max=1 - eps)

    def _values(self, dtype: Any, count: int, expand: bool) -> Any:
        values = TORCH["arange"](count, dtype=dtype).view((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


class Bernoulli(_OfProbabilities):
    """1 with a probability, and 0 otherwise."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": _PROBABILITY, "logits": REAL}
    support = _BOOLEAN

    probs = derived(lambda self: self.logits.sigmoid())
    logits = derived(lambda self: self._clamped().log() - (-self._clamped()).log1p())
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Any:
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan)

    @unrecorded(".sample()")
    def sample(self, sample_shape: Any = NONE) -> Any:
        return self.probs.expand(self._shape(sample_shape)).bernoulli()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(self._param.dtype, 2, expand)


class Categorical(_OfProbabilities):
    """An index, of which the last axis of the parameters has the probabilities."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": _SIMPLEX, "logits": REAL_VECTOR}

    probs = derived(lambda self: F.softmax(self.logits, -1))
    logits = derived(lambda self: self._clamped().log())
    mode = property(lambda self: self.probs.argmax(-1))
    support = property(lambda self: _interval(self._param.shape[-1]))
    mean = variance = property(lambda self: TORCH["full"](self._batch_shape, math.nan, dtype=self.probs.dtype))

    def _normalized(self, kind: str, parameters: Any) -> Any:
        raise_if(parameters.dim() < 1, "axes of a Categorical", kind)
        return (
            parameters / parameters.sum(-1, keepdim=True)
            if kind == "probs"
            else parameters - parameters.logsumexp(-1, keepdim=True)
        )

    def _batch(self) -> Any:
        return self._param.shape[:-1]

    def sample(self, sample_shape: Any = NONE) -> Any:
        rows = self.probs.reshape(-1, self._param.shape[-1])
        return rows.multinomial(Size(sample_shape).numel(), True).T.reshape(self._shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        index, logits = broadcast_tensors((value.long().unsqueeze(-1), self.logits))
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=float(np.finfo(self.logits.dtype.numpy).min))
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(None, self._param.shape[-1], expand)


# Divergences


def _normals(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


def _bernoullis(p: Any, q: Any) -> Any:
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    one[q.probs == 0] = math.inf
    one[p.probs == 0] = 0
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zero[q.probs == 1] = math.inf
    zero[p.probs == 1] = 0
    return one + zero


def _categoricals(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = math.inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


_DIVERGENCES = {Normal: _normals, Bernoulli: _bernoullis, Categorical: _categoricals}


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the Kullback–Leibler divergence of two distributions of a kind."""
    kind = next((kind for kind in _DIVERGENCES if isinstance(p, kind) and isinstance(q, kind)), None)
    if kind is None:
        for d in (p, q):
            missing_if(
                not isinstance(d, tuple(_DIVERGENCES)), f"kl_divergence of torch.distributions.{type(d).__name__}"
            )
        others = all(isinstance(d, Normal | Bernoulli) for d in (p, q))
        raise_if(others, "divergence of exponential families", " " * 29)
        raise torch_error("divergence", type(p).__name__, type(q).__name__)
    return _DIVERGENCES[kind](p, q)


ELSEWHERE = dict.fromkeys(("Exponential", "Laplace", "MultivariateNormal", "Uniform"), "continuous")
for _class in (Distribution, Normal, Bernoulli, Categorical):
    _class.__module__ = f"torch.distributions.{_class.__name__.lower()}"
