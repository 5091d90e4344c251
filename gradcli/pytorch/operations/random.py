"""Tensors of random numbers, which are PyTorch's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.calls import call_of
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.pytorch.dtypes import int64
from gradcli.pytorch.functions import grad_name
from gradcli.pytorch.generator import DEFAULT, Generator
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.modes import Mode, unrecorded
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.operations.creation import in_memory, like, of_size
from gradcli.pytorch.operations.inplace import replace_elements
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, new, of_array

# `torch.random` has them, too.
manual_seed = function("manual_seed")(lambda seed: DEFAULT.manual_seed(int(seed)))
seed = function("seed")(lambda: DEFAULT.seed())
initial_seed = function("initial_seed")(lambda: DEFAULT.initial_seed())
get_rng_state = function("get_rng_state")(lambda: DEFAULT.get_state())
set_rng_state = function("set_rng_state")(lambda new_state: DEFAULT.set_state(new_state) and None)
TORCH.update(Generator=Generator, default_generator=DEFAULT)


def _drawing(draw: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a function of a size that draws the elements of a tensor."""

    def make(size: Any, generator: Generator | None = None, **options: Any) -> Tensor:
        return of_size(size, partial(draw, generator or DEFAULT), **options)

    return make


def _integers(size: Any, high: Any, low: int = 0, generator: Any = None, **options: Any) -> Tensor:
    first, last = int(low or 0), int(high)
    raise_if(first >= last, "bounds of a randint", first, last)
    return of_size(size, lambda n, _: (generator or DEFAULT).integers(first, last, n), int64, **options)


_RANDOM = {"rand": _drawing(Generator.uniform), "randn": _drawing(Generator.normal), "randint": _integers}
for _name, _make in _RANDOM.items():
    function(_name)(_make)
    function(f"{_name}_like")(like(_make))


@function("randperm")
def randperm(n: int, generator: Generator | None, **options: Any) -> Tensor:
    return of_size((n,), lambda n, _: (generator or DEFAULT).permutation(n), int64, **options)


@function("normal")
def normal(mean: Any, std: Any, size: Any, generator: Any, **options: Any) -> Tensor:
    g, spread = generator or DEFAULT, isinstance(std, Tensor)
    raise_if(spread and not (std._a >= 0).all(), "negative spreads")
    raise_if(not spread and std < 0, "negative spread", std)
    if not spread and not isinstance(mean, Tensor):
        return of_size(size, lambda n, kind: g.normal(n, kind, float(mean), float(std)), **options)
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    drawn = of_array(g.normal(math.prod(shape), tensors[0]._a.dtype, 0.0, 1.0 if spread else std).reshape(shape))
    with unrecorded():
        result = drawn * std + mean if spread else drawn + mean
    return _drawn_for(result, tensors, f"NormalBackward{2 * spread + (tensors[0] is mean)}")


def _drawn_for(result: Tensor, tensors: Sequence[Tensor], name: str) -> Tensor:
    """Return random numbers as a function of their parameters `tensors`, whose gradients are zero, as in PyTorch."""

    def build(*nodes: Node) -> Node:
        *xs, y = nodes
        for x in xs:
            y = elementwise("where", const(0, (), "bool"), cast(x, y.dtype), y)
        return y

    return apply("drawn", build, (*tensors, result), (), name) if any(x.requires_grad for x in tensors) else result


@function("bernoulli")
def bernoulli(input: Tensor, p: float | None, generator: Generator | None) -> Tensor:
    limit = input._a if p is None else np.float64(p)
    kind = np.float32 if limit.dtype == np.float32 else np.float64
    drawn = (generator or DEFAULT).uniform(input.numel(), kind).reshape(input._a.shape)
    raise_if(p is None and ((limit < 0) | (limit > 1)).any(), "no probability")
    return _drawn_for(of_array((drawn < limit)[..., 0].astype(input._a.dtype)), (input,), "BernoulliBackward0")


@function("multinomial")
def multinomial(input: Tensor, num_samples: int, replacement: bool, generator: Any) -> Tensor:
    raise_if(num_samples <= 0, "no samples")
    raise_if(not input.is_floating_point(), "dtype of weights", input.dtype.word)
    g, weights = generator or DEFAULT, np.atleast_2d(input._a[..., 0])
    raise_if(not replacement and num_samples > weights.shape[-1], "too many samples")
    raise_if((weights < 0).any() or not np.isfinite(weights).all(), "no weights")
    raise_if(not weights.sum(-1).all(), "sum of weights")
    if replacement and num_samples > 1:
        result = np.stack([_replacing(g, row, num_samples) for row in weights])
    else:
        drawn = -np.log1p(-g.uniform(weights.size, np.float64)).reshape(weights.shape).astype(weights.dtype)
        with np.errstate(divide="ignore"):
            result = np.argsort(-(weights / drawn), axis=-1, kind="stable")[:, :num_samples]
    return of_array(np.asarray(result, np.int64).reshape(*input.shape[:-1], num_samples))


def _replacing(g: Generator, weights: Any, count: int) -> Any:
    sums = np.cumsum(weights, dtype=weights.dtype)
    sums = sums / sums[-1]
    sums[-1] = 1
    return np.searchsorted(sums, g.uniform(count, np.float64))


# In place


def _normal(x: Tensor, g: Generator, mean: float, std: float) -> Any:
    raise_if(x._a.dtype.kind != "f", "no kernel", "normal_kernel_cpu", x.dtype.word)
    return g.normal(x.numel(), x._a.dtype, mean, std, not x.is_contiguous())


def _whole(self: Tensor, g: Generator, low: int, high: int | None) -> Any:
    if high is not None:
        return g.integers(low, high, self.numel())
    most = 2**63 if self._a.dtype.kind in "iu" else 2**24 + 1
    return (g.long_words(self.numel()) % np.uint64(most)).astype(self._a.dtype)


_FILLED: dict[str, Callable[..., Any]] = {
    "uniform_": lambda x, g, low=0.0, high=1.0: g.between(low, high, x.numel(), x._a.dtype),
    "normal_": lambda x, g, mean=0.0, std=1.0: _normal(x, g, mean, std),
    "random_": lambda x, g, low=0, high=None: _whole(x, g, low, high),
    "bernoulli_": lambda x, g, p=0.5: (
        bernoulli(p, None, g)._a if isinstance(p, Tensor) else g.uniform(x.numel(), np.float64) < p
    ),
    "exponential_": lambda x, g, lambd=1.0: -1 / lambd * np.log1p(-g.uniform(x.numel(), np.float64)),
}


@function(*_FILLED)
def fill_random(self: Tensor, generator: Generator | None, op: str, **bounds: Any) -> Tensor:
    settings = {{"from": "low", "to": "high"}.get(name, name): value for name, value in bounds.items()}
    numbers = np.asarray(_FILLED[op](self, generator or DEFAULT, **settings)).reshape(-1)
    return replace_elements(self, new(in_memory(numbers, self._a)), op, grad_name(op))


MASK = "mask"  # what explanations call it: 1 where an element is kept, and 0 elsewhere
_STEP = "MulBackward0"


def drop_elements(x: Tensor, p: float, shape: Any = None) -> Tensor:
    """Return the input after dropout: each element is kept with probability 1 - p, and 0 otherwise."""
    return x if p == 0 else dropped(x, drawn_mask(x, p, tuple(x.shape) if shape is None else shape), p)


def drawn_mask(x: Tensor, p: float, sizes: tuple[int, ...]) -> Tensor:
    """Return the mask of a dropout: 1 with probability 1 - p, and 0 otherwise."""
    draw = DEFAULT.uniform if Mode.tracer is None else np.zeros  # in the order of x's elements in memory
    u = draw(math.prod(sizes), np.float64)
    keep = (u < 1 - p).astype(x._a.dtype)
    mask = new(in_memory(keep, x._a)) if sizes == tuple(x.shape) else of_array(keep.reshape(sizes))
    mask._label = MASK
    return mask


def dropped(x: Tensor, mask: Tensor, p: float) -> Tensor:
    """Return the input after dropout with a mask."""
    if p == 1:  # nothing is kept
        return apply("dropout", lambda *nodes: call_of("dropout", (), *nodes, const(1)), (x, mask), "all", _STEP)
    return apply("dropout", partial(call_of, "dropout", ()), (x, mask), (), _STEP, (np.array([float(p)]),))
