"""The base of distributions: constraints of their parameters, shapes, and checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from gradcli.pytorch.dtypes import Size, default_dtype
from gradcli.pytorch.messages import MissingError, raise_if, torch_error
from gradcli.pytorch.modes import enable_grad
from gradcli.pytorch.operations.creation import tensor
from gradcli.pytorch.operations.joining import broadcast_tensors
from gradcli.pytorch.tensor import Tensor

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
