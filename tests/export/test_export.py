"""Exported files run by their targets and compared with the engine; each target has a rule for every operation."""

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_systems import system

from gradcli import parse
from gradcli.export import c, javascript, jax, numpy, torch
from gradcli.export.loop_rules import NOT_IN_LOOPS, STRUCTURAL
from gradcli.export.program import Wanted, program
from gradcli.graph.operations import OPERATIONS

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
WHAT = ("value", "vjp", "jacobian", "jvp")
SEEDS = range(200)
BATCH = 20
PRIMITIVE = {op for op, row in OPERATIONS.items() if row.for_engines is None or op in ("pow", "cofactors")}


OF_NUMBERS = (c, javascript)


def made(text, language, shapes, what=WHAT, name="model", seed=0):
    """Return the file of a system, with its functions at a point."""
    graph = parse(text, **shapes)
    random = np.random.default_rng(seed)
    at = {n: random.uniform(0.3, 1.5, x.shape) * random.choice([-1, 1], x.shape) for n, x in graph.inputs.items()}
    wanted = Wanted(name, what, list(graph.inputs), at, language in OF_NUMBERS, language.RESERVED | {name})
    found = program(graph, text.splitlines(), wanted)
    return found, language.source(found)


@cache
def of_numbers(seed):
    """Return the source of a random system in C and in JavaScript, by language, and its functions at a point."""
    found, text = made(system(seed), c, SHAPES, name=f"model{seed}", seed=seed)
    return {c: text, javascript: javascript.source(found)}, found.functions


def close(found, expected):
    assert_allclose(np.ravel(found), np.ravel(expected), rtol=1e-12, atol=1e-12 * (1 + np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("language", [numpy, torch, jax])
def test_languages_of_arrays_have_a_rule_for_every_operation(language):
    assert set(language.RULES) >= PRIMITIVE


@pytest.mark.parametrize("language", [c, javascript])
def test_languages_of_numbers_have_a_rule_for_every_operation(language):
    of_numbers = {op for op in PRIMITIVE if OPERATIONS[op].broadcasts}
    assert of_numbers <= set(language.RULES)
    assert PRIMITIVE - of_numbers <= set(STRUCTURAL) | NOT_IN_LOOPS
    assert not set(STRUCTURAL) & NOT_IN_LOOPS


@pytest.mark.parametrize("start", range(0, len(SEEDS), BATCH))
def test_numpy_has_the_engines_numbers(start):
    for seed in SEEDS[start : start + BATCH]:
        found, text = made(system(seed), numpy, SHAPES, seed=seed)
        names = {}
        exec(compile(text, "model.py", "exec"), names)
        for f in found.functions:
            arguments, expected = f.test
            with np.errstate(all="ignore"):
                results = names[f.name](*(np.asarray(v) for v in arguments.values()))
            results = results if isinstance(results, tuple) else (results,)
            for value, right in zip(results, expected.values(), strict=True):
                assert np.shape(value) == right.shape
                close(value, right)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("start", range(0, len(SEEDS), BATCH))
def test_c_has_the_engines_numbers(start, tmp_path):
    whole, calls = [], []
    for seed in SEEDS[start : start + BATCH]:
        texts, functions = of_numbers(seed)
        (tmp_path / f"model{seed}.c").write_text(texts[c])
        helpers = sorted(set(re.findall(r"\bgradcli_\w+", texts[c])))  # each file has its own
        whole += [f"#define {name} {name}_{seed}" for name in helpers]
        whole += [f'#include "model{seed}.c"', *(f"#undef {name}" for name in helpers)]
        calls += functions
    (tmp_path / "models.c").write_text("\n".join([*whole, ""]))
    library = tmp_path / "models.so"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(tmp_path / "models.c"), "-lm", "-o", str(library)], check=True)
    loaded = import_module("ctypes").CDLL(str(library))
    for f in calls:
        for value, right in zip(called(loaded, f), f.test[1].values(), strict=True):
            close(value, right)


def called(library, f):
    """Call a compiled function at its point, and return the results as flat arrays."""
    ctypes = import_module("ctypes")
    arguments, expected = f.test
    pointer = ctypes.POINTER(ctypes.c_double)
    kept = {name: np.array(v, dtype=float, order="C") for name, v in arguments.items()}
    given = [v.ctypes.data_as(pointer) if v.shape else ctypes.c_double(float(v)) for v in kept.values()]
    results = [np.full(right.size, np.nan) for right in expected.values()]
    getattr(library, f.name)(*given, *(r.ctypes.data_as(pointer) for r in results))
    return results


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node")
@pytest.mark.parametrize("start", range(0, len(SEEDS), BATCH))
def test_javascript_has_the_engines_numbers(start, tmp_path):
    main, calls = ["const results = [];"], []
    for seed in SEEDS[start : start + BATCH]:
        texts, functions = of_numbers(seed)
        (tmp_path / f"model{seed}.mjs").write_text(texts[javascript])
        main.insert(0, f'import * as model{seed} from "./model{seed}.mjs";')
        for f in functions:
            given = ", ".join(json.dumps(np.ravel(v).tolist() if v.shape else float(v)) for v in f.test[0].values())
            one = f"model{seed}.{f.name}({given})"
            main.append(f"results.push({one if len(f.results) > 1 else f'[{one}]'});")
            calls.append(f)
    main.append(
        'console.log(JSON.stringify(results.map(r => r.map(v => typeof v === "number" ? [v] : Array.from(v)))));'
    )
    (tmp_path / "main.mjs").write_text("\n".join(main))
    done = subprocess.run(["node", str(tmp_path / "main.mjs")], check=True, capture_output=True, text=True)
    for f, found in zip(calls, json.loads(done.stdout), strict=True):
        for value, right in zip(found, f.test[1].values(), strict=True):
            close(value, right)


@pytest.mark.parametrize("language", [torch, jax])
def test_random_systems_are_python(language):
    for seed in SEEDS[::10]:
        compile(made(system(seed), language, SHAPES, seed=seed)[1], "model.py", "exec")


def commands(folder):
    """Return what runs the three files of a folder."""
    return [sys.executable, str(folder / "model.py")], [str(folder / "model")], ["node", str(folder / "model.mjs")]


# Larger arrays, which are looped over, and operations that random systems do not have.
LARGER = [
    ("y = A @ B; s = sum(A, axis=0); w = max(A, axis=1); m = A.T @ A", {"A": (7, 6), "B": (6, 5)}),
    ("y = softmax(A, axis=1); s = tril(A) @ B; d = diag(A)", {"A": (6, 6), "B": (6, 5)}),
    ("y = conv1d(A, B)", {"A": (2, 3, 20), "B": (4, 3, 3)}),
    ("y = cumsum(A, 1); s = cumprod(A/3, 0); q = A[::-1, ::2]; r = A[[3, 0, 0]]", {"A": (6, 7)}),
    ("y = sum(where(A > 0, A**2, -A)); n = norm(A, axis=1); a = amax(A, axis=0)", {"A": (6, 7)}),
    ("y = max(A, dim=1); z = min(A, dim=0); w = det(A[:3, :3]); q = solve(A[:3, :3], A[3, :3])", {"A": (6, 7)}),
    ("y = x % z; w = floor(x*3); q = heaviside(x, 0.5); r = round(x*4); s = clamp(x, -.5, .5)", {"x": (3,), "z": (3,)}),
]  # fmt: skip


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("node")), reason="there is no C compiler, or no Node")
@pytest.mark.parametrize(("text", "shapes"), LARGER)
def test_files_test_themselves(text, shapes, tmp_path):
    for language, ending in ((numpy, "py"), (c, "c"), (javascript, "mjs")):
        path = tmp_path / f"model.{ending}"
        path.write_text(made(text, language, shapes, ("value", "vjp", "jvp"))[1])
    run = lambda *command: subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: E731
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-DMODEL_TEST"]
    compiled = run("cc", *flags, str(tmp_path / "model.c"), "-lm", "-o", str(tmp_path / "model"))
    assert compiled.returncode == 0, compiled.stderr
    for command in (
        [sys.executable, str(tmp_path / "model.py")],
        [str(tmp_path / "model")],
        ["node", str(tmp_path / "model.mjs")],
    ):
        done = run(*command)
        assert (done.returncode, done.stdout) == (0, "as gradcli has it\n"), (command, done.stdout[:500], done.stderr)


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("node")), reason="there is no C compiler, or no Node")
def test_a_file_that_is_wrong_says_so(tmp_path):
    for language, ending in ((numpy, "py"), (c, "c"), (javascript, "mjs")):
        text = made("y = x**2*3", language, {}, ("value",))[1]
        head, function, rest = text.partition("model(" if language is not c else "void model(")
        body, sign, more = rest.partition("3.0" if language is c else "3")
        assert sign
        (tmp_path / f"model.{ending}").write_text(head + function + body + sign.replace("3", "5") + more)
    subprocess.run(["cc", "-DMODEL_TEST", str(tmp_path / "model.c"), "-lm", "-o", str(tmp_path / "model")], check=True)
    for command in (
        [sys.executable, str(tmp_path / "model.py")],
        [str(tmp_path / "model")],
        ["node", str(tmp_path / "model.mjs")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "where gradcli has" in done.stdout
