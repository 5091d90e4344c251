"""The Numba engine: a schedule as one compiled loop, kept on disk between runs."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.engine.numba_code import write
from gradcli.engine.schedule import Schedule

Array = np.ndarray[Any, Any]


class NumbaKernel:
    """A schedule as a compiled function; `block` is the number of points that it works on at best."""

    block = 2**14

    def __init__(self, schedule: Schedule) -> None:
        code = write(schedule)
        self._same = code.same
        self._scratch = code.scratch
        self._inputs = list(schedule.inputs)
        self._outputs = list(schedule.outputs)
        self._function = _compiled(code.source)
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


def _compiled(source: str) -> Callable[..., None]:
    """Return the kernel in a source text, which is compiled by Numba unless an earlier run has done so."""
    path = _folder() / f"kernel_{hashlib.sha256(source.encode()).hexdigest()[:24]}.py"
    if not path.is_file() or path.read_bytes() != source.encode():
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(source)
        os.replace(file.name, path)  # another process may write the same
    try:
        return _loaded(path)
    except Exception:  # what Numba kept on disk is broken: an earlier run may have been cut off
        for kept in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            kept.unlink(missing_ok=True)
        return _loaded(path)


def _loaded(path: Path) -> Callable[..., None]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where Numba looks for what it kept on disk
    spec.loader.exec_module(module)
    kernel: Callable[..., None] = module.kernel
    return kernel


def _folder() -> Path:
    """Return the user's own cache folder, or a temporary one where that cannot be written."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradcli"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # there may be no home
        pass
    temporary = tempfile.mkdtemp(prefix="gradcli-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)
