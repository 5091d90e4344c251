"""The LLVM engine: a schedule as machine code that works on the points of a block, wherever NumPy has them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import addressof, c_char
from functools import cache, partial
from operator import is_
from threading import Lock
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from gradcli.engine.blocks import Arrays, Work, are_contiguous, new_arrays
from gradcli.engine.llvm.code import Code, NotCompiledError, check, lanes_for, write
from gradcli.engine.llvm.expressions import LIBRARY
from gradcli.engine.schedule import Schedule, is_view
from gradcli.graph.array import Array
from gradcli.graph.einsum import products
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

_LONG = 2**18  # characters of a source, on which LLVM should spend less of its effort
_NUMBERS, _POINTERS = 3, 3  # of a kernel's arguments


# LLVM's assembly language compiled to machine code in memory, by llvmlite.  Machine code is not kept on disk: a damaged
# file of it would crash the process.


@cache
def check_processor() -> None:
    """Initialize LLVM for this processor.

    Errors: `NotCompiledError` where LLVM cannot compile for it, or where addresses do not have the 64 bits that kernels
    assume.
    """
    if sys.maxsize < 2**32:
        raise NotCompiledError("the LLVM engine needs a 64-bit Python")
    try:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _machine(2)
    except RuntimeError as error:
        raise NotCompiledError(f"LLVM cannot compile for this processor ({error})") from None
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    for name in LIBRARY:
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def compiled(source: str) -> tuple[Any, Callable[..., None]]:
    """Return the function `kernel` of a source, after the engine that must live as long as it does."""
    check_processor()
    effort = 2 if len(source) < _LONG else 1
    machine = _machine(effort)
    engine = llvm.create_mcjit_compiler(optimized(source, machine, effort), machine)
    engine.finalize_object()
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _NUMBERS, *[ctypes.c_void_p] * _POINTERS)
    return engine, kernel(engine.get_function_address("kernel"))


def optimized(source: str, machine: llvm.TargetMachine, effort: int) -> llvm.ModuleRef:
    """Return a source as a module, optimized for a processor."""
    module = llvm.parse_assembly(source)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=effort)
    # Vectors are written as such, and loops over elements are as long as they should be.
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _machine(effort: int) -> llvm.TargetMachine:
    """Return this computer's processor, as LLVM knows it."""
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=effort, codemodel="jitdefault", jit=True
    )


def _features() -> str:
    """Return the processor's features beyond those that its name implies; "" where LLVM cannot list them."""
    with suppress(RuntimeError):
        return str(llvm.get_host_cpu_features().flatten())
    return ""


_COSTS = {**dict.fromkeys(LIBRARY, 16), "div": 4}  # of an element, in additions, where it is not 1
_THREAD = 2**22  # additions whose time is worth a thread
_REMEMBERED = 2**25  # bytes of the outputs of a call whose arrays are kept until the next one, at most


class LlvmKernel:
    """A schedule as a compiled function; `block` is the number of points that it works on at best."""

    block = 2**16

    def __init__(self, schedule: Schedule) -> None:
        check(schedule)
        check_processor()
        self._schedule = schedule
        self.new = partial(new_arrays, schedule.shapes)
        self._inputs, self._outputs = list(schedule.inputs), list(schedule.outputs)
        self._output_size = sum(n.size for n in schedule.outputs.values())
        self._lanes = lanes_for(schedule)
        self._functions: dict[int, _Function] = {}
        self._lock = Lock()
        self._last: tuple[tuple[Array, ...], Array] = (), np.empty(0, np.int64)
        self.fewest = max(1, _THREAD // max(1, sum(map(_cost, schedule.steps))))

    def buffers(self, count: int) -> list[Array]:
        """Return the scratch array of a thread, which grows to the size that a function needs."""
        return [np.empty(0)]

    def begin(self, points: Arrays, results: Arrays) -> Work | None:
        """Return the work that computes the results at a block of points; None unless they are contiguous float64."""
        arrays = _in_order(points, self._inputs) + _in_order(results, self._outputs)
        count = arrays[-1].shape[-1]
        addresses = self._addresses(arrays, 8 * count * self._output_size)
        if addresses is None:
            return None

        def work(buffers: list[Array], start: int, stop: int) -> None:
            function = self._function(stop - start)
            if buffers[0].size < function.scratch:
                buffers[0] = np.empty(function.scratch)
            pointers = (a.ctypes.data for a in (addresses, function.same, *buffers))
            function.call(count, start, stop, *pointers)

        return work

    def _addresses(self, arrays: tuple[Array, ...], output_bytes: int) -> Array | None:
        """Return where the numbers of each array begin; None unless all are contiguous float64.

        Thousands of short arrays take longer to ask than to compute with: the last ones are remembered.
        """
        last, addresses = self._last
        if len(arrays) == len(last) and all(map(is_, arrays, last)):
            return addresses
        if not are_contiguous(arrays):
            return None
        addresses = np.fromiter(map(_address, arrays), np.int64, len(arrays))
        if output_bytes <= _REMEMBERED:
            self._last = arrays, addresses
        return addresses

    def _function(self, count: int) -> _Function:
        """Return the function for so many points, made when it is wanted: another for fewer than a vector has."""
        lanes = self._lanes if count >= self._lanes else 1
        with self._lock:
            if lanes not in self._functions:
                self._functions[lanes] = _Function(write(self._schedule, lanes))
            return self._functions[lanes]


class _Function:
    """A compiled function, and what it is called with."""

    def __init__(self, code: Code) -> None:
        self.same, self.scratch = code.same, code.rows * code.tile
        self._engine, self.call = compiled(code.source)


def _address(array: Any) -> int:
    """Return the address of an array; this takes a third of the time of `array.ctypes.data`."""
    try:
        return addressof(c_char.from_buffer(array))
    except (TypeError, ValueError):  # a buffer must be writable, and have an element
        return int(array.ctypes.data)


def _cost(node: Node) -> int:
    """Return the cost of a step at one point, in additions."""
    if is_view(node):
        return 0
    if OPERATIONS[node.op].kind == "contraction":
        return products(node)
    return node.size * _COSTS.get(node.op, 1)


def _in_order(arrays: Arrays, names: list[str]) -> tuple[Array, ...]:
    """Return the arrays of these names, quickly where they are all arrays, in that order."""
    remaining = list(arrays)
    if remaining != names:
        return tuple(map(arrays.__getitem__, names))
    names[:] = remaining  # the caller's own strings: the next comparison is by identity
    return tuple(arrays.values())
