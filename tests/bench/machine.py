"""The machine that the numbers are of, and a limit on its memory."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from gradcli.engine.compiled import cores

_PACKAGES = ["numpy", "llvmlite", "torch", "jax", "casadi", "autograd", "sympy"]
_SHARE = 0.75  # of the memory that is there


def limit_memory() -> None:
    """Let a competitor that needs too much memory fail, instead of the machine."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = int(_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def print_machine() -> None:
    """Print the processor and the versions, and how busy the machine is besides."""
    print(f"\n{_processor()}, {cores()} cores used; {platform.system()}, Python {platform.python_version()}")
    print(", ".join(f"{name} {_version(name)}" for name in _PACKAGES))
    if hasattr(os, "getloadavg"):
        print("load average over 1, 5 and 15 minutes: " + ", ".join(f"{load:.1f}" for load in os.getloadavg()))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
