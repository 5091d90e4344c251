"""Exported C beside the C that CasADi generates: nanoseconds a call, of functions that one compiler compiled alike."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from gradcli import parse
from gradcli.codegen import c
from gradcli.codegen.program import Request, program
from tests.bench.problems import BUNDLE_ADJUSTMENT
from tests.bench.session import Session
from tests.bench.tables import title

FLAGS = ("-O3", "-march=native", "-std=c99")
_POINTS = 256
_ROUNDS = 200  # of which the fastest counts: all calls of one, then all of the other

# The rotation of a vector v by a quaternion q of any length.
QUATERNION = """
s = 2/(q[0]**2 + q[1]**2 + q[2]**2 + q[3]**2)
a0 = q[2]*v[2] - q[3]*v[1] + q[0]*v[0]
a1 = q[3]*v[0] - q[1]*v[2] + q[0]*v[1]
a2 = q[1]*v[1] - q[2]*v[0] + q[0]*v[2]
y = [v[0] + s*(q[2]*a2 - q[3]*a1), v[1] + s*(q[3]*a0 - q[1]*a2), v[2] + s*(q[1]*a1 - q[2]*a0)]
"""
# The numbers of a camera and of a point as vectors, which is how a program has them.
_VECTORS = re.sub(r"\b(r|C|X|x|a|seen)(\d)\b", r"\1[\2]", re.sub(r"\bm(\d)", r"seen\1", BUNDLE_ADJUSTMENT))


@dataclass(frozen=True)
class Case:
    """A system with three outputs `y`, the sizes of its inputs (0 of a number), and the limits of their values."""

    name: str
    text: str
    sizes: Mapping[str, int]
    limits: Mapping[str, tuple[float, float]]


CASES = (
    Case(
        "bundle adjustment",
        f"{_VECTORS}y = [e0, e1, e2]",
        {"r": 3, "C": 3, "f": 0, "x": 2, "a": 2, "X": 3, "w": 0, "seen": 2},
        {"r": (0.1, 0.5), "f": (300, 600), "a": (-0.1, 0.1), "X": (4, 8)},
    ),
    Case("quaternion rotation", QUATERNION, {"q": 4, "v": 3}, {}),
)


def calls(session: Session) -> None:
    """Time a call of each function."""
    title(f"exported C, {' '.join(FLAGS)}: nanoseconds a call")
    print(f"  {'':32} {'gradcli':>10} {'CasADi':>10} {'ratio':>8}")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for kind, mine, peer in timed(case, Path(folder)):
                print(f"  {f'{case.name}, {kind}':32} {mine:>10.1f} {peer:>10.1f} {peer / mine:>8.2f}", flush=True)


def timed(case: Case, folder: Path) -> list[tuple[str, float, float]]:
    """Return for each kind of function the time of a call of gradcli's and of CasADi's."""
    graph = parse(case.text, **{n: (k,) for n, k in case.sizes.items() if k})
    reserved = c.RESERVED | {"model"}
    request = Request("model", ("value", "vjp", "jacobian"), list(case.sizes), None, True, reserved, True)
    (folder / "model.c").write_text(c.source(program(graph, (), request)))
    (folder / "peer.c").write_text(_casadi(case, folder))
    (folder / "main.c").write_text(_harness(case, list(graph.inputs)))
    objects = []
    for name in ("model", "peer", "main"):
        objects.append(str(folder / f"{name}.o"))
        define = "-D_POSIX_C_SOURCE=199309L"
        subprocess.run(["cc", *FLAGS, define, "-c", str(folder / f"{name}.c"), "-o", objects[-1]], check=True)
    subprocess.run(["cc", *objects, "-lm", "-o", str(folder / "main")], check=True)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True)
    rows = []
    for line in done.stdout.splitlines():
        kind, mine, peer, apart = line.split()
        if not float(apart) < 1e-9:
            raise AssertionError(f"{case.name}, {kind}: the results are {apart} apart")
        rows.append((kind, float(mine), float(peer)))
    return rows


def _casadi(case: Case, folder: Path) -> str:
    """Return the C that CasADi generates for the same formulas, of the same arguments."""
    import casadi

    inputs = {name: casadi.SX.sym(name, size or 1) for name, size in case.sizes.items()}
    values = {**inputs, **{f: getattr(casadi, f) for f in ("sin", "cos", "sqrt")}}
    exec(compile(case.text, case.name, "exec"), values)
    x, y = casadi.vertcat(*inputs.values()), casadi.vertcat(*values["y"])
    v = casadi.SX.sym("v", 3)
    gradients = casadi.vertsplit(casadi.jtimes(y, x, v, True), [0, *accumulate(i.numel() for i in inputs.values())])
    results = {
        "value": ([], [y]),
        "vjp": ([v], gradients),
        "jacobian": ([], [casadi.jacobian(y, x).T]),  # row after row, as C has matrices
    }
    code = casadi.CodeGenerator("peer.c")
    for kind, (more, found) in results.items():
        code.add(casadi.Function(f"peer_{kind}", [*inputs.values(), *more], found, {"cse": True}))
    code.generate(f"{folder}/")
    return (folder / "peer.c").read_text()


def _harness(case: Case, order: list[str]) -> str:
    """Return a program that prints for each kind the times of both, and how far their results are apart."""
    random = np.random.default_rng(0)
    count = sum(size or 1 for size in case.sizes.values())
    limits = [case.limits.get(name, (0.2, 1.5)) for name, size in case.sizes.items() for _ in range(size or 1)]
    points = random.uniform(*np.transpose(limits), (_POINTS, count))
    starts = dict(zip(case.sizes, accumulate((size or 1 for size in case.sizes.values()), initial=0), strict=False))
    own = [f"p + {starts[n]}" if case.sizes[n] else f"p[{starts[n]}]" for n in order]
    places = {name: f"p + {start}" for name, start in starts.items()}
    results = {
        "value": ["0"],
        "vjp": [str(starts[n]) for n in order],
        "jacobian": ["0"],
    }
    names = {"value": "model", "vjp": "model_vjp", "jacobian": "model_jacobian"}
    declared, body = [], []
    for kind, name in names.items():
        arguments = [*own, *(["v"] if kind == "vjp" else []), *(f"a + {start}" for start in results[kind])]
        types = ["double" if argument.startswith("p[") else "const double *" for argument in arguments]
        types[-len(results[kind]) :] = ["double *"] * len(results[kind])
        declared.append(f"void {name}({', '.join(types)});")
        declared.append(f"int peer_{kind}(const double **, double **, long long *, double *, int);")
        given = ", ".join([*places.values(), *(["v"] if kind == "vjp" else [])])
        outs = [f"b + {start}" for start in (starts.values() if kind == "vjp" else ["0"])]
        peer = f"const double *in[] = {{{given}}}; double *out[] = {{{', '.join(outs)}}}; "
        body += _measured(kind, f"{name}({', '.join(arguments)});", f"{peer}peer_{kind}(in, out, 0, 0, 0);")
    numbers = ", ".join(repr(float(value)) for value in points.flat)
    return _MAIN.format(points=_POINTS, count=count, numbers=numbers, declared="\n".join(declared), body="".join(body))


_MAIN = """\
#include <math.h>
#include <stdio.h>
#include <time.h>

{declared}
static const double points[{points}][{count}] = {{{numbers}}};

static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}}

int main(void)
{{
    double a[64] = {{0}}, b[64] = {{0}}, v[3] = {{0.3, -0.7, 1.1}};
    {body}
    return 0;
}}
"""


def _measured(kind: str, mine: str, peer: str) -> list[str]:
    each = f"for (int k = 0; k < {_POINTS}; k++) {{{{ const double *p = points[k]; {{}} }}}}"
    timed = "start = now(); {} took = (now() - start) / POINTS; if (took < {}) {} = took;".replace(
        "POINTS", str(_POINTS)
    )
    return [
        "{ double start, took, mine = 1e18, peer = 1e18, apart = 0;\n",
        f"for (int round = 0; round < {_ROUNDS}; round++) {{\n",
        timed.format(each.format(mine), "mine", "mine") + "\n",
        timed.format(each.format(peer), "peer", "peer") + "}\n",
        "for (int k = 0; k < 64; k++) apart = fmax(apart, fabs(a[k] - b[k]) / (1 + fabs(b[k])));\n",
        f'printf("{kind} %.2f %.2f %.3g\\n", mine, peer, apart); }}\n',
    ]
