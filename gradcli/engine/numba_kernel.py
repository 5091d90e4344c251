"""The Numba engine: a schedule as one compiled loop, kept on disk between runs."""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.abc import InspectLoader
from typing import Any

import numpy as np

from gradcli.engine import kernel_cache
from gradcli.engine.numba_code import write
from gradcli.engine.schedule import Schedule
from gradcli.errors import Notes
from gradcli.files import reason

Array = np.ndarray[Any, Any]


class NumbaKernel:
    """A schedule as a compiled function; `block` is the number of points that it works on at best."""

    block = 2**14

    def __init__(self, schedule: Schedule, notes: Notes) -> None:
        code = write(schedule)
        self._same = code.same
        self._scratch = code.scratch
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        self._function = _compiled(code.source, notes)
        self.fewest = schedule.fewest

    def buffers(self, count: int) -> list[Array]:
        """Return the scratch array of a thread."""
        return [np.empty(self._scratch)]

    def run(self, buffers: list[Array], points: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compute the results at points."""
        inputs = [_flat(points[name]) for name in self._inputs]
        outputs = [_flat(results[name]) for name in self._outputs]
        count = results[self._outputs[0]].shape[-1]
        self._function(count, *inputs, self._same, *buffers, *outputs)


def _flat(array: Array) -> Array:
    """Return an array as `(elements, points)`, a scalar as `(points,)`."""
    return array if array.ndim == 1 else array.reshape(-1, array.shape[-1])


def _compiled(source: str, notes: Notes) -> Callable[..., None]:
    """Return the kernel in a source text, which is compiled by Numba unless an earlier run has done so."""
    name = f"kernel_{hashlib.sha256(source.encode()).hexdigest()}"
    spec = importlib.util.spec_from_loader(name, _Text(source))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks for the names in code that was kept
    spec.loader.exec_module(module)
    kernel = module.kernel
    kernel._cache = _Kept(source, notes)
    kernel.compile(module.signature)
    kernel.disable_compile()
    compiled: Callable[..., None] = kernel
    return compiled


class _Text(InspectLoader):
    """Loads a module from its source, and from no file of byte code, which might be another's."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """Return the source."""
        return self._source


class _Kept:
    """Whom Numba asks for the machine code of a kernel before it compiles, and whom it tells after.

    Numba's own files are read without any check.  What goes wrong here, whatever it is, only costs time.
    """

    def __init__(self, source: str, notes: Notes) -> None:
        self._source = source
        self._notes = notes

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what an earlier run has compiled, or None."""
        with suppress(Exception):
            from numba.core.compiler import CompileResult

            kept = pickle.loads(kernel_cache.read(self._key(context.codegen())))
            context.refresh()  # or what the code calls may not have been loaded
            return CompileResult._rebuild(context, *kept)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for the next run."""
        try:
            from numba.core.serialize import dumps

            if result.library.has_dynamic_globals:
                raise ValueError("it holds addresses of this process")
            kernel_cache.keep(self._key(result.codegen), dumps(result._reduce()))
        except Exception as error:
            place = kernel_cache.place()
            self._notes.add("note", f"what Numba compiled is not kept in `{place}`: {reason(error)}")

    def _key(self, codegen: Any) -> str:
        """Return all that machine code depends on."""
        import numba

        return repr((self._source, numba.__version__, sys.version, codegen.magic_tuple()))
