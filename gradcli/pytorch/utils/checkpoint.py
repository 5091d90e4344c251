"""`torch.utils.checkpoint`: what a function keeps for its backward is computed again when the backward needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.pytorch.autograd import backward
from gradcli.pytorch.autograd.function import Function
from gradcli.pytorch.backward import Request, requested
from gradcli.pytorch.generator import DEFAULT
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.modes import Mode, _Switch, enable_grad, unrecorded
from gradcli.pytorch.nn.containers import Sequential
from gradcli.pytorch.record import Recorder, Step
from gradcli.pytorch.tensor import Tensor, alias

__all__ = ["checkpoint", "checkpoint_sequential"]
_USUAL = {"determinism_check": "default", "early_stop": True, "context_fn": None, "debug": False}


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Return a function's result, of which the backward calls the function again."""
    if use_reentrant is None:
        warn("use_reentrant is not passed")
    preserve = kwargs.pop("preserve_rng_state", True)
    for name, usual in _USUAL.items():
        missing_if(kwargs.pop(name, usual) != usual, f"torch.utils.checkpoint.checkpoint({name}=…)")
    if use_reentrant is False:
        return _Again(function, args, kwargs, preserve).result()
    raise_if(kwargs, "unexpected arguments of a checkpoint", ",".join(kwargs))
    return CheckpointFunction.apply(function, preserve, *args)


class _Stop(BaseException):
    """Ends a function that is called again, where it has computed all that was kept."""


class _Again:
    """A function that is called again when a backward reads what its first call kept; `Mode.hooks` count that."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], preserve: bool) -> None:
        self.function, self.args, self.kwargs, self.preserve = function, args, kwargs, preserve
        self.count = self.left = 0  # how many steps keep something, and how many are yet to be computed again
        self.swept: Any = None  # the backward for which it was called again
        self.outer = Mode.hooks

    def result(self) -> Any:
        """Call the function for the first time."""
        self.state = DEFAULT.get_state()
        with _Switch(hooks=self):
            result = self.function(*self.args, **self.kwargs)
        is_random = not self.preserve and self.state[0] != DEFAULT.get_state()[0]
        missing_if(is_random, "torch.utils.checkpoint.checkpoint(preserve_rng_state=False) of a random function")
        return result

    def pack(self, step: Step, outs: Sequence[Tensor]) -> None:
        """Count a step that keeps something, and have the function called again before its backward."""
        if self.outer is not None:
            self.outer.pack(step, outs)
        if self.swept is None:
            self.count += 1
            step.hooked("_nexts", lambda _: None if step.freed is not None else self.run())
            return
        self.left -= 1
        if not self.left:
            raise _Stop

    def run(self) -> None:
        """Call the function again, once for each backward."""
        if self.swept is Recorder.swept:
            return
        self.swept, self.left = Recorder.swept, self.count
        try:
            with _random_as(self.state), _Switch(grad=True, hooks=self):
                self.function(*self.args, **self.kwargs)
        except _Stop:
            pass


@contextmanager
def _random_as(state: Any) -> Iterator[None]:
    """Draw random numbers from a state of the generator within a block; afterwards its state is as before."""
    before = DEFAULT.get_state()
    DEFAULT.set_state(state)
    try:
        yield
    finally:
        DEFAULT.set_state(before)


class CheckpointFunction(Function):
    """A function that records nothing when it is called, and in the backward is called and differentiated."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            warn("checkpoint of what requires no gradient")
        ctx.function, ctx.args = function, args
        ctx.state = DEFAULT.get_state() if preserve else None
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        with unrecorded():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise_if(Mode.running is not None and Mode.running.inputs is not None, "checkpoint in a grad")
        kept = iter(ctx.saved_tensors)
        args = [_leaf(next(kept)) if isinstance(x, Tensor) else x for x in ctx.args]
        with _random_as(DEFAULT.get_state() if ctx.state is None else ctx.state), enable_grad():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        pairs = zip(outputs, grads, strict=False)
        flowing = [(y, g) for y, g in pairs if isinstance(y, Tensor) and y.requires_grad]
        raise_if(not flowing, "checkpoint of what requires no gradient at all")
        with requested(Request("")):  # of the call that it runs within
            backward([y for y, _ in flowing], [g for _, g in flowing])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in args))


def _leaf(x: Tensor) -> Tensor:
    """Return a leaf with a tensor's numbers."""
    result: Tensor = alias(x)
    result.requires_grad = x.requires_grad
    return result


CheckpointFunction.__module__ = "torch.utils.checkpoint"


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Return the result of functions in a row, in segments of which all but the last are checkpoints."""
    if use_reentrant is None:
        warn("use_reentrant is not passed to a sequence")
    preserve = kwargs.pop("preserve_rng_state", True)
    raise_if(kwargs, "unexpected arguments of a checkpoint", ",".join(kwargs))
    modules = list(functions.children()) if isinstance(functions, Sequential) else list(functions)

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in modules[start:end]:
                x = function(x)
            return x

        return run

    size = len(modules) // segments
    for start in range(0, size * (segments - 1), size):
        how: Any = {"use_reentrant": use_reentrant is not False, "preserve_rng_state": preserve}
        input = checkpoint(segment(start, start + size), input, **how)
    return segment(size * (segments - 1), len(modules))(input)
