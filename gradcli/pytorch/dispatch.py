"""Functions as scripts call them: the arguments of a call, bound by a schema, reach the function that computes it.

How a call is bound depends on the types of its arguments alone, but for a few: it is worked out once, and kept.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, ClassVar, Protocol, runtime_checkable

from gradcli.pytorch.binding import Binder, Classes, Position, PythonBinder, of_another_type
from gradcli.pytorch.dtypes import device, dtype
from gradcli.pytorch.functions import fact, schema_of
from gradcli.pytorch.generator import Generator
from gradcli.pytorch.messages import facts_of, missing_if, warn_once
from gradcli.pytorch.schema import DEPRECATED, Argument, Overload, Schema
from gradcli.pytorch.tensor import Tensor

Function = Callable[..., Any]
Index = int | slice  # of an argument among the values of a call, or of several
NN = "torch.nn.functional"
CLASSES = Classes(Tensor, dtype, Generator, device)
# What any value of says nothing here: there is one layout, and one device.
_UNUSED = frozenset(("layout", "device", "pin_memory", "memory_format", "non_blocking", "_stacklevel"))
_SIMPLE = frozenset((int, float, bool, str, type(None), dtype, list, tuple))  # types that decide how a call is bound


# How calls with arguments of some types are made: what computes them, what puts values and constants in its order (None
# where they are), the constants, and what checks the values.  It has no names, as these take time to unpack.
_Plan = tuple[Function, Function | None, tuple[Any, ...], Function | None]


@runtime_checkable
class HasRunner(Protocol):
    """What makes a function for the calls with arguments of some names, and of the same types."""

    def runner(self, names: Sequence[str]) -> Function: ...


class Out:
    """The function that writes a result into a tensor, set where operations in position are defined."""

    write: ClassVar[Function]


class Dispatcher:
    """A function that scripts call by a name, and the function `compute` that gets its bound arguments.

    The parameters of `compute` have the names of the schema's arguments; further ones are `op`, the name, and
    `overload`, the name of the overload.
    """

    def __init__(self, name: str, compute: Function, module: str, public_name: str = "") -> None:
        self.name, self.compute, self.module = name, compute, module
        self.public_name = public_name or name
        self.self_count = int(module == "Tensor")
        self.in_python = fact("python", name) is not None or (module == NN and fact("in_c", name) is None)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the function."""
        return schema_of(self.name, self.module)

    @cached_property
    def _tests(self) -> Binder:
        return Binder(self.name, (), CLASSES)

    @cached_property
    def binder(self) -> Binder | PythonBinder:
        """The calling convention."""
        overloads: Sequence[Overload] = self.schema.overloads
        if self.self_count:
            overloads = [m for o in overloads if (m := o.of_method()) is not None]
        if self.in_python:
            return PythonBinder(self.schema.facts.get("python") or self.public_name, overloads[0])
        return Binder(self.public_name, overloads, CLASSES, "numbers" in self.schema.facts)

    def function(self) -> Function:
        """Return the function that scripts call."""
        plans: dict[Any, _Plan] = {}

        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                if kwargs:
                    values = (*args, *kwargs.values())
                    kinds = (*map(type, values), *kwargs)
                else:
                    values, kinds = args, (*map(type, args),)
                plan = plans.get(kinds)
                if plan is None:
                    plan, is_reusable = self._make_plan(args, kwargs)
                    if is_reusable:
                        plans[kinds] = plan
                run, order, constants, check = plan
                if check is not None:
                    check(values)
                if order is not None:
                    return run(*order((*values, *constants)))
                return run(*values, *constants) if constants else run(*values)
            except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
                if self.in_python and facts_of(error) is None:
                    self._name_wrong_tensor(args)
                raise

        function.__name__ = function.__qualname__ = self.public_name
        function.__module__, function.__doc__ = self.compute.__module__, self.compute.__doc__
        return function

    def _make_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Plan, bool]:
        """Return how calls with arguments of these types are made, and whether they are all made alike."""
        overload, positions = self.binder.bind(args[self.self_count :], kwargs)
        if overload.name == DEPRECATED:
            self._warn_of(overload)
        values, words = (*args, *kwargs.values()), [*kwargs]
        at: dict[str, Index] = {"input": 0} if self.self_count else {}
        for name, position in positions.items():
            at["input" if name == "self" else name] = self._index(position, len(args), words)
        each = [(v, n) for n, i in at.items() for v in (values[i] if isinstance(i, slice) else [values[i]])]
        by_types = all(_is_bound_by_type(v, overload.by_names.get(n)) for v, n in each)
        is_reusable = self.in_python or (by_types and overload.name != DEPRECATED)  # which warns in each run
        check = self._check(overload, at, values, len(args), words)
        out = at.pop("out", None)
        if isinstance(self.compute, HasRunner):
            run, order, constants = self.compute.runner(tuple(at)), [*at.values()], ()
        else:
            run, order, constants = self._plan_compute(overload, at, len(values))
        if out is not None and values[out] is not None:
            run, order = self._with_out(run), [out, *order]
        is_plain = order == [*range(len(values) + len(constants))]
        return (run, None if is_plain else _items_at(order), constants, check), is_reusable

    def _index(self, position: Position, count: int, words: list[str]) -> Index:
        """Return the index of an argument's position among the values of a call, or those of several."""
        if isinstance(position, str):
            return count + words.index(position)
        if isinstance(position, slice):
            return slice(position.start + self.self_count, count)
        return position + self.self_count

    def _plan_compute(
        self, overload: Overload, at: dict[str, Index], count: int
    ) -> tuple[Function, list[Index], tuple[Any, ...]]:
        """Return what computes a call, the indices of its arguments among values and constants, and these."""
        constants: list[Any] = []
        order: list[Index] = []
        others = dict(at)
        for parameter in self._parameters:
            name = "input" if parameter.name == "self" else parameter.name
            if name in others:
                order.append(others.pop(name))
            elif parameter.kind is not parameter.VAR_KEYWORD:
                order.append(count + len(constants))
                constants.append(self._constant(parameter, name, overload))
        run = self.compute
        defaults = list(getattr(run, "__defaults__", None) or ())
        while defaults and constants and order[-1] == count + len(constants) - 1 and constants[-1] is defaults.pop():
            del constants[-1], order[-1]
        if self._parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
            run = _with_keywords(run, len(order), [*others]) if others else run
            order += others.values()
        elif unknown := [n for n in others if n not in _UNUSED]:
            run = self._without_options(run, unknown)
            order = [*(others[n] for n in unknown), *order]
        if overload.fields:
            several, result = run, return_type(self.name, *overload.fields)
            return lambda *values: result(*several(*values)), order, tuple(constants)
        return run, order, tuple(constants)

    def _constant(self, parameter: inspect.Parameter, name: str, overload: Overload) -> Any:
        """Return what a parameter is where a call has no argument for it."""
        if name in overload.by_names:
            return overload.by_names[name].value
        if name in ("op", "overload"):
            return self.name if name == "op" else overload.name
        if (argument := self.schema.arguments.get(name)) is not None:  # of another overload
            return argument.value if argument.default else None
        return None if parameter.default is parameter.empty else parameter.default

    @cached_property
    def _parameters(self) -> Sequence[inspect.Parameter]:
        return list(inspect.signature(self.compute).parameters.values())

    def _without_options(self, run: Function, names: Sequence[str]) -> Function:
        """Return what ends the run where arguments that gradcli does not have are not their defaults."""

        def compute(*values: Any) -> Any:
            for name, value in zip(names, values, strict=False):
                missing_if(value != self.schema.arguments[name].value, f"{self.name}({name}=…)")
            return run(*values[len(names) :])

        return compute

    def _with_out(self, run: Function) -> Function:
        return lambda out, *values: Out.write(out, self.name, lambda: run(*values), values)

    def _check(
        self, overload: Overload, at: Mapping[str, Index], values: Sequence[Any], count: int, words: Sequence[str]
    ) -> Function | None:
        """Return what checks the values of such calls: the integers in lists."""
        lists = () if self.in_python else [a.name for a in overload.arguments if a.type.startswith("int[")]
        sizes = [at[n] for n in lists if isinstance(i := at.get(n), int) and isinstance(values[i], list | tuple)]
        if not sizes:
            return None

        def check(values: tuple[Any, ...]) -> None:
            for i in sizes:
                for n in values[i]:
                    if type(n) is not int:
                        keywords = dict(zip(words, values[count:], strict=True))
                        self.binder.bind(values[self.self_count : count], keywords)

        return check

    def _name_wrong_tensor(self, args: tuple[Any, ...]) -> None:
        """Raise the error of a function in Python for an argument that is no tensor, as its functions in C++ do."""
        # A loss of several arguments' sizes reads them in Python first, and its error is Python's.
        inner = fact("core", self.name) if "reduction" in self.schema.arguments else self.public_name
        pairs = zip(self.binder.overloads[0].arguments, args[self.self_count :], strict=False)
        for i, (argument, value) in enumerate(pairs, 1):
            if inner and argument.type in ("Tensor", "Scalar") and not self._tests.fits(argument, value):
                raise of_another_type(inner, argument, i, value) from None

    def _warn_of(self, overload: Overload) -> None:
        """Warn of an overload that is deprecated."""
        texts = [o.text for o in self.binder.overloads if o.name != DEPRECATED]
        warn_once(
            "deprecated overload",
            self.public_name,
            overload.text,
            "".join(f"\n\t{self.public_name}({t})" for t in texts),
        )


@cache
def return_type(name: str, *fields: str) -> Any:
    """Return the type of several results under names, in `torch.return_types`."""
    kind = namedtuple(name, fields)  # type: ignore[misc]
    kind.__repr__ = _text  # type: ignore[assignment]
    kind.__getattr__ = _lacking  # type: ignore[attr-defined]
    kind.__module__ = "torch.return_types"
    return kind


def _lacking(self: Any, name: str) -> Any:
    raise AttributeError(f"'torch.return_types.{type(self).__name__}' object has no attribute '{name}'")


def _text(self: Any) -> str:
    lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


def _items_at(positions: Sequence[Index]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that returns the items at these positions, or slices."""
    if len(positions) == 1 and type(positions[0]) is int:
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions) if len(positions) > 1 else lambda values: [values[i] for i in positions]


def _is_bound_by_type(value: Any, argument: Argument | None) -> bool:
    """Return whether a value's type alone decides how it is bound."""
    if isinstance(value, Tensor):
        return argument is None or argument.type in ("Tensor", "Any")
    return type(value) in _SIMPLE or isinstance(value, list | tuple)


def _with_keywords(run: Function, count: int, names: Sequence[str]) -> Function:
    """Return a function of values, of which those behind the first ones are passed by names."""
    return lambda *values: run(*values[:count], **dict(zip(names, values[count:], strict=True)))
