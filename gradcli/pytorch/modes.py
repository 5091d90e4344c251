"""Whether operations are recorded: `no_grad`, `enable_grad`, `inference_mode`; and anomaly detection."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar


class _Mode(threading.local):
    """What holds now, in each thread for itself."""

    grad = True
    inference = False
    anomaly = False
    check_nan = True
    mapped = False  # in a `vmap` that has more elements to come, which go through the same graph
    warned: ClassVar[set[Any]] = set()  # what is told once


Mode = _Mode()


class _Switch:
    """A context that sets some of it, and a decorator that does so for each call of a function."""

    def __init__(self, **wanted: bool) -> None:
        self.wanted = wanted
        self.before: list[dict[str, bool]] = []

    def __enter__(self) -> None:
        self.before.append({name: getattr(Mode, name) for name in self.wanted})
        for name, value in self.wanted.items():
            setattr(Mode, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.pop().items():
            setattr(Mode, name, value)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Switch(**self.wanted):
                return function(*args, **kwargs)

        return call


class no_grad(_Switch):
    """Record nothing."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(grad=False)


class enable_grad(no_grad):
    """Record again."""

    def __init__(self) -> None:
        _Switch.__init__(self, grad=True)


class inference_mode(no_grad):
    """Record nothing, for tensors that autograd never uses."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        _Switch.__init__(self, grad=not mode and Mode.grad, inference=bool(mode))


class set_grad_enabled(_Switch):
    """Record or do not, from now on, or in a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))
        self.at_once = Mode.grad
        Mode.grad = bool(mode)

    def __enter__(self) -> None:
        self.before.append({"grad": self.at_once})
        Mode.grad = self.wanted["grad"]

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        Mode.grad = self.at_once
        return super().__call__(function)


class set_detect_anomaly(_Switch):
    """Look for nan in gradients, from now on, or in a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=bool(mode), check_nan=bool(check_nan))
        self.at_once = {"anomaly": Mode.anomaly, "check_nan": Mode.check_nan}
        Mode.anomaly, Mode.check_nan = bool(mode), bool(check_nan)

    def __enter__(self) -> None:
        self.before.append(self.at_once)
        Mode.anomaly, Mode.check_nan = self.wanted["anomaly"], self.wanted["check_nan"]


class detect_anomaly(set_detect_anomaly):
    """Look for nan in gradients in a block."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
        Mode.anomaly, Mode.check_nan = self.at_once["anomaly"], self.at_once["check_nan"]


def is_grad_enabled() -> bool:
    """Tell whether operations are recorded."""
    return Mode.grad


for _class in (no_grad, enable_grad, inference_mode, set_grad_enabled):
    _class.__module__ = "torch.autograd.grad_mode"
