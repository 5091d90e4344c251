"""PyTorch's random numbers: the Mersenne Twister's words, and what PyTorch makes of them.

Source: PyTorch 2.13; M. Matsumoto and T. Nishimura, "Mersenne Twister" (1998); G. Box and M. Muller, "A note on the
generation of random normal deviates" (1958).
"""

from __future__ import annotations

import math
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.pytorch.messages import missing_if, raise_if
from gradcli.pytorch.modes import Mode

if TYPE_CHECKING:
    from random import Random

Array = np.ndarray[Any, Any]

_BLOCK = 16  # normal numbers that are made together
_PIECE = 2**20  # numbers that are computed at a time, in float64
_STATE = 624  # words of the twister's state
_LONG = 2**28  # from this range on, an integer takes two words


class Generator:
    """A stream of random numbers; PyTorch has one of its own for all that name no other."""

    def __init__(self, device: Any = "cpu") -> None:
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of a seed."""
        self._seed = seed % 2**64
        self._spare: float | None = None
        vars(self).pop("_words", None)
        return self

    @cached_property
    def _words(self) -> Random:
        """The Mersenne Twister, which begins when it is asked: many scripts have no random numbers.

        It is Python's: to import NumPy's takes longer than a short script.
        """
        from random import Random

        state = [self._seed & 0xFFFFFFFF]
        for k in range(1, _STATE):
            state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + k) & 0xFFFFFFFF)
        result = Random()
        result.setstate((result.VERSION, (*state, _STATE), None))
        return result

    def initial_seed(self) -> int:
        """Return the seed."""
        return self._seed

    def seed(self) -> int:
        """Begin the stream of a seed that nobody knows, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little"))._seed

    def get_state(self) -> Any:
        """Return where the stream is."""
        return self._words.getstate(), self._spare, self._seed

    def set_state(self, state: Any) -> Generator:
        """Go on where the stream was."""
        words, self._spare, self._seed = state
        self._words.setstate(words)
        return self

    def words(self, n: int) -> Array:
        """Return words of 32 bits."""
        raise_if(Mode.randomness == "error", "random numbers in a map")
        if Mode.tracer is not None:
            raise LookupError("random numbers are not drawn again")
        result = np.empty(n, np.uint32)
        for start in range(0, n, _PIECE):
            piece = result[start : start + _PIECE]
            drawn = self._words.getrandbits(32 * len(piece))  # the first is the lowest
            piece[...] = np.frombuffer(drawn.to_bytes(4 * len(piece), "little"), "<u4")
        return result

    def long_words(self, n: int) -> Array:
        """Return words of 64 bits: the first of two is the high half."""
        pairs = self.words(2 * n).astype(np.uint64)
        return (pairs[::2] << np.uint64(32)) | pairs[1::2]

    def uniform(self, n: int, dtype: Any = np.float32) -> Array:
        """Return numbers from 0 to before 1."""
        if np.dtype(dtype) != np.float64:
            return ((self.words(n) & np.uint32(2**24 - 1)) * np.float32(2.0**-24)).astype(dtype)
        return (self.long_words(n) & np.uint64(2**53 - 1)) * 2.0**-53

    def between(self, low: float, high: float, n: int, dtype: Any = np.float32) -> Array:
        """Return numbers from `low` to before `high`, each rounded once, as by a fused multiply-add."""
        kind = np.dtype(dtype).type
        a, b = kind(low), kind(high)
        result = self.uniform(n, dtype)
        for start in range(0, n, _PIECE):
            piece = result[start : start + _PIECE]
            piece[...] = piece * np.float64(b - a) + np.float64(a)
            piece[piece == b] = a
        return result

    def normal(
        self, n: int, dtype: Any = np.float32, mean: float = 0.0, std: float = 1.0, one_by_one: bool = False
    ) -> Array:
        """Return normal numbers: a few one by one, many in blocks of 16."""
        is_half = n >= _BLOCK and np.dtype(dtype) == np.float16
        missing_if(is_half, "torch.randn(dtype=torch.float16)", "torch.randn(…).half()")
        if n < _BLOCK or one_by_one:
            return np.array([self._one() * std + mean for _ in range(n)], dtype)
        result = self.uniform(n, dtype)
        whole = n - n % _BLOCK
        result[:whole] = _blocks(result[:whole].reshape(-1, _BLOCK), mean, std).reshape(-1)
        if whole < n:
            result[-_BLOCK:] = _blocks(self.uniform(_BLOCK, dtype)[None], mean, std)[0]
        return result

    def _one(self) -> float:
        """Return a normal number: of two that are made together, the other is kept."""
        if self._spare is not None:
            result, self._spare = self._spare, None
            return result
        angle, radius = self.uniform(2, np.float64).tolist()
        rad, theta = math.sqrt(-2 * math.log1p(-radius)), 2 * math.pi * angle  # the C library's, as PyTorch's are
        self._spare = rad * math.sin(theta)
        return rad * math.cos(theta)

    def integers(self, low: int, high: int, n: int) -> Array:
        """Return integers from `low` to before `high`."""
        count = high - low
        result: Array = self.words(n) % np.uint32(count) if count < _LONG else self.long_words(n) % np.uint64(count)
        return result.astype(np.int64) + low

    def permutation(self, n: int) -> Array:
        """Return a random permutation of the integers below `n`."""
        result = list(range(n))
        for i, word in enumerate(self.words(max(0, n - 1)).tolist()):
            j = i + word % (n - i)
            result[i], result[j] = result[j], result[i]
        return np.array(result, np.int64)


Generator.__module__ = "torch._C"
DEFAULT = Generator()


def _blocks(u: Array, mean: float, std: float) -> Array:
    """Return normal numbers of uniform ones, in rows of 16: the first half gives radii, the second angles."""
    radius = np.sqrt(-2 * np.log(1 - u[:, : _BLOCK // 2]))
    angle = u.dtype.type(2 * np.pi) * u[:, _BLOCK // 2 :]
    pairs: Array = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return pairs * np.float64(std) + mean  # rounded once, as by a fused multiply-add
