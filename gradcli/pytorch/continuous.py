"""`torch.distributions`: `Uniform`, `Exponential`, `Laplace` and `MultivariateNormal`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch import linalg
from gradcli.pytorch.distribution import NONE, POSITIVE, REAL, REAL_VECTOR, Constraint, Distribution, broadcast, derived
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.modes import unrecorded
from gradcli.pytorch.names import TORCH

__all__ = ["Exponential", "Laplace", "MultivariateNormal", "Uniform"]

_LEAST_0 = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
_DEFINITE = Constraint("PositiveDefinite()", lambda x: _is_definite(x))
_TRIANGULAR = Constraint("LowerCholesky()", lambda x: (x.tril() == x).flatten(-2).all(-1) & (x.diagonal() > 0).all(-1))


def _is_definite(x: Any) -> Any:
    return TORCH["tensor"](bool((np.linalg.eigvalsh(x._a[..., 0]) > 0).all()))


class _Continuous(Distribution):
    """A distribution whose samples are functions of noise without parameters, so that gradients flow through them."""

    has_rsample = True

    @unrecorded(".sample()")
    def sample(self, sample_shape: Any = NONE) -> Any:
        return self.rsample(sample_shape)


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


class Laplace(_Continuous):
    """The double exponential distribution of a mean and a scale."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": REAL, "scale": POSITIVE}
    support = REAL

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
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


for _class in (Exponential, Laplace, MultivariateNormal, Uniform):
    _name = {"MultivariateNormal": "multivariate_normal"}.get(_class.__name__, _class.__name__.lower())
    _class.__module__ = f"torch.distributions.{_name}"
