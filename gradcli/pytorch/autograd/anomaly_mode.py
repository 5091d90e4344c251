"""`torch.autograd.anomaly_mode`: the search for nan in gradients."""

from __future__ import annotations

from gradcli.pytorch.messages import warn
from gradcli.pytorch.modes import _Lasting, _Switch


class set_detect_anomaly(_Lasting):
    """Search for nan in gradients."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=bool(mode), check_nan=bool(check_nan))


class detect_anomaly(_Switch):
    """Search for nan in gradients in a block."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(anomaly=True, check_nan=bool(check_nan))
        warn("anomaly detection")
