"""ADBench's Gaussian mixture model: the gradient of its log-likelihood by all parameters, in one call.

Source: F. Srajer, Z. Kukelova, A. Fitzgibbon, "A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning" (2018); the sample `gaussian_mixture.grad` is its formula in small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.compiled import cores
from tests.bench.own import ENGINES, NUMPY
from tests.bench.peers import AUTOGRAD, TORCH, TORCH_ALONE
from tests.bench.problems import Problem
from tests.bench.race import Competitor, Ready, race
from tests.bench.session import Session
from tests.bench.tables import print_rows, title

Array = np.ndarray[Any, Any]

AT_ONE_POINT = [e for e in ENGINES if e.package == "numpy"]  # LLVM makes loops over points
WRT = ("alphas", "means", "q", "l")
GAMMA, M = 1, 0  # of the prior

_TEXT = """
below = concatenate([0*alphas[:, None], l], axis=1)[:, {places}]
c = x[:, None, :] - means
r = exp(q)*c + einsum("kij,nkj->nki", below, c)
main = alphas + sum(q, axis=1) - sum(r**2, axis=2)/2
likelihood = sum(logsumexp(main, axis=1)) - {n}*logsumexp(alphas, axis=0) - {n}*{d}*log(2*pi)/2
norm = {f}*{d}*(log({gamma}) - log(2)/2) - {d}*({d} - 1)*log(pi)/4 - ({lgammas})
prior = {gamma}**2*(sum(exp(q)**2) + sum(l**2))/2 - {m}*sum(q) - {k}*norm
L = likelihood + prior
"""


def places(d: int) -> list[list[int]]:
    """Return where the numbers of a lower triangle stand, column by column from 1; 0 where there is none.

    >>> places(3)
    [[0, 0, 0], [1, 0, 0], [2, 3, 0]]
    """
    found = np.zeros((d, d), dtype=int)
    found.T[np.triu_indices(d, 1)] = range(1, d * (d - 1) // 2 + 1)
    return found.tolist()


def mixture(d: int = 10, k: int = 25, n: int = 1000) -> Problem:
    """Return the model of n observations in d dimensions by k normal distributions."""
    random = np.random.default_rng(5)
    f = d + M + 1
    lgammas = " + ".join(f"lgamma({f - j}/2)" for j in range(d))
    text = _TEXT.format(places=places(d), d=d, k=k, n=n, f=f, gamma=GAMMA, m=M, lgammas=lgammas)
    points = {
        "alphas": random.normal(size=(k, 1)),
        "means": random.uniform(size=(k, d, 1)),
        "q": random.normal(size=(k, d, 1)) / 2,
        "l": random.normal(size=(k, d * (d - 1) // 2, 1)) / 2,
        "L.v": np.ones(1),
    }
    return Problem("Gaussian mixture", text, WRT, points, {"x": random.normal(size=(n, d))}, agreement=1e-10)


def loss(of: Mapping[str, Callable[..., Any]], x: Any, alphas: Any, means: Any, q: Any, l: Any) -> Any:  # noqa: E741
    """Return the log-likelihood by the functions of a package, but for what does not depend on the parameters."""
    n, d = x.shape
    below = of["concatenate"]([0 * alphas[:, None], l])[:, np.array(places(d))]
    c = x[:, None, :] - means
    r = of["exp"](q) * c + of["einsum"]("kij,nkj->nki", below, c)
    main = alphas + of["sum"](q, 1) - of["sum"](r**2, 2) / 2
    likelihood = of["logsumexp"](main, 1).sum() - n * of["logsumexp"](alphas, 0)
    return likelihood + GAMMA**2 * ((of["exp"](q) ** 2).sum() + (l**2).sum()) / 2 - M * q.sum()


def _parameters(problem: Problem) -> list[Array]:
    return [problem.points[name][..., 0] for name in WRT]


def _named(gradients: Any) -> dict[str, Array]:
    return {f"{name}.grad": np.asarray(g)[..., None] for name, g in zip(WRT, gradients, strict=True)}


def torch_gradient(problem: Problem, threads: int) -> Ready:
    """Return PyTorch as it is used without compilation."""
    import torch

    of = {"exp": torch.exp, "einsum": torch.einsum, "sum": torch.sum, "logsumexp": torch.logsumexp}
    of["concatenate"] = partial(torch.cat, dim=1)
    x = torch.from_numpy(problem.same["x"])
    leaves = [torch.from_numpy(a).requires_grad_() for a in _parameters(problem)]

    def run() -> Any:
        torch.set_num_threads(threads)
        return torch.autograd.grad(loss(of, x, *leaves), leaves)

    return Ready(run, _named)


def jax_gradient(problem: Problem) -> Ready:
    """Return JAX with `jit(grad)`."""
    import jax

    jax.config.update("jax_enable_x64", True)
    of = {name: getattr(jax.numpy, name) for name in ("exp", "einsum", "sum")}
    of |= {"logsumexp": jax.scipy.special.logsumexp, "concatenate": partial(jax.numpy.concatenate, axis=1)}
    quick = jax.jit(jax.grad(partial(loss, of), argnums=(1, 2, 3, 4)))
    given = [jax.device_put(a) for a in (problem.same["x"], *_parameters(problem))]
    return Ready(lambda: jax.block_until_ready(quick(*given)), _named)


def autograd_gradient(problem: Problem) -> Ready:
    """Return HIPS autograd."""
    import autograd.numpy as anp
    from autograd import grad
    from autograd.scipy.special import logsumexp

    of = {name: getattr(anp, name) for name in ("exp", "einsum", "sum")}
    of |= {"logsumexp": logsumexp, "concatenate": partial(anp.concatenate, axis=1)}
    gradient = grad(partial(loss, of), argnum=(1, 2, 3, 4))
    return Ready(lambda: gradient(problem.same["x"], *_parameters(problem)), _named)


PEERS = [
    Competitor(TORCH, partial(torch_gradient, threads=cores()), "torch"),
    Competitor(TORCH_ALONE, partial(torch_gradient, threads=1), "torch"),
    Competitor("JAX jit(grad)", jax_gradient, "jax"),
    Competitor(AUTOGRAD, autograd_gradient, "autograd"),
]


def gradient(session: Session) -> None:
    """Race at one gradient by all parameters, equal to ten digits."""
    d, k, n = 10, 25, session.points(1000)
    problem = mixture(d, k, n)
    title(
        f"ADBench's Gaussian mixture, d = {d}, k = {k}, n = {n:,}: gradient by {k * (d + 1) * (d + 2) // 2:,} numbers"
    )
    rows = race(problem, [*AT_ONE_POINT, *PEERS])
    print_rows(rows, NUMPY)
    session.check(rows)
