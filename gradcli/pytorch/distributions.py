"""`torch.distributions`: distributions of numbers and vectors, and the divergence between two of a kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch import linalg
from gradcli.pytorch.dtypes import Size, default_dtype
from gradcli.pytorch.messages import MissingError, missing_if, raise_if, torch_error
from gradcli.pytorch.modes import enable_grad, unrecorded
from gradcli.pytorch.names import TORCH
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.operations.creation import tensor
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.tensor import Tensor

__all__ = ["Bernoulli", "Categorical", "Distribution", "Exponential", "Laplace", "MultivariateNormal", "Normal"]
__all__ += ["Uniform", "kl_divergence"]

NONE = Size()


@dataclass(frozen=True)
class Constraint:
    """A constraint on numbers: its text in PyTorch, and its check."""

    words: str
    check: Callable[[Any], Any]

    def __repr__(self) -> str:
        return self.words


REAL = Constraint("Real()", lambda x: x == x)
REAL_VECTOR = Constraint("IndependentConstraint(Real(), 1)", lambda x: x == x)
POSITIVE = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
_LEAST_0 = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
_DEFINITE = Constraint("PositiveDefinite()", lambda x: tensor(bool((np.linalg.eigvalsh(x._a[..., 0]) > 0).all())))
_TRIANGULAR = Constraint("LowerCholesky()", lambda x: (x.tril() == x).flatten(-2).all(-1) & (x.diagonal() > 0).all(-1))
_PROBABILITY = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1))
_SIMPLEX = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6))
_BOOLEAN = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))


def broadcast(*values: Any) -> tuple[Any, ...]:
    """Return tensors and numbers as tensors of one shape."""
    wrong = not all(isinstance(v, Tensor | int | float) for v in values)
    raise_if(wrong, "parameter of a distribution")
    dtype = next((v.dtype for v in values if isinstance(v, Tensor)), default_dtype())
    return broadcast_tensors([v if isinstance(v, Tensor) else tensor(v, dtype=dtype) for v in values])


class derived(cached_property):  # type: ignore[type-arg]
    """A parameter that is computed from another one, also under `no_grad` as a result that is recorded."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            return super().__get__(instance, owner)


class Distribution:
    """A probability distribution; the first axes of its parameters are a batch of distributions."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any
    _validate_args = True

    def __init__(self, batch_shape: Any = NONE, event_shape: Any = NONE, validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        for name, constraint in self.arg_constraints.items() if self._validate_args else ():
            value = vars(self).get(name)
            if value is not None and not constraint.check(value).all():
                details = type(value).__name__, tuple(value.shape), self, constraint, value
                raise torch_error("parameter out of range", name, *details)

    batch_shape = property(lambda self: self._batch_shape)
    event_shape = property(lambda self: self._event_shape)
    stddev = property(lambda self: self.variance.sqrt())

    @property
    def variance(self) -> Any:
        raise NotImplementedError

    def expand(self, batch_shape: Any) -> Any:
        """Return distributions of a larger batch."""
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        new._batch_shape = Size(batch_shape)
        for name in self.arg_constraints:
            if (value := vars(self).get(name)) is not None:
                rest = value.shape[len(self._batch_shape) :]
                vars(new)[name] = value.expand(new._batch_shape + rest)
        return new

    def rsample(self, sample_shape: Any = NONE) -> Any:
        raise NotImplementedError

    def log_prob(self, value: Any) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        raise MissingError(f"torch.distributions.{type(self).__name__}.icdf")

    def perplexity(self) -> Any:
        return self.entropy().exp()

    def _shape(self, sample_shape: Any) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _check(self, value: Any) -> None:
        """Check that a value may be a sample."""
        if not self._validate_args:
            return
        raise_if(not isinstance(value, Tensor), "value of another type")
        shape = self._batch_shape + self._event_shape
        fits = all(1 in (m, n) or m == n for m, n in zip(value.shape[::-1], shape[::-1], strict=False))
        raise_if(not fits, "shape of a value", value.shape, shape)
        if not self.support.check(value).all():
            raise torch_error("value out of the support", tuple(value.shape), self.support, self, value)

    def __repr__(self) -> str:
        parameters = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = (f"{name}: {x if x.numel() == 1 else x.size()}" for name, x in parameters.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def _interval(count: int) -> Constraint:
    words = f"IntegerInterval(lower_bound=0, upper_bound={count - 1})"
    return Constraint(words, lambda x: (x % 1 == 0) & (x >= 0) & (x < count))


class _Continuous(Distribution):
    """A distribution whose samples are functions of noise without parameters, so that gradients flow through them."""

    has_rsample = True

    @unrecorded(".sample()")
    def sample(self, sample_shape: Any = NONE) -> Any:
        return self.rsample(sample_shape)


class _Located(_Continuous):
    """A distribution of a mean, which is the most frequent value, and a scale."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": REAL, "scale": POSITIVE}
    support = REAL

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)


class Normal(_Located):
    """The normal distribution of a mean and a standard deviation."""

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

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


class Uniform(_Continuous):
    """The numbers from `low` to before `high`."""

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        below = Constraint(f"LessThan(upper_bound={self.high})", lambda x: x < self.high)
        return {"low": below, "high": Constraint(f"GreaterThan(lower_bound={self.low})", lambda x: x > self.low)}

    mean = property(lambda self: (self.high + self.low) / 2)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)
    mode = property(lambda self: math.nan * self.high)

    @property
    def support(self) -> Any:
        words = f"Interval(lower_bound={self.low}, upper_bound={self.high})"
        return Constraint(words, lambda x: (x >= self.low) & (x <= self.high))

    def rsample(self, sample_shape: Any = NONE) -> Any:
        return self.low + TORCH["rand"](self._shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def entropy(self) -> Any:
        return (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low


class Exponential(_Continuous):
    """The time to an event of a rate."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": POSITIVE}
    support = _LEAST_0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))
    mode = property(lambda self: TORCH["zeros_like"](self.rate))

    def rsample(self, sample_shape: Any = NONE) -> Any:
        return TORCH["empty"](self._shape(sample_shape), dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self.rate.log() - self.rate * value

    def entropy(self) -> Any:
        return 1.0 - self.rate.log()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Any) -> Any:
        return -(-value).log1p() / self.rate


class Laplace(_Located):
    """The double exponential distribution of a mean and a scale."""

    stddev = property(lambda self: 2**0.5 * self.scale)
    variance = property(lambda self: 2 * self.scale.pow(2))

    def rsample(self, sample_shape: Any = NONE) -> Any:
        least = float(np.finfo(self.loc._a.dtype).eps) - 1
        u = TORCH["empty"](self._shape(sample_shape), dtype=self.loc.dtype).uniform_(least, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * (-(value - self.loc).abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()


class MultivariateNormal(_Continuous):
    """Normal vectors of a mean and a covariance matrix, or the inverse or the Cholesky factor of one."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": REAL_VECTOR, "covariance_matrix": _DEFINITE, "precision_matrix": _DEFINITE, "scale_tril": _TRIANGULAR
    }  # fmt: skip
    support = REAL_VECTOR

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        forms = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        named = {name: x for name, x in forms.items() if x is not None}
        raise_if(len(named) != 1, "matrix of a normal vector")
        ((name, matrix),) = named.items()
        batch = TORCH["broadcast_shapes"](matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, loc.shape[-1])
        vars(self)[name] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        whole = matrix if name == "covariance_matrix" else None if name == "scale_tril" else matrix.inverse()
        self._factor = matrix if whole is None else linalg.cholesky(whole)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self._factor.pow(2).sum(-1).expand(self._shape(NONE)))

    scale_tril = derived(lambda self: self._expanded(self._factor))
    covariance_matrix = derived(lambda self: self._expanded(self._factor @ self._factor.mT))
    precision_matrix = derived(lambda self: self._expanded((self._factor @ self._factor.mT).inverse()))

    def _expanded(self, matrix: Any) -> Any:
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    def rsample(self, sample_shape: Any = NONE) -> Any:
        noise = TORCH["empty"](self._shape(sample_shape), dtype=self.loc.dtype).normal_()
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = (value - self.loc).unsqueeze(-1)
        whitened = linalg.solve_triangular(self._factor, distance, upper=False).squeeze(-1)
        constant = self.loc.shape[-1] * math.log(2 * math.pi)
        return -0.5 * (constant + whitened.pow(2).sum(-1)) - self._half_log_det()

    def entropy(self) -> Any:
        size = self.loc.shape[-1]
        result = 0.5 * size * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return result.expand(self._batch_shape) if self._batch_shape else result

    def _half_log_det(self) -> Any:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


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


for _class in (Bernoulli, Categorical, Distribution, Exponential, Laplace, MultivariateNormal, Normal, Uniform):
    _name = {"MultivariateNormal": "multivariate_normal"}.get(_class.__name__, _class.__name__.lower())
    _class.__module__ = f"torch.distributions.{_name}"
