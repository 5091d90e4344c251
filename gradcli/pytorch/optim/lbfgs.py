"""`torch.optim.LBFGS`: steps by an approximation of the inverse Hessian, from the last changes of gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.modes import enable_grad, unrecorded
from gradcli.pytorch.optim import Optimizer
from gradcli.pytorch.optim.rules import NO_RULE, Change, few
from gradcli.pytorch.record import Recorder, script_line
from gradcli.pytorch.tensor import Tensor

Vector = np.ndarray[Any, Any]
Evaluate = Callable[[Any], tuple[float, Vector]]  # the loss and the gradient after a step of a length

_LEAST_CURVATURE = 1e-10  # of a change of the gradient that is remembered
_DECREASE, _CURVATURE = 1e-4, 0.9  # the constants of Wolfe's conditions
_FLAT = 1e-9  # a bracket in which no parameter changes by more


class Trial(NamedTuple):
    """The result of a step along a direction: its length, the loss, the gradient and the slope."""

    length: Any
    loss: float
    gradient: Vector
    slope: Any  # of the loss along the direction


class LBFGS(Optimizer):
    """Nocedal and Wright, "Numerical optimization" (2006), algorithm 7.5; all parameters are one vector."""

    def __init__(
        self, params: Any, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        raise_if(lr < 0, "setting below 0", "learning rate", lr)
        settings = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        settings |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        super().__init__(params, {**settings, "history_size": history_size, "line_search_fn": line_search_fn})
        raise_if(len(self.param_groups) != 1, "groups of LBFGS")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Take up to `max_iter` steps, for each of which the closure computes the loss and its gradients again."""
        self._opt_called = True
        params = self._parameters()
        before = [few(p._a) for p in params]
        for p in params:
            p._memory.keep()
        with unrecorded(), np.errstate(all="ignore"):
            first = self._minimized(enable_grad()(closure))
        changes = list[Change]()
        for p, a in zip(params, before, strict=True):
            p._memory.version += 1
            if Recorder.explains and p._grad is not None:
                p._memory.storage.changed = (script_line(), "step")
                changes.append(Change(p, NO_RULE, {"p": a}, partial(self._after, p)))
        Recorder.listener.stepped(self, changes)
        return first

    def _after(self, p: Tensor) -> dict[str, Any]:
        """Return the numbers of a parameter after a step."""
        return {"p": few(p._a), "n_iter": self.state[self._parameters()[0]]["n_iter"]}

    def _minimized(self, closure: Callable[[], Any]) -> Any:
        """Take the steps; return the loss before the first one."""
        group, state = self.param_groups[0], self.state[self._parameters()[0]]
        evaluations, least = 1, group["tolerance_change"]
        result = closure()
        loss, g = _number(result), self._gradient()
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        if np.abs(g).max() <= group["tolerance_grad"]:
            return result
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d, length = self._direction(g, state), float(group["lr"])
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / np.abs(g).sum())
            state["prev_flat_grad"], state["d"], state["t"], last = g, d, length, loss
            if (slope := g @ d) > -least:
                break
            count = 0
            if group["line_search_fn"] is not None:
                raise_if(group["line_search_fn"] != "strong_wolfe", "line search of LBFGS")
                start, budget = Trial(0, loss, g, slope), group["max_eval"] - evaluations
                best, count = _searched(self._along(d, closure), start, length, d, budget)
                length, loss, g = best[:3]
                self._move(length, d)
            else:
                self._move(length, d)
                if iteration < group["max_iter"]:
                    loss, g, count = _number(closure()), self._gradient(), 1
            state["t"] = length
            evaluations += count
            state["func_evals"] += count
            is_small = np.abs(length * d).max() <= least or abs(loss - last) < least
            if evaluations >= group["max_eval"] or np.abs(g).max() <= group["tolerance_grad"] or is_small:
                break
        return result

    def _gradient(self) -> Vector:
        parts = [np.zeros(p.numel(), p._a.dtype) if p._grad is None else p._grad._a for p in self._parameters()]
        return np.concatenate([a.reshape(-1) for a in parts])

    def _move(self, length: Any, direction: Vector) -> None:
        """Add a step to all parameters."""
        start = 0
        for p in self._parameters():
            p._a += (length * direction[start : start + p.numel()]).reshape(p._a.shape).astype(p._a.dtype)
            start += p.numel()

    def _along(self, direction: Vector, closure: Callable[[], Any]) -> Evaluate:
        """Return the loss as a function of the length of a step, which leaves the parameters as they are."""
        before = [p._a.copy() for p in self._parameters()]

        def evaluate(length: Any) -> tuple[float, Vector]:
            self._move(length, direction)
            loss, gradient = _number(closure()), self._gradient()
            for p, a in zip(self._parameters(), before, strict=True):
                p._a[...] = a
            return loss, gradient

        return evaluate

    def _direction(self, g: Vector, state: dict[str, Any]) -> Vector:
        """Return minus the gradient times the approximate inverse Hessian, by the two-loop recursion."""
        if "prev_flat_grad" not in state:
            state["pairs"], state["H_diag"] = [], 1
            return -g
        pairs: list[tuple[Vector, Vector, Any]] = state["pairs"]
        change, moved = g - state["prev_flat_grad"], state["t"] * state["d"]
        if (curvature := change @ moved) > _LEAST_CURVATURE:
            pairs.append((change, moved, 1.0 / curvature))
            del pairs[: -self.param_groups[0]["history_size"]]
            state["H_diag"] = curvature / (change @ change)
        direction, shares = -g, []
        for change, moved, inverse in reversed(pairs):
            shares.append(moved @ direction * inverse)
            direction = direction - shares[-1] * change
        direction = direction * state["H_diag"]
        for (change, moved, inverse), share in zip(pairs, reversed(shares), strict=True):
            direction = direction + (share - change @ direction * inverse) * moved
        return direction


def _number(loss: Any) -> float:
    return float(loss._a.item() if isinstance(loss, Tensor) else loss)


# The line search: Nocedal and Wright, algorithms 3.5 and 3.6


def _searched(
    evaluate: Evaluate, start: Trial, length: Any, direction: Vector, budget: int
) -> tuple[Trial, int]:  # fmt: skip
    """Return a step that satisfies Wolfe's strong conditions, or the best of so many, and the count."""

    def trial(length: Any) -> Trial:
        loss, gradient = evaluate(length)
        return Trial(length, loss, gradient, gradient @ direction)

    new, last, count = trial(length), start, 1
    bracket: list[Trial] | None = None
    while count <= budget:
        if _is_high(new, start) or (count > 2 and new.loss >= last.loss):
            bracket = [last, new]
        elif abs(new.slope) <= -_CURVATURE * start.slope:
            return new, count
        elif new.slope >= 0:
            bracket = [last, new]
        if bracket is not None:
            break
        bounds = new.length + 0.01 * (new.length - last.length), new.length * 10
        last, new = new, trial(_minimum(last, new, *bounds))
        count += 1
    if bracket is None:
        bracket = [start, new]
    return _narrowed(trial, bracket, start, np.abs(direction).max(), count, budget)


def _is_high(new: Trial, start: Trial) -> bool:
    """Return whether the loss decreases less than by Armijo's condition."""
    return bool(new.loss > start.loss + _DECREASE * new.length * start.slope)


def _narrowed(
    trial: Callable[[Any], Trial], bracket: list[Trial], start: Trial, size: Any, count: int, budget: int
) -> tuple[Trial, int]:
    """Narrow a bracket until its lower end satisfies the conditions."""
    low, high = sorted(bracket, key=lambda t: t.loss)
    stalled = False
    while count <= budget and abs(high.length - low.length) * size >= _FLAT:
        least, most = sorted((low.length, high.length))
        length, edge = _minimum(low, high, least, most), 0.1 * (most - least)
        if min(most - length, length - least) < edge:
            if stalled or length >= most or length <= least:
                length = most - edge if abs(length - most) < abs(length - least) else least + edge
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        new = trial(length)
        count += 1
        if _is_high(new, start) or new.loss >= low.loss:
            high = new
        else:
            if abs(new.slope) <= -_CURVATURE * start.slope:
                return new, count
            if new.slope * (high.length - low.length) >= 0:
                high = low
            low = new
        low, high = sorted((low, high), key=lambda t: t.loss)
    return low, count


def _minimum(a: Trial, b: Trial, least: Any, most: Any) -> Any:
    """Return where the cubic polynomial through two trials is least, within bounds."""
    first, last = (a, b) if a.length <= b.length else (b, a)
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = d**2 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2.0
    root = np.sqrt(square)
    share = (last.slope + root - d) / (last.slope - first.slope + 2 * root)
    return min(max(last.length - (last.length - first.length) * share, least), most)


LBFGS.__module__ = "torch.optim.lbfgs"
