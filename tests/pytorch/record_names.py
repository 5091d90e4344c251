"""Record which names PyTorch has: `python tests/pytorch/record_names.py > gradcli/pytorch/names.txt`."""

from __future__ import annotations

import importlib
import re
import textwrap
from types import ModuleType

import torch

MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.autograd", "torch.optim"),
    *("torch.optim.lr_scheduler", "torch.func", "torch.linalg", "torch.utils", "torch.utils.data", "torch.testing"),
    *("torch.autograd.functional", "torch.cuda", "torch.special"),
    *("torch.distributions", "torch.autograd.forward_ad"),
)


OTHERS = ("typing", "collections", "functools", "_bisect", "_weakref", "__future__", "contextlib", "weakref")
# Kernels of other libraries, and functions that the compiler puts in.
INNER = re.compile(r"(batch_norm|cudnn|fake_quantize|fbgemm|miopen|mkldnn|native|q|quantized|unsafe)_.*|.*_copy")


def public(owner: object) -> list[str]:
    """Return what is there for scripts."""
    return [n for n in dir(owner) if not n.startswith("_") and not _is_inner(n, getattr(owner, n, None))]


def _is_inner(name: str, value: object) -> bool:
    """Tell whether a name is that of a module or a class of another library, of a kernel, or of TorchScript's type."""
    if isinstance(value, ModuleType):
        return value is torch or not value.__name__.startswith("torch")
    if INNER.fullmatch(name) and not hasattr(torch.Tensor, name):
        return True
    home = getattr(value, "__module__", None) or ""
    is_undocumented = home == "torch" and isinstance(value, type) and not str(value.__doc__ or "").strip()
    is_data = name.endswith(("Tensor", "Storage")) or not name[0].isupper() or name in ("Generator", "Size")
    return name == "TYPE_CHECKING" or home.startswith(OTHERS) or (is_undocumented and not is_data)


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
