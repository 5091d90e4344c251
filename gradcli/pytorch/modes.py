"""Whether operations are recorded: `no_grad`, `enable_grad`, `inference_mode`; and anomaly detection."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from inspect import isgeneratorfunction
from typing import Any, ClassVar


class _Mode(threading.local):
    """The current modes, one set a thread."""

    grad = True
    off = ""  # what switched it off, as the script calls that; "" for what gradcli does by itself
    inference = False
    anomaly = False
    check_nan = True
    dual: Any = None  # the level at which tensors have tangents: see `autograd.forward_ad`
    running: Any = None  # the backward that runs, the innermost one: a function that it calls may run another
    mapped = False  # in a `vmap` that has more elements to come, which go through the same graph
    transforms = 0  # how many functions of `torch.func` call what runs
    maps = 0  # how many `vmap` stand around what runs
    width = 0  # how many elements the innermost `vmap` has
    randomness = "different"  # of the innermost `vmap`: `error`, `same` or `different`
    request: Any = None  # `Request`, while what a script asked for by name calls `grad`
    tracer: Any = None  # what gets each recipe in the place of computing it, where the shapes alone are wanted
    hooks: Any = None  # the two functions that pack what is kept for the backward, and unpack it
    is_plain = True  # whether none of `_SPECIAL` is on: one look-up in the place of five, each of which is slow
    warned: ClassVar[set[Any]] = set()  # the keys of warnings that come once


Mode = _Mode()
_SPECIAL = frozenset(("anomaly", "dual", "hooks", "maps", "tracer"))  # in which operations are recorded otherwise


def _set(settings: dict[str, Any]) -> dict[str, Any]:
    """Set some modes; return their values before."""
    before = {name: getattr(Mode, name) for name in settings}
    for name, value in settings.items():
        setattr(Mode, name, value)
    if not _SPECIAL.isdisjoint(settings):
        Mode.is_plain = not any(getattr(Mode, name) for name in _SPECIAL)
    return before


class _Switch:
    """A context that sets some modes, and a decorator that does so for each call of a function."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self.before.append(_set(self.settings))

    def __exit__(self, *_: object) -> None:
        _set(self.before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if isgeneratorfunction(function):
            return self.through(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Switch(**self.settings):
                return function(*args, **kwargs)

        return call

    def through(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a generator function whose steps run in the context, and its caller outside of it."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            go_on, value = generator.send, None
            while True:
                try:
                    with _Switch(**self.settings):
                        result = go_on(value)
                except StopIteration as end:
                    return end.value
                try:
                    go_on, value = generator.send, (yield result)
                except GeneratorExit:
                    with _Switch(**self.settings):
                        generator.close()
                    raise
                except BaseException as error:
                    go_on, value = generator.throw, error

        return call


class no_grad(_Switch):
    """Record nothing."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(grad=isinstance(self, enable_grad), off="no_grad()")


def unrecorded(off: str = "") -> _Switch:
    """Return a block in which a function of PyTorch's, which scripts call `off`, records nothing."""
    return _Switch(grad=False, off=off)


class enable_grad(no_grad):
    """Record again."""


class inference_mode(no_grad):
    """Record nothing, for tensors that autograd never uses."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        _Switch.__init__(self, grad=not mode and Mode.grad, off="inference_mode()", inference=bool(mode))


class _Lasting(_Switch):
    """A switch that takes effect at once, unless it is for a block or a function."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.at_once = _set(settings)

    def __enter__(self) -> None:
        self.before.append(self.at_once)
        _set(self.settings)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _set(self.at_once)
        return super().__call__(function)


class set_grad_enabled(_Lasting):
    """Record or do not."""

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode), off="set_grad_enabled(False)")

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.settings['grad']})"


def is_grad_enabled() -> bool:
    """Return whether operations are recorded."""
    return Mode.grad


for _class in (no_grad, enable_grad, inference_mode, set_grad_enabled):
    _class.__module__ = "torch.autograd.grad_mode"
