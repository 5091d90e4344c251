"""The Numba engine: a schedule as machine code, compiled by LLVM, which Numba brings, and kept on disk between runs."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from gradcli.engine import kernel_cache
from gradcli.engine.numba_code import write
from gradcli.engine.numba_math import LIBRARY
from gradcli.engine.schedule import Schedule
from gradcli.errors import Notes
from gradcli.files import reason

Array = np.ndarray[Any, Any]

_LONG = 2**18  # characters of a source, on which LLVM should spend less of its effort
_POINTERS = 4  # of the arguments
_THREAD, _ARRAY = 2**20, 2**13  # numbers to compute that are worth a thread, and its slice of an array


class NumbaKernel:
    """A schedule as a compiled function; `block` is the number of points that it works on at best."""

    block = 2**14

    def __init__(self, schedule: Schedule, notes: Notes) -> None:
        code = write(schedule)
        self._same, self._scratch, self._lanes = code.same, code.rows * code.tile, code.lanes
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        outside = [*schedule.inputs.values(), *schedule.outputs.values()]
        self._rows = [j for j, n in enumerate(outside) if n.shape]
        self._engine, self._function = loaded(_object_code(code.source, notes))
        numbers = sum(n.size for n in schedule.steps)
        self.fewest = max(1, max(_THREAD, _ARRAY * len(outside)) // numbers)

    def buffers(self, count: int) -> list[Array]:
        """Return the scratch array of a thread."""
        return [np.empty(self._scratch)]

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points."""
        inputs = [points[name] for name in self._inputs]
        outputs = [results[name] for name in self._outputs]
        count = outputs[0].shape[-1]
        if count >= self._lanes:
            self._call(count, [*inputs, *outputs], buffers[0])
            return
        # Fewer points than a vector has: the first one fills it.
        inputs = [np.concatenate([a, *[a[..., :1]] * (self._lanes - count)], axis=-1) for a in inputs]
        whole = [np.empty((*a.shape[:-1], self._lanes)) for a in outputs]
        self._call(self._lanes, [*inputs, *whole], buffers[0])
        for array, found in zip(outputs, whole, strict=True):
            array[...] = found[..., :count]

    def _call(self, count: int, arrays: list[Array], scratch: Array) -> None:
        strides = np.zeros(len(arrays), np.int64)
        for j in self._rows:
            strides[j] = arrays[j].strides[-2] // arrays[j].itemsize
        own = cells(arrays)
        self._function(count, *(a.ctypes.data for a in (own, strides, self._same, scratch)))


def cells(arrays: Sequence[Array]) -> Array:
    """Return for each array the address of a cell of memory that holds the address of its numbers.

    To ask NumPy for thousands of addresses takes longer than to compute with what is there.
    """
    head = _head()
    if head:
        return np.fromiter(map(id, arrays), np.int64, len(arrays)) + head
    both = np.array([0 for _ in arrays] + [a.ctypes.data for a in arrays])
    both[: len(arrays)] = both.ctypes.data + both.itemsize * np.arange(len(arrays), 2 * len(arrays))
    return both


@cache
def _head() -> int:
    """Return how far into an array's object that cell is, behind what all objects begin with; 0 if it is not there."""
    probe = np.empty(1)
    if sys.implementation.name != "cpython":
        return 0
    head = object.__basicsize__
    return head if ctypes.c_void_p.from_address(id(probe) + head).value == probe.ctypes.data else 0


def _machine(effort: int = 2) -> llvm.TargetMachine:
    """Return this computer's processor, as LLVM knows it: a new one, since what it is given to will own it."""
    _begin()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=effort, codemodel="jitdefault", jit=True
    )


@cache
def _begin() -> None:
    """Make LLVM ready, and tell it where C's functions are."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    for name in LIBRARY:
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def _features() -> str:
    features: str = llvm.get_host_cpu_features().flatten()
    return features


def _object_code(source: str, notes: Notes) -> bytes:
    """Return the machine code of a source, from an earlier run that has kept it, or compiled.

    What goes wrong with the former, whatever it is, only costs time.
    """
    key = repr((source, llvmlite.__version__, llvm.get_host_cpu_name(), _features()))
    with suppress(OSError):
        return kernel_cache.read(key)
    code = compiled(source)
    try:
        kernel_cache.keep(key, code)
    except OSError as error:
        notes.add("note", f"what Numba compiled is not kept in `{kernel_cache.place()}`: {reason(error)}")
    return code


def compiled(source: str) -> bytes:
    """Return the machine code of a source."""
    effort = 2 if len(source) < _LONG else 1
    machine = _machine(effort)
    module = llvm.parse_assembly(source)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=effort)
    # Vectors are written as such, and loops over elements are as long as they should be.
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def loaded(code: bytes) -> tuple[Any, Callable[..., None]]:
    """Return the function in machine code, and what must live as long as it does."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * _POINTERS)
    return engine, kind(engine.get_function_address("kernel"))
