"""Exported files run by their targets and compared with the engine; each target has a rule for every operation."""

import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from conftest import long
from numpy.testing import assert_allclose
from random_systems import system
from targets import LANGUAGES, compare, is_there, made

from gradcli import evaluate, parse
from gradcli.cli.inputs.system import read_situation, read_system_of
from gradcli.cli.options import SystemOptions
from gradcli.codegen import c
from gradcli.codegen.kinds import KINDS
from gradcli.codegen.program import Request, program
from gradcli.engine.numeric_jacobian import numeric_jacobian
from gradcli.errors import InputError, Notes
from gradcli.graph.operations import OPERATIONS

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
WHAT = ("value", "vjp", "jacobian", "jvp")
SCALAR = ("value", "vjp", "hessian", "hvp")
SEEDS = range(int(os.environ.get("GRADCLI_SYSTEMS", "12")))  # 200, once in a while
SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.grad"))
PRIMITIVE = {op for op, row in OPERATIONS.items() if row.for_engines is None or op in ("pow", "cofactors")}
WRITTEN_OUT = {"product_of_others"}


@pytest.fixture(params=LANGUAGES)
def to(request):
    if not is_there(request.param):
        pytest.skip(f"there is nothing here that runs {request.param}")
    return request.param


@pytest.mark.parametrize("language", ["numpy", "torch", "jax"])
def test_languages_of_arrays_have_a_rule_for_every_operation(language):
    rules = LANGUAGES[language].RULES
    assert set(rules) >= PRIMITIVE
    assert {op for op, rule in rules.items() if rule == "refused"} <= WRITTEN_OUT | {"cofactors"}


@pytest.mark.parametrize("language", ["c", "javascript"])
def test_languages_of_numbers_have_a_rule_for_every_operation(language):
    of_numbers = {op for op in PRIMITIVE if OPERATIONS[op].broadcasts}
    assert of_numbers <= set(LANGUAGES[language].RULES)
    views = {op for op, row in OPERATIONS.items() if row.kind == "view"}
    assert PRIMITIVE - of_numbers - views - WRITTEN_OUT <= set(LANGUAGES[language].LANGUAGE.structural)


@long
def test_random_systems(to, tmp_path):
    files = [made(to, system(seed), SHAPES, WHAT, seed=seed) for seed in SEEDS]
    files += [
        made(to, f"{system(seed)}\nL = sum(y**2)", SHAPES, SCALAR, seed=seed, outputs=["L"]) for seed in SEEDS[::4]
    ]
    compare(to, files, tmp_path)


CALLS = {
    "linear(M, W, b) + bilinear(M, M, [W, W, W], b)": {"M": (2, 3), "W": (3, 3), "b": ()},
    "embedding([1, 0, 1], W)*dropout(W, m, 0.1) + rms_norm(W, 3)": {"W": (3, 3), "m": (3,)},
    "scaled_dot_product_attention(M, W, W, is_causal=True, scale=b)": {"M": (3, 3), "W": (3, 3), "b": ()},
    "lstm(M, h, h, U, V, c, c) + gru(M, h, U[1:], V[1:], c[1:], c[1:])": {
        "M": (2, 3), "h": (1, 1), "U": (4, 3), "V": (4, 1), "c": (4,),
    },
    "group_norm(I, 1, b) + instance_norm(I, weight=b) + layer_norm(I, (2, 3))*batch_norm(I)": {
        "I": (1, 2, 2, 3), "b": (2,),
    },
    "conv2d(I, K, b, padding=1) + conv_transpose2d(I, K, b)": {
        "I": (1, 2, 2, 3), "K": (2, 2, 2, 2), "b": (2,),
    },
    "max_pool2d(I, 2) + avg_pool2d(I, 2) + adaptive_max_pool2d(I, (1, 2)) + interpolate(I, (1, 2), mode='bilinear')": {
        "I": (1, 2, 2, 3),
    },
    "cross_entropy(M, [2, 0]) + nll_loss(M, [0, 1]) + mse_loss(M, M[0]) + huber_loss(M, b)": {"M": (2, 3), "b": ()},
}  # fmt: skip


@long
def test_calls(to, tmp_path):
    compare(to, [made(to, f"L = sum({text})", shapes, ("value", "vjp")) for text, shapes in CALLS.items()], tmp_path)


def test_samples(to, tmp_path):
    files = []
    for path in SAMPLES:
        options = SystemOptions((), (str(path),), (), (), None, None, None)
        try:
            situation = read_situation(read_system_of(options), options, Notes())
        except InputError:  # it has claims, for `gradcli check`
            continue
        language, numbers = LANGUAGES[to], to in ("c", "javascript")
        point = (
            situation.points[0]
            if situation.points
            else {n: np.full(x.shape, 0.7) for n, x in situation.graph.inputs.items()}
        )
        request = Request("model", WHAT, situation.wrt, point, numbers, language.RESERVED | {"model"}, target=to)
        found = program(situation.graph, path.read_text("utf-8").splitlines(), request)
        files.append((found, language.source(found)))
    assert len(files) > 20
    compare(to, [type(made("c", "y=x", {}, ()))(*file) for file in files], tmp_path)


# Larger arrays, which are looped over, and operations that random systems do not have.
LARGER = [
    ("y = A @ B; s = sum(A, axis=0); w = max(A, axis=1); m = A.T @ A", {"A": (7, 6), "B": (6, 5)}),
    ("y = softmax(A, axis=1); s = tril(A) @ B; d = diag(A); t = triu(A, 1)", {"A": (6, 6), "B": (6, 5)}),
    ("y = conv1d(A, B)", {"A": (2, 3, 20), "B": (4, 3, 3)}),
    ("y = cumsum(A, 1); s = cumprod(A/3, 0); q = A[::-1, ::2]; r = A[[3, 0, 0]]", {"A": (6, 7)}),
    ("y = sum(where(A > 0, A**2, -A)); n = norm(A, axis=1); a = amax(A, axis=0)", {"A": (6, 7)}),
    ("y = max(A, dim=1); z = min(A, dim=0); w = det(A[:3, :3]); q = solve(A[:3, :3], A[3, :3])", {"A": (6, 7)}),
    ("y = x % z; w = floor(x*3); q = heaviside(x, 0.5); r = round(x*4); s = clamp(x, -.5, .5)", {"x": (3,), "z": (3,)}),
    ("y = sort(x); m = median(A, dim=1); w = sort(x, descending=True)", {"x": (7,), "A": (3, 5)}),
    ("e = median(A, dim=1)*median(A); t = topk(x, 2); m = median(z)*z", {"x": (7,), "A": (3, 4), "z": ()}),
    ("i = argsort(x); k = argmax(A, 1)*A[:, 0]; j = argmin(A, 0)", {"x": (7,), "A": (3, 5)}),
    ("i = argmax(x); s = i*x; k = argmin(A, 1)*A[:, 0]; m = max(x)", {"x": (40,), "A": (8, 9)}),
    ("y = cumsum(A, axis=0); z = cumprod(A, axis=1)*x; w = cummax(A, axis=1)*x", {"x": (9,), "A": (8, 9)}),
    ("y = cummax(x); z = cummin(A, axis=0)**2", {"x": (4,), "A": (3, 4)}),
    ("y = inv(A); d = det(A); s = solve(A, b); t = inv(A[:2, :2])", {"A": (5, 5), "b": (5,)}),
    ("s = solve(A, b); d = det(A[0])", {"A": (2, 4, 4), "b": (2, 4, 3)}),
    ("y = x*[1, 2, 3] + sum(W*[[1, 0], [0, 1]]); w = concatenate([[1, 2], x])", {"x": (3,), "W": (2, 2)}),
    ("z = [sin(2), a, 3]; y = permute(A, 2, 0, 1)", {"A": (2, 3, 4)}),
    ("y = where(not (1 < 2), a, lerp(x, z, 0.3))", {"x": (2,), "z": ()}),
    ("z = einsum('ijk,kl->lij', A, B); w = reshape(A, 6, 4); v = sum(A, axis=1)", {"A": (2, 3, 4), "B": (4, 2)}),
    ("y = sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", {"x": (60,)}),
]  # fmt: skip


@long
def test_larger_systems(to, tmp_path):
    what = ("value", "vjp", "jvp")
    compare(to, [made(to, text, shapes, what) for text, shapes in LARGER], tmp_path)


def test_special_functions(to, tmp_path):
    scipy = pytest.importorskip("scipy.special")  # by which the engine has them to the last digits
    points = np.array([-7.3, -2.5, -1.25, -0.5, 1e-3, 0.3, 1.0, 1.5, 2.7, 4.0, 9.5, 30.0])
    text = "y = gamma(x); l = lgamma(x); d = digamma(x); e = erf(x/3); c = erfc(x/3)"
    text += "; p = polygamma(1, x); q = polygamma(3, x); i = i0(x); j = i1(3*x)"
    text += "" if to == "jax" else "; z = zeta(3, x); w = zeta(2.5, x**2 + 1e-3) + zeta(180, x)*1e-300"
    file = made(to, text, {"x": points.shape}, ("value", "vjp"), at={"x": points})
    assert_allclose(file.program.functions[0].test[1]["d"], scipy.psi(points), rtol=1e-14)
    compare(to, [file], tmp_path)


def test_sparse_matrices(to, tmp_path):
    broyden = "y = (3 - 2*x)*x - concatenate([[0], x[:-1]]) - 2*concatenate([x[1:], [0]]) + 1"
    hilly = "L = sum(x**3) + x[0]*x[5]"
    files = [
        made(to, broyden, {"x": (50,)}, ("jacobian",), sparse=True),
        made(to, hilly, {"x": (6,)}, ("jacobian", "hessian"), sparse=True),
        made(to, "y = [a*x[0], b]", {"x": (2,)}, ("jacobian",), sparse=True),
    ]
    compare(to, files, tmp_path)


def exported_at_points(text, shapes, seed):
    """Run a NumPy file at points along a last axis, and compare with the engine there."""
    file = made("numpy", text, shapes, tuple(KINDS)[:4], seed=seed)
    names = {}
    exec(compile(file.text, "model.py", "exec"), names)
    for count in (1, 100):
        at_points(file, names, parse(text, **shapes), count)


def at_points(file, names, graph, count):
    """Compare the functions of a NumPy file, by their names, with the engine at random points."""
    text = "\n".join(file.program.system)
    random = np.random.default_rng(count)
    for f, kind in zip(file.program.functions, tuple(KINDS)[:4], strict=True):
        values = [random.uniform(0.3, 1.5, (*n.shape, count)) for n in f.arguments.values()]
        with np.errstate(all="ignore"):
            found = names[f.name](*values)
        found = found if isinstance(found, tuple) else (found,)
        if kind == "jacobian":
            at = dict(zip(graph.inputs, (v[..., -1] for v in values), strict=True))
            assert found[0].shape[2:] == (count,)
            expected = [numeric_jacobian(graph, list(graph.inputs), at)]
            found = [found[0][..., -1]]
        else:
            derived = KINDS[kind].graph(graph, list(graph.inputs))
            expected = list(evaluate(derived, dict(zip(derived.inputs, values, strict=True))).values())
            expected = [np.broadcast_to(e, (*e.shape[:-1], count)) for e in expected]
        for own, right in zip(found, expected, strict=True):
            assert np.shape(own) == right.shape, (f.name, text)
            scale = np.abs(right[np.isfinite(right)]).max(initial=0)
            assert_allclose(own, right, rtol=1e-12, atol=1e-12 * (1 + scale), err_msg=text)


@long
def test_numpy_takes_points_along_a_last_axis():
    for seed in SEEDS[::3]:
        exported_at_points(system(seed), SHAPES, seed)
    for text, shapes in LARGER:
        exported_at_points(text, shapes, 0)


RUNS = {"numpy": ([sys.executable], "py"), "c": ([], "c"), "javascript": (["node"], "mjs")}


def self_tested(to, text, folder):
    """Run a file's own test."""
    run, ending = RUNS[to]
    path = folder / f"model.{ending}"
    path.write_text(text, "utf-8")
    if to == "c":
        command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-DMODEL_TEST", str(path), "-lm"]
        path = folder / "model"
        subprocess.run([*command, "-o", str(path)], check=True)
    return subprocess.run([*run, str(path)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("own", RUNS)
def test_files_test_themselves(own, tmp_path):
    if not is_there(own):
        pytest.skip(f"there is nothing here that runs {own}")
    file = made(own, *LARGER[3], ("value", "vjp", "jvp", "jacobian"))
    done = self_tested(own, file.text, tmp_path)
    assert (done.returncode, done.stdout) == (0, "as gradcli has it\n"), done.stderr
    right = made(own, "y = x + 5", {}, ("value",)).text
    five = "x + 5;" if own == "javascript" else "x + 5.0"
    assert right.count(five) == 1
    done = self_tested(own, right.replace(five, five.replace("5", "6")), tmp_path)
    assert done.returncode == 1
    assert "where gradcli has" in done.stdout


@long
def test_large_arrays_in_c_are_not_on_the_stack(tmp_path):
    """The stack has 8 MB, and no thread but the first has more; the test of the file calls each function once more."""
    if not is_there("c"):
        pytest.skip("there is no C compiler here")
    n = 120_000
    text = f"y[i] = x[i]*(x[i-1] if i > 0 else 1) + (x[i+1]**2 if i < {n - 1} else 0) for i in 0..{n - 1}"
    file = made("c", f"{text}; z = sum(sin(y)*y)", {"x": (n,)}, ("vjp",)).text
    assert "static double t" in file
    assert "Its large arrays are static: only one thread may call it at a time." in file
    assert max(map(int, re.findall(r"^    double \w+\[(\d+)\]", file, re.MULTILINE)), default=0) <= 100_000
    done = self_tested("c", file, tmp_path)
    assert (done.returncode, done.stdout) == (0, "as gradcli has it\n"), done.stderr
    assert "static double" not in made("c", "y = x**2", {"x": (3,)}, ("jacobian",)).text


WORDS = [
    *("中", "ب", "か", "é", "ϵ", "x̂", "_", "__", "_Bool", "_X", "linux", "unix", "asm", "typeof", "isnan", "stderr"),
    *("M_PI", "NAN", "INFINITY", "true", "bool", "fs", "Number", "PI", "x1"),
]


@pytest.mark.parametrize("own", RUNS)
def test_any_name_of_an_input_is_a_name_there(own, tmp_path):
    if not is_there(own):
        pytest.skip(f"there is nothing here that runs {own}")
    text = "y = " + " + ".join(f"{k + 1}*{name}**2" for k, name in enumerate(WORDS))
    at = {unicodedata.normalize("NFKC", name): np.asarray(k + 0.5) for k, name in enumerate(WORDS)}
    file = made(own, text, {}, ("value", "vjp"), at=at)
    done = self_tested(own, file.text, tmp_path)
    assert (done.returncode, done.stdout) == (0, "as gradcli has it\n"), done.stderr


def test_the_names_of_c_are_reserved(tmp_path):
    if not is_there("c"):
        pytest.skip("there is no compiler here")
    command = ["cc", "-dM", "-E", "-include", "math.h", "-include", "stdio.h", "-"]
    macros = subprocess.run(command, input="", capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^#define ([A-Za-z]\w*)", macros, re.MULTILINE))
    assert names - c.RESERVED == set()
    assert len(names) > 20


def test_python_is_as_black_has_it(tmp_path):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    for to in ("numpy", "torch", "jax"):
        for k, (text, shapes) in enumerate([*LARGER, *((system(seed), SHAPES) for seed in SEEDS[::6])]):
            (tmp_path / f"{to}{k}.py").write_text(made(to, text, shapes, WHAT[:2]).text, "utf-8")
        file = made(to, "y = x**3*a + sin(x[::-1])", {"x": (40,)}, ("jacobian", "jvp"), sparse=True)
        (tmp_path / f"{to}.py").write_text(file.text, "utf-8")
    command = [str(ruff), "format", "--isolated", "--diff", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]
