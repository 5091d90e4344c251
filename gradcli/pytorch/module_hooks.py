"""Backward hooks of modules: they see the gradients of a module's outputs and of its inputs."""

from __future__ import annotations

from typing import Any

from gradcli.pytorch.messages import warn
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.tensor import Tensor
from gradcli.pytorch.views import _reshaped


def _again(x: Tensor) -> Tensor:
    """Return a tensor of its own that shows the same numbers."""
    return _reshaped(x, tuple(x.shape), "BackwardHookFunctionBackward")


class Watched:
    """One call of a module whose gradients are watched."""

    def __init__(self, module: Any, hooks: dict[str, Any]) -> None:
        self.module, self.hooks = module, hooks
        self.out: list[Any] = []
        self.into: list[Any] = []
        self.watches_inputs = False

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs, each as a tensor of its own whose gradient is seen."""
        self.into = [None] * len(args)
        if not Mode.grad:
            return args
        found = []
        waiting = sum(isinstance(a, Tensor) and a.requires_grad for a in args)
        self.watches_inputs = waiting > 0
        for i, a in enumerate(args):
            if isinstance(a, Tensor) and a.requires_grad:
                a = _again(a)
                a.register_hook(self._at_input(i, waiting))
            found.append(a)
        return tuple(found)

    def _at_input(self, i: int, waiting: int) -> Any:
        seen: list[int] = []

        def hook(g: Tensor) -> Any:
            self.into[i] = g
            self.__dict__.setdefault("arrived", seen).append(i)
            if len(self.__dict__["arrived"]) < waiting:
                return None
            self.__dict__["arrived"].clear()
            changed = self.called()
            return None if changed is None else changed[i]

        return self._owned(hook, "backward")

    def _owned(self, hook: Any, kind: str) -> Any:
        """Let a hook know, for explanations, of which module it is, and which function of the script's it calls."""
        hook.of = self.module, next(reversed(self.hooks[kind].values()), hook)
        return hook

    def called(self) -> Any:
        """Call the hooks with what has been seen."""
        given = tuple(self.into)
        changed = None
        for hook in list(self.hooks["backward"].values()):
            found = hook(self.module, given, tuple(self.out))
            if found is not None:
                given = changed = found if isinstance(found, tuple) else (found,)
        return changed

    def outputs(self, result: Any) -> Any:
        """Return the outputs, whose gradients are seen."""
        single = isinstance(result, Tensor)
        parts = [result] if single else list(result)
        self.out = [None] * len(parts)
        for i, y in enumerate(parts):
            if isinstance(y, Tensor) and y.requires_grad:
                parts[i] = y = _again(y)
                y.register_hook(self._at_output(i))
        return parts[0] if single else tuple(parts)

    def _at_output(self, i: int) -> Any:
        def hook(g: Tensor) -> Any:
            self.out[i] = g
            changed = None
            for pre in list(self.hooks["backward_pre"].values()):
                found = pre(self.module, tuple(self.out))
                if found is not None:
                    changed = found[i] if isinstance(found, tuple) else found
            if not self.watches_inputs and None not in self.out:
                warn("full hook without inputs")
                self.called()
            return changed

        return self._owned(hook, "backward_pre")
