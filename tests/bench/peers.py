"""vᵀJ in other packages, each as its manual does it, from the same formulas and the same points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.compiled import cores
from tests.bench.problems import Problem
from tests.bench.race import Competitor, Ready

Array = np.ndarray[Any, Any]
Prepare = Callable[[Problem], Ready]

_FUNCTIONS = ("sqrt", "sin", "cos", "tanh")


def torch_vjp(problem: Problem, threads: int) -> Ready:
    """Return PyTorch as it is used without compilation: each run records the operations anew."""
    import torch

    values = {name: torch.from_numpy(a) for name, a in problem.arrays().items()}
    functions = {f: getattr(torch, f) for f in _FUNCTIONS} | {"sum": lambda t: t.sum(0)}
    v = [values[f"{y}.v"] for y in problem.outputs]

    def run() -> Any:
        torch.set_num_threads(threads)
        leaves = {x: values[x].detach().requires_grad_() for x in problem.wrt}
        return torch.autograd.grad(problem.evaluate({**values, **leaves}, functions), list(leaves.values()), v)

    return Ready(run, lambda grads: problem.named(g.numpy() for g in grads))


def jax_vjp(problem: Problem) -> Ready:
    """Return JAX with `jit(vjp)`, its arrays on the device already."""
    import jax

    jax.config.update("jax_enable_x64", True)
    values = {name: jax.device_put(a) for name, a in problem.arrays().items()}
    functions = {f: getattr(jax.numpy, f) for f in _FUNCTIONS} | {"sum": lambda a: a.sum(0)}
    leaves = [values[x] for x in problem.wrt]
    v = [values[f"{y}.v"] for y in problem.outputs]

    def pull(values: dict[str, Any], leaves: list[Any], v: list[Any]) -> Any:
        def outputs(leaves: list[Any]) -> list[Any]:
            return problem.evaluate({**values, **dict(zip(problem.wrt, leaves, strict=True))}, functions)

        return jax.vjp(outputs, leaves)[1](v)[0]

    rest = {name: a for name, a in values.items() if name not in problem.wrt and "." not in name}
    quick = jax.jit(pull)
    return Ready(
        lambda: jax.block_until_ready(quick(rest, leaves, v)), lambda grads: problem.named(map(np.asarray, grads))
    )


def autograd_vjp(problem: Problem) -> Ready:
    """Return HIPS autograd with `make_vjp`: each run records the operations anew."""
    import autograd.numpy as anp
    from autograd import make_vjp
    from autograd.builtins import tuple as a_tuple

    values = problem.arrays()
    functions = {f: getattr(anp, f) for f in _FUNCTIONS} | {"sum": lambda a: anp.sum(a, axis=0)}
    leaves = tuple(values[x] for x in problem.wrt)
    v = tuple(values[f"{y}.v"] for y in problem.outputs)

    def outputs(leaves: Any) -> Any:
        found = problem.evaluate({**values, **dict(zip(problem.wrt, leaves, strict=True))}, functions)
        return a_tuple(found)

    return Ready(lambda: make_vjp(outputs)(leaves)[0](v), problem.named)


def casadi_vjp(problem: Problem) -> Ready:
    """Return CasADi's function of one point, mapped over the points by threads, in its own layout, without copies."""
    import casadi

    values: dict[str, Any] = {n: casadi.SX(casadi.DM(np.atleast_2d(a))) for n, a in problem.same.items()}
    for name, a in problem.points.items():
        rows = 1 if problem.first else a[..., 0].size
        values[name] = casadi.SX.sym(name, rows, a[..., 0].size // rows)
    functions = {f: getattr(casadi, f) for f in _FUNCTIONS} | {"sum": casadi.sum1}
    y, x, v = (
        casadi.vertcat(*map(casadi.vec, parts))
        for parts in (
            problem.evaluate(values, functions),
            [values[x] for x in problem.wrt],
            [values[f"{y}.v"] for y in problem.outputs],
        )
    )
    inputs = casadi.vertcat(*(casadi.vec(values[name]) for name in problem.points))
    function = casadi.Function("vjp", [inputs], [casadi.jtimes(y, x, v, True)], {"cse": True})
    run = mapped(function, np.concatenate([a.reshape(-1, problem.count) for a in problem.points.values()]))

    def named(result: Array) -> dict[str, Array]:
        shapes = {x: problem.points[x].shape for x in problem.wrt}
        parts = np.split(result.T, np.cumsum([problem.points[x][..., 0].size for x in problem.wrt])[:-1])
        return {f"{x}.grad": p.reshape(shapes[x]) for x, p in zip(problem.wrt, parts, strict=True)}

    return Ready(run, named)


def mapped(function: Any, columns: Array) -> Any:
    """Return a run of CasADi's function over all points, in blocks: its map of all of them takes long to make.

    The number of points is a power of ten.
    """
    count = columns.shape[1]
    block = min(count, 100_000)
    buffer, evaluate = function.map(block, "thread", cores()).buffer()
    given = np.ascontiguousarray(columns.T)
    result = np.empty((count, function.nnz_out(0)))

    def run() -> Array:
        for start in range(0, count, block):
            buffer.set_arg(0, memoryview(given[start : start + block]))
            buffer.set_res(0, memoryview(result[start : start + block]))
            evaluate()
        return result

    return run


def lambdify_vjp(problem: Problem) -> Ready:
    """Return SymPy's formulas of vᵀJ as a NumPy function with common subexpressions."""
    import sympy

    arrays = {**problem.points, **{n: a[..., None] for n, a in problem.same.items()}}
    values: dict[str, Any] = {}
    for name, a in arrays.items():
        symbols = [sympy.Symbol(f"{name}_{i}".replace(".", "_"), real=True) for i in range(a[..., 0].size)]
        values[name] = np.array(symbols).reshape(a.shape[:-1]) if a.ndim > 1 else symbols[0]
    functions = {f: _of_arrays(getattr(sympy, f)) for f in _FUNCTIONS} | {"sum": lambda a: sympy.Add(*a)}
    outputs = problem.evaluate(values, functions)
    loss = sympy.Add(*(np.sum(y * values[f"{name}.v"]) for name, y in zip(problem.outputs, outputs, strict=True)))
    gradient = [loss.diff(x) for name in problem.wrt for x in np.ravel(values[name])]
    function = sympy.lambdify([x for a in values.values() for x in np.ravel(a)], gradient, "numpy", cse=True)
    rows = [row for a in arrays.values() for row in a.reshape(-1, a.shape[-1])]

    def named(found: list[Array]) -> dict[str, Array | list[Array]]:
        rest = iter(found)
        sizes = {x: problem.points[x].shape[:-1] for x in problem.wrt}
        return {f"{x}.grad": [next(rest) for _ in range(size[0])] if size else next(rest) for x, size in sizes.items()}

    return Ready(lambda: function(*rows), named)


def _of_arrays(function: Any) -> Any:
    """Return a function of SymPy that also takes arrays."""
    many = np.vectorize(function, otypes=[object])
    return lambda x: many(x) if isinstance(x, np.ndarray) else function(x)


TORCH, TORCH_ALONE = "PyTorch eager", "PyTorch eager, 1 thread"
AUTOGRAD, LAMBDIFY = "HIPS autograd", "SymPy lambdify(cse=True)"


def peers(
    torch: Callable[..., Ready],
    jax: Prepare,
    casadi: Prepare,
    autograd: Prepare,
    lambdify: Prepare,
    product: str = "vjp",
) -> list[Competitor]:
    """Return the packages with what each does; `product` is the one that JAX compiles."""
    return [
        Competitor(TORCH, partial(torch, threads=cores()), "torch"),
        # Two of its threads on one core wait for each other, on a machine that is busy otherwise.
        Competitor(TORCH_ALONE, partial(torch, threads=1), "torch"),
        Competitor(f"JAX jit({product})", jax, "jax"),
        Competitor("CasADi", casadi, "casadi"),
        Competitor(AUTOGRAD, autograd, "autograd"),
        Competitor(LAMBDIFY, lambdify, "sympy"),
    ]


PEERS = peers(torch_vjp, jax_vjp, casadi_vjp, autograd_vjp, lambdify_vjp)
