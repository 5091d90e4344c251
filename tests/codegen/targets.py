"""Exported files run by their targets: many at once, since a process and a compiler take long to start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ctypes import CDLL, POINTER, c_double
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from gradcli import parse
from gradcli.codegen import c, javascript, jax, numpy, torch
from gradcli.codegen.program import Program, Request, program
from gradcli.graph.graph import Graph

LANGUAGES = {"numpy": numpy, "torch": torch, "jax": jax, "c": c, "javascript": javascript}
RUNNER = Path(__file__).with_name("run_python.py")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off")


class Made(NamedTuple):
    """A program, with the text of its file."""

    program: Program
    text: str


def made(to, text, shapes, what, name="model", seed=0, at=None, sparse=False, outputs=None):
    """Return the file of a system, with its functions at a point: a random one, if none is given."""
    graph = parse(text, **shapes)
    if outputs:
        kept = {y: graph.outputs[y] for y in outputs}
        graph = Graph.of(graph.inputs, kept, names=graph.names, spans=graph.spans)
    random = np.random.default_rng(seed)
    point = {n: random.uniform(0.3, 1.5, x.shape) * random.choice([-1, 1], x.shape) for n, x in graph.inputs.items()}
    language = LANGUAGES[to]
    numbers = to in ("c", "javascript")
    reserved = language.RESERVED | {name}
    request = Request(name, what, list(graph.inputs), point | (at or {}), numbers, reserved, sparse, to)
    found = program(graph, text.splitlines(), request)
    return Made(found, language.source(found))


@cache
def interpreter(library):
    """Return the Python that has a library: this one, or that of the environment; none if there is none."""
    command = os.environ.get(f"GRADCLI_{library.upper()}", sys.executable)
    done = subprocess.run([command, "-c", f"import {library}"], capture_output=True, check=False)
    return command if done.returncode == 0 else None


def is_there(to):
    """Tell whether a target runs on this machine."""
    if to in ("c", "javascript"):
        return shutil.which("cc" if to == "c" else "node") is not None
    return interpreter(to) is not None


def compare(to, files, folder):
    """Run all functions of the files at their points, and compare with the engine's numbers to 12 digits."""
    run = {"c": _run_c, "javascript": _run_javascript}.get(to, _run_python)
    found = run(to, files, folder)
    functions = [(file, f) for file in files for f in file.program.functions]
    assert len(found) == len(functions)
    for (file, f), results in zip(functions, found, strict=True):
        for (name, right), own in zip(f.test[1].items(), results, strict=True):
            scale = np.abs(right[np.isfinite(right)]).max(initial=0)
            told = f"{f.name}: {name} of\n" + "\n".join(file.program.system)
            close = {"rtol": 1e-12, "atol": 1e-12 * (1 + scale), "err_msg": told}
            assert_allclose(np.array(own, dtype=float).ravel(), np.ravel(right), **close)


def _call(f):
    return [f.name, [np.asarray(v).tolist() for v in f.test[0].values()]]


def _run_python(to, files, folder):
    jobs = [{"text": text, "calls": [_call(f) for f in own.functions]} for own, text in files]
    command = [interpreter(to), str(RUNNER), to]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def _run_javascript(to, files, folder):
    lines = ["const results = [];"]
    for k, (own, text) in enumerate(files):
        (folder / f"model{k}.mjs").write_text(text, "utf-8")
        lines.insert(0, f'import * as model{k} from "./model{k}.mjs";')
        for f in own.functions:
            given = ", ".join(json.dumps(np.ravel(v).tolist() if v.shape else float(v)) for v in f.test[0].values())
            call = f"model{k}.{f.name}({given})"
            lines.append(f"results.push({call if len(f.results) > 1 else f'[{call}]'});")
    lines.append('const flat = (v) => (typeof v === "number" ? [v] : Array.from(v)).map(String);')
    lines.append("console.log(JSON.stringify(results.map((r) => r.map(flat))));")
    (folder / "main.mjs").write_text("\n".join(lines), "utf-8")
    done = subprocess.run(["node", str(folder / "main.mjs")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.replace("Infinity", "inf"))


def _run_c(to, files, folder):
    paths = []
    for k, (own, text) in enumerate(files):
        for f in own.functions:  # each file has a model: in one library they have names of their own
            text = text.replace(f"void {f.name}(", f"void {f.name}_{k}(").replace(f"{f.name}_rows[", f"{f.name}_r{k}[")
            text = text.replace(f"{f.name}_columns[", f"{f.name}_c{k}[")
        paths.append(str(folder / f"model{k}.c"))
        Path(paths[-1]).write_text(text, "utf-8")
    library = str(folder / "models.so")
    done = subprocess.run(
        ["cc", *FLAGS, "-shared", "-fPIC", *paths, "-lm", "-o", library], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded = CDLL(library)
    found = []
    for k, (own, _) in enumerate(files):
        for f in own.functions:
            found.append(_called(loaded[f"{f.name}_{k}"], f))
    return found


def _called(function, f):
    """Call a compiled function at its point, and return the results as flat arrays."""
    arguments, expected = f.test
    pointer = POINTER(c_double)
    kept = {name: np.array(v, dtype=float, order="C") for name, v in arguments.items()}
    given = [v.ctypes.data_as(pointer) if v.shape else c_double(float(v)) for v in kept.values()]
    results = [np.full(right.size, np.nan) for right in expected.values()]
    function(*given, *(r.ctypes.data_as(pointer) for r in results))
    return results
