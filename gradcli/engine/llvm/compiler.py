"""LLVM's assembly language compiled to machine code in memory, by llvmlite.

Machine code is not kept on disk: a damaged file of it would crash the process.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from gradcli.engine.llvm.code import NotCompiledError
from gradcli.engine.llvm.expressions import LIBRARY

_LONG = 2**18  # characters of a source, on which LLVM should spend less of its effort
_NUMBERS, _POINTERS = 3, 3  # of a kernel's arguments


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
