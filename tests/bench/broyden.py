"""Broyden's tridiagonal function, and its sparse Jacobian in other packages.

Columns (or rows) of a tridiagonal matrix that are three apart share no entry: JAX, PyTorch and autograd, which have
dense Jacobians, get all entries from three products (JAX: Ju, the others: vᵀJ), coloured by hand as their users do it.
CasADi finds the colours itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.graph.jacobian import jacobian
from tests.bench.peers import mapped, peers
from tests.bench.problems import Problem
from tests.bench.race import Ready

Array = np.ndarray[Any, Any]

_COLOURS = 3


def broyden(n: int) -> str:
    """Return Broyden's tridiagonal function (More, Garbow, Hillstrom 1981, problem 30) as a system."""
    lines = []
    for i in range(n):
        below = f" - x{i - 1}" if i else ""
        above = f" - 2*x{i + 1}" if i < n - 1 else ""
        lines.append(f"y{i} = (3 - 2*x{i})*x{i}{below}{above} + 1")
    return "\n".join(lines)


def broyden_jacobian(n: int, count: int) -> Problem:
    """Return the Jacobian of Broyden's function of n variables."""
    random = np.random.default_rng(4)
    points = {f"x{i}": random.uniform(-1, 1, count) for i in range(n)}
    return Problem(f"Broyden, n = {n:,}", broyden(n), tuple(points), points, derivative=jacobian)


def _entries(n: int) -> Iterator[tuple[int, int]]:
    for i in range(n):
        yield from ((i, j) for j in range(max(0, i - 1), min(n, i + 2)))


def _values(x: Any, padded: Any) -> Any:
    """Return the function of all variables at once; `padded` is x between zeros."""
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


def _seeds(n: int, count: int) -> list[Array]:
    return [np.repeat((np.arange(n) % _COLOURS == c)[:, None], count, 1).astype(float) for c in range(_COLOURS)]


def _by_rows(products: list[Array]) -> dict[str, Array]:
    """Return the entries in the products vᵀJ."""
    n = len(products[0])
    return {f"dy{i}/dx{j}": products[i % _COLOURS][j] for i, j in _entries(n)}


def _by_columns(products: list[Array]) -> dict[str, Array]:
    """Return the entries in the products Ju."""
    n = len(products[0])
    return {f"dy{i}/dx{j}": products[j % _COLOURS][i] for i, j in _entries(n)}


def _torch(problem: Problem, threads: int) -> Ready:
    import torch

    data = torch.from_numpy(np.stack(list(problem.points.values())))
    seeds = [torch.from_numpy(s) for s in _seeds(*data.shape)]

    def run() -> Any:
        torch.set_num_threads(threads)
        x = data.detach().requires_grad_()
        y = _values(x, torch.nn.functional.pad(x, (0, 0, 1, 1)))
        return [torch.autograd.grad(y, x, s, retain_graph=True)[0] for s in seeds]

    return Ready(run, lambda products: _by_rows([p.numpy() for p in products]))


def _jax(problem: Problem) -> Ready:
    import jax

    jax.config.update("jax_enable_x64", True)
    data = jax.device_put(np.stack(list(problem.points.values())))
    seeds = jax.device_put(np.stack(_seeds(*data.shape)))

    def products(x: Any, seeds: Any) -> Any:
        def function(x: Any) -> Any:
            return _values(x, jax.numpy.pad(x, ((1, 1), (0, 0))))

        return jax.vmap(lambda s: jax.jvp(function, (x,), (s,))[1])(seeds)

    quick = jax.jit(products)
    return Ready(lambda: jax.block_until_ready(quick(data, seeds)), lambda found: _by_columns(list(np.asarray(found))))


def _casadi(problem: Problem) -> Ready:
    import casadi

    x = casadi.SX.sym("x", len(problem.wrt))
    matrix = casadi.jacobian(_values(x, casadi.vertcat(0, x, 0)), x)
    rows, columns = matrix.sparsity().get_triplet()
    names = [f"dy{i}/dx{j}" for i, j in zip(rows, columns, strict=True)]
    run = mapped(casadi.Function("jacobian", [x], [matrix]), np.stack(list(problem.points.values())))
    return Ready(run, lambda found: dict(zip(names, found.T, strict=True)))


def _autograd(problem: Problem) -> Ready:
    import autograd.numpy as anp
    from autograd import make_vjp

    data = np.stack(list(problem.points.values()))
    seeds = _seeds(*data.shape)
    margin = np.zeros((1, problem.count))

    def run() -> list[Array]:
        pull, _ = make_vjp(lambda x: _values(x, anp.concatenate([margin, x, margin])))(data)
        return [pull(s) for s in seeds]

    return Ready(run, _by_rows)


def _lambdify(problem: Problem) -> Ready:
    import sympy

    n = len(problem.wrt)
    x = np.array(sympy.symbols(f"x0:{n}"))
    y = _values(x, np.array([0, *x, 0]))
    function = sympy.lambdify(list(x), [y[i].diff(x[j]) for i, j in _entries(n)], "numpy", cse=True)
    names = [f"dy{i}/dx{j}" for i, j in _entries(n)]
    rows = list(problem.points.values())
    return Ready(lambda: function(*rows), lambda found: dict(zip(names, map(np.atleast_1d, found), strict=True)))


PEERS = peers(_torch, _jax, _casadi, _autograd, _lambdify, "jvp")
