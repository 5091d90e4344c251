"""gradcli explains gradients: what `y.backward(gradient)` does, with your numbers beside your formulas.

A system of statements is a graph; `vjp` maps it to the graph of its gradients; `evaluate` runs either in NumPy, and
`symbolic_jacobian` writes it in formulas.

>>> import numpy as np
>>> from gradcli import evaluate, parse, symbolic_jacobian, vjp
>>> graph = parse("y0 = 3*x0**2; y1 = x0**2 + 2*x1**3; y2 = 10*x1")
>>> symbolic_jacobian(graph).entries
{(0, 0): 6*x0, (1, 0): 2*x0, (1, 1): 6*x1**2, (2, 1): 10}
>>> point = {"x0": 1.0, "x1": 2.0, "y0.v": 1.0, "y1.v": 10.0, "y2.v": 100.0}
>>> grads = evaluate(vjp(graph), {name: np.array([value]) for name, value in point.items()})
>>> {name: value.tolist() for name, value in grads.items()}
{'x0.grad': [26.0], 'x1.grad': [1240.0]}
"""

from __future__ import annotations

from gradcli.version import VERSION as __version__

TYPE_CHECKING = False  # as in typing, whose import takes as long as a third of `gradcli --version`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gradcli.algebra.symbolic_jacobian import symbolic_jacobian
    from gradcli.api.differentiate import elementwise_grad, grad, jacobian, trace, value_and_grad
    from gradcli.api.recordings import recording
    from gradcli.api.systems import compile, evaluate, explain, export, hessian, jvp, numeric_jacobian, parse, vjp
    from gradcli.errors import InputError
    from gradcli.pages.check.verdicts import CheckResult

__all__ = [
    "InputError", "__version__", "check", "compile", "elementwise_grad", "evaluate", "explain", "export", "grad",
    "hessian", "jacobian", "jvp", "numeric_jacobian", "parse", "recording", "symbolic_jacobian", "trace",
    "value_and_grad", "vjp",
]  # fmt: skip

# The command imports this module before it hears Ctrl-C: what takes time comes later.
_LAZY = {
    **dict.fromkeys(
        ("compile", "evaluate", "explain", "export", "hessian", "jvp", "numeric_jacobian", "parse", "vjp"),
        "gradcli.api.systems",
    ),
    **dict.fromkeys(("elementwise_grad", "grad", "jacobian", "trace", "value_and_grad"), "gradcli.api.differentiate"),
    "InputError": "gradcli.errors",
    "recording": "gradcli.api.recordings",
    "symbolic_jacobian": "gradcli.algebra.symbolic_jacobian",
}


def __dir__() -> list[str]:
    return [*__all__]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gradcli' has no attribute '{name}'")
    import importlib

    if name == "symbolic_jacobian":
        from gradcli.api.notebook import show_jacobians

        show_jacobians()
    return getattr(importlib.import_module(_LAZY[name]), name)


def check(
    text: str | Callable[..., Any],
    gradient: Callable[..., Any] | None = None,
    *,
    tolerance: float = 1e-6,
    trials: int = 20,
    seed: int = 0,
    **shapes: Any,
) -> CheckResult:
    """Return whether the claims in a text about the derivatives of its system are right, as `gradcli check` does.

    `shapes` are those of the inputs, which are scalars otherwise.  The result has `right`, whether all claims are, and
    `verdicts`, one a claim; as text, and in a notebook, it is the page.  Its truth value is `right`.

    Instead of a text, `text` may be a Python function on NumPy arrays, and `gradient` a function that returns its
    derivatives by the parameters, in their order.  `shapes` may then hold values, at which they are checked.

    Errors: `InputError`, whose text shows the position.

    >>> found = check("f = x**2*y; df/dx = x*y; df/dy = x**2")
    >>> found.right, [(v.claim, v.verdict, v.why) for v in found.verdicts]
    (False, [('df/dx', 'wrong', 'in ∂f/∂x you wrote x: the derivative of x**2 is 2*x'), ('df/dy', 'right', '')])
    >>> check(lambda x: (x**2).sum(), lambda x: 2 * x, x=(3,)).right
    True
    """
    from gradcli.api.notebook import show_verdicts
    from gradcli.cli.commands.check_claims import checked_text, settings_of
    from gradcli.cli.inputs.gradient_functions import checked_functions
    from gradcli.errors import InputError

    show_verdicts()
    if isinstance(text, str) and gradient is not None:
        raise InputError("a text has its claims within it", hint='check("y = x**2; dy/dx = 2*x")')
    if not isinstance(text, str):
        return checked_functions(text, gradient, shapes, settings_of(tolerance, trials, seed))
    return checked_text(text, shapes, tolerance, trials, seed)


def load_ipython_extension(notebook: Any) -> None:
    """Add the magic `%%gradcli` to a notebook, as `%load_ext gradcli` asks for."""
    from gradcli.api.magic import register

    register(notebook)
