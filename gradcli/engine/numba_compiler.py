"""Instructions for LLVM as machine code for this computer, kept on disk between runs.

LLVM comes with Numba, which is made of it; Numba's own way there, from Python's source, takes fifty times as long.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gradcli.engine import kernel_cache
from gradcli.engine.numba_math import LIBRARY
from gradcli.errors import Notes
from gradcli.files import reason

_LONG = 2**18  # characters of a source, on which LLVM should spend less of its effort
_NUMBERS, _POINTERS = 3, 3  # of a kernel's arguments, before and behind a condition


def _machine(effort: int = 2) -> llvm.TargetMachine:
    """Return this computer's processor, as LLVM knows it: a new one, since what it is given to will own it."""
    _begin()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        opt=effort,
        reloc="static" if target.name.startswith("x86") else "default",  # functions of C may be far away
        codemodel="jitdefault",
        jit=True,
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
    """Return what the processor has beyond all of its kind; nothing where LLVM cannot tell."""
    with suppress(RuntimeError):
        return str(llvm.get_host_cpu_features().flatten())
    return ""


def object_code(source: str, notes: Notes) -> bytes:
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


def loaded(code: bytes) -> tuple[Any, Callable[..., None], Callable[..., int]]:
    """Return the functions `kernel` and `addresses` in machine code, after what must live as long as they do."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _NUMBERS, ctypes.c_bool, *[ctypes.c_void_p] * _POINTERS)
    reader = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    return engine, kernel(engine.get_function_address("kernel")), reader(engine.get_function_address("addresses"))
