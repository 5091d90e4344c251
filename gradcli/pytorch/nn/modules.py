"""`torch.nn`'s modules that are but rows of `modules.txt`: each holds the settings of a function, or of its base."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.dispatch import NN
from gradcli.pytorch.functions import schema_of
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.nn import functional as F
from gradcli.pytorch.nn import layers, windows
from gradcli.pytorch.nn.layers import _Layer
from gradcli.pytorch.nn.losses import reduction_of
from gradcli.pytorch.nn.table import Row, parameters, rows
from gradcli.pytorch.nn.windows import several


class _Pool(_Layer):
    stride: Any

    def _build(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size
        if self.calls[0] == "avg_pool1d" or self.calls[0].startswith("max_unpool"):
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, tuple(several(getattr(self, name), self.axes)))


class _Pad(_Layer):
    """Numbers around the last axes."""

    padding: Any

    def _build(self) -> None:
        self.padding = tuple(several(self.padding, 2 * self.axes))

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode, getattr(self, "value", None))


class _Hardtanh(_Layer):
    def _build(self) -> None:
        raise_if(self.max_val <= self.min_val, "bounds of a Hardtanh", self.max_val, self.min_val)


class _Loss(_Layer):
    """A loss, whose reduction may be an old pair of arguments."""

    reduction: str

    def _build(self) -> None:
        old = [self.__dict__.pop(k, self._buffers.pop(k, None)) for k in ("size_average", "reduce")]
        if any(x is not None for x in old):
            self.reduction = reduction_of(old[0], old[1], self.reduction)

    def forward(self, *args: Any, **more: Any) -> Any:
        try:
            return super().forward(*args, **more)
        except TypeError as error:
            _, missing, rest = str(error).partition("() missing ")
            if missing:
                raise TypeError(f"{type(self).__name__}.forward{missing}{rest}") from None
            raise


def _settings(function: str) -> dict[str, Any]:
    """Return the settings of a module with their defaults: what its function is given behind the operands."""
    arguments = schema_of(function, NN).overloads[0].arguments
    rest = [a for a in arguments if not (a.is_required and a.type in ("Tensor", "Any"))]
    settings = {a.name: a.value for a in rest if a.name not in ("out", "dtype", "_stacklevel")}
    if {"return_indices", "ceil_mode"} <= settings.keys():
        settings["ceil_mode"] = settings.pop("ceil_mode")  # which a module has last
    return settings


def __getattr__(name: str) -> type:
    """Return a module, which is made of its row, and of its function's signature, at its first use."""
    row = rows().get(name)
    if row is None or not (row.calls or row.base) or name == row.base:
        raise AttributeError(name)
    globals()[name] = result = _based(name, row) if row.base else _of_function(name, row)
    return result


def _based(name: str, row: Row) -> type:
    """Return a module that is its base, with the axes and the function that are its own."""
    base = getattr(layers, row.base, None) or getattr(windows, row.base)
    return type(name, (base,), {"__doc__": f"`torch.nn.{name}`."})


def _of_function(name: str, row: Row) -> type:
    """Return a module that holds the settings of a function."""
    known = _settings(row.calls[0]) if row.takes is None else parameters(row.takes)
    base = {"loss": _Loss, "padding": _Pad}.get(row.home, _Pool if "stride" in known else _Layer)
    base = _Hardtanh if name == "Hardtanh" else base
    cls: Any = type(name, (base,), {"__doc__": f"`torch.nn.{name}`."})
    cls.takes = known
    given = row.calls if len(row.calls) > 1 else [*row.calls, *known]
    cls.calls = tuple(k for k in given if k not in ("size_average", "reduce"))
    if row.shows is None and base is not _Loss:
        cls.shows = " ".join(known).replace("inplace", "inplace?").replace("approximate", "approximate!")
    return cls
