"""Finding names: a function or method that is but a row of the vocabulary is found there by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from gradcli.pytorch.calls import vocabulary_call
from gradcli.pytorch.missing import missing
from gradcli.pytorch.operations.definitions import ELEMENTWISE
from gradcli.pytorch.registry import with_out
from gradcli.pytorch.tensor import Tensor
from gradcli.vocabulary import FUNCTIONS


def _named(name: str, module: str) -> Callable[..., Any] | None:
    """Return a function that is a row of the vocabulary, or is defined in one line, where PyTorch has the name."""
    build = ELEMENTWISE.get(name) or FUNCTIONS.get(name)
    if build is None or name not in pytorch_names()[module]:
        return None

    def function(*args: Any, **kwargs: Any) -> Tensor:
        return vocabulary_call(name, build, (kwargs.pop("input"), *args) if "input" in kwargs else args, kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def function_named(name: str) -> Callable[..., Any] | None:
    """Return a function of `torch` that is a method of tensors, too, or is found by its name as methods are."""
    if name not in pytorch_names()["torch"]:
        return None
    found = vars(Tensor).get(name) or method_named(name)
    found = found if callable(found) else _named(name, "torch")
    return found and with_out(found, name)


def functional_named(name: str) -> Callable[..., Any] | None:
    """Return a function of `torch.nn.functional` that is found by its name."""
    return _named(name, "torch.nn.functional")


def method_named(name: str) -> Callable[..., Any] | None:
    """Return a method of tensors that is found by its name: a row, or what is done in place."""
    found, base = _named(name, "Tensor"), name.removesuffix("_")
    if found is None and base != name and not name.startswith("_") and (vars(Tensor).get(base) or method_named(base)):
        from gradcli.pytorch.operations.inplace import in_place

        found = in_place(name)
    return found


def method(x: Tensor | type[Tensor], name: str) -> Any:
    """Return a method that is found by its name, and keep it where it is found from now on.

    Errors: `MissingError` for one that there is not; `AttributeError` for what Python asks for by itself.
    """
    owner = f"type object '{x.__name__}'" if isinstance(x, type) else f"'{type(x).__name__}' object"
    if name.startswith("__") or name in _QUIET:
        raise AttributeError(f"{owner} has no attribute '{name}'")
    found = method_named(name)
    if found is None:
        if name not in pytorch_names()["Tensor"]:
            raise AttributeError(f"{owner} has no attribute '{name}'")
        raise missing(name, [n for n in dir(Tensor) if not n.startswith("_")] + sorted(FUNCTIONS), "Tensor.")
    setattr(Tensor, name, found)
    return getattr(x, name)


# What libraries look for on any object.
_QUIET = frozenset(("_repr_html_", "_ipython_display_", "_repr_pretty_", "shape_", "_modules", "_parameters"))


@cache
def pytorch_names() -> dict[str, frozenset[str]]:
    """Return the names that PyTorch 2.13 has, as tests/pytorch/record_names.py has recorded them."""
    parts = Path(__file__).with_name("names.txt").read_text("utf-8").split("\n\n")
    return {module.rstrip(":"): frozenset(names) for module, *names in map(str.split, parts)}


def absent(module: str, name: str, known: Iterable[str]) -> BaseException:
    """Return the error for a name that a module of gradcli's does not have: a slip, as PyTorch tells it, or a gap."""
    if name.startswith("__") or name not in pytorch_names().get(module, (name,)):
        return AttributeError(f"module '{module}' has no attribute '{name}'")
    return missing(name, [n for n in known if not n.startswith("_")], f"{module}.")
