"""Record which names PyTorch has: `python tests/pytorch/record_names.py > gradcli/pytorch/names.txt`."""

from __future__ import annotations

import importlib
import textwrap
from types import ModuleType

import torch

MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.autograd", "torch.optim"),
    *("torch.optim.lr_scheduler", "torch.func", "torch.linalg", "torch.utils", "torch.utils.data", "torch.testing"),
    *("torch.autograd.functional", "torch.cuda", "torch.special"),
    *("torch.distributions", "torch.autograd.forward_ad"),
)


def public(owner: object) -> list[str]:
    """Return what is there for scripts."""
    own = getattr(owner, "__name__", "")
    return [n for n in dir(owner) if not n.startswith("_") and not _elsewhere(getattr(owner, n, None), own)]


def _elsewhere(value: object, own: str) -> bool:
    """Tell whether a name is that of a module of another library, or of the interpreter's."""
    return isinstance(value, ModuleType) and not value.__name__.startswith("torch")


def main() -> None:
    """Print the names, a module each part."""
    owners = [
        ("Tensor", torch.Tensor),
        ("torch.nn.Module", torch.nn.Module),
        *((m, importlib.import_module(m)) for m in MODULES),
    ]
    print("\n\n".join(f"{name}:\n{textwrap.fill(' '.join(public(owner)), 110)}" for name, owner in owners))


if __name__ == "__main__":
    main()
