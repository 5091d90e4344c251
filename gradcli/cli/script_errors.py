"""Why a script's backward failed, in the script's own names and lines, and the smallest change that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.pytorch.session import Script


def why(error: BaseException, script: Script) -> str:
    """Return what happened and what mends it, or nothing where PyTorch's message says all."""
    return ""
