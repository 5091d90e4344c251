"""What PyTorch's kernels make of the processor: how wide a vector is, and how many threads share the work."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np

from gradcli.platform import processor


def vector_bytes(asked: str | None) -> int:
    """Return the bytes of a vector in PyTorch's loops: what is asked for, else of this processor.

    >>> vector_bytes("avx2"), vector_bytes("avx512")
    (32, 64)
    """
    if asked:
        return 64 if asked == "avx512" else 32
    core = "numpy._core" if np.__version__ >= "2" else "numpy.core"
    return 64 if import_module(f"{core}._multiarray_umath").__cpu_features__.get("AVX512_SKX") else 32


VECTOR = vector_bytes(os.environ.get("ATEN_CPU_CAPABILITY"))


# Whether MKL takes its ways for Intel's processors with AVX-512, unless others are asked for.
IS_INTEL = "GenuineIntel" in os.environ.get("GRADCLI_PROCESSOR", processor()) and vector_bytes(None) == 64


class Threads:
    """The threads among which PyTorch would share work."""

    count = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
