"""One trace of a function: its inputs, its result, the names of its local variables, the branches that it took."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, iscoroutine, signature, unwrap
from typing import Any

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.graph.array import Weights
from gradcli.graph.graph import Graph, needed_for, scheduled
from gradcli.graph.names import Numbered, identifier
from gradcli.graph.node import Node, cast, leaf
from gradcli.pyfunc import functions as functions  # registers NumPy's functions
from gradcli.pyfunc import methods as methods
from gradcli.pyfunc.patches import patched
from gradcli.pyfunc.tape import Condition, Tape, aside, place_of, recording, span_of
from gradcli.pyfunc.tracer import Tracer, is_number, leaves, lift, mapped, untraceable

Function = Callable[..., Any]


@dataclass(frozen=True)
class Trace:
    """The trace of a call: the graph, the conditions under which the call computes it, and the result."""

    graph: Graph
    conditions: tuple[Condition, ...]
    result: Any

    @property
    def values(self) -> dict[str, Any]:
        """The values of the outputs, where they are known."""
        return {name: x.value for name, x in leaves(self.result, "") if isinstance(x, Tracer)}


def trace(function: Function, arguments: Mapping[str, Any], name: str, names: bool = True) -> Trace:
    """Return the trace of a call.

    `arguments` are values by the names of the parameters: an array, a number, a tree of them, a `Node`'s tracer, or
    what is passed on as it is.  With `names`, nodes have the names of local variables, and the lines that made them.

    Errors: `InputError` for what cannot be traced, with its line; what the function raises itself.
    """
    inputs: dict[str, Node] = {}
    tape = Tape(names)

    def entered(key: str, value: Any) -> Any:
        if key in inputs:
            raise InputError(f"two inputs are called `{key}`")
        if isinstance(value, Unknown):
            inputs[key] = leaf(value.shape)
            tape.inputs[inputs[key]] = None
            return Tracer(None, inputs[key])
        value = value.value if isinstance(value, Tracer) else value
        array = np.array(value, float if np.asarray(value).dtype.kind == "f" else None)
        inputs[key] = leaf(array.shape)
        tape.inputs[inputs[key]] = array.astype(float)
        return Tracer(array if array.shape else array[()], inputs[key])

    values = {n: entered(n, v) if isinstance(v, Unknown) else mapped(v, n, entered) for n, v in arguments.items()}
    if names:
        tape.watched = _Locals(function)
    result = recorded(tape, function, *_call(function, values))
    watched = tape.watched
    outputs = output_nodes(result, name)
    known = watched.names(outputs, inputs, tape) if watched else {}
    return Trace(_graph(inputs, outputs, known, tape), tuple(tape.conditions), result)


@dataclass(frozen=True)
class Unknown:
    """An input without a value, of this shape."""

    shape: tuple[int, ...] = ()


def recorded(tape: Tape, function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the result of a call that is traced.

    Errors: `InputError` for what cannot be traced, with its line; what the function raises itself.
    """
    try:
        with recording(tape), patched(function) as user, np.errstate(all="ignore"):
            given = [user.borrow(x) for x in args], {name: user.borrow(x) for name, x in named.items()}
            return function(*given[0], **given[1])
    except Exception as error:
        shown = _explained(error, lambda: function(*_numbers(args), **_numbers(named)))
        if shown is error:
            raise
        raise shown from None


def _explained(error: Exception, again: Callable[[], Any]) -> Exception:
    """Return an exception as the user should see it: what is raised only since arrays are traced is an `InputError`.

    `again` calls the function with numbers, where they are known.
    """
    place = place_of(error.__traceback__)
    span = span_of(place.file, place.line) if place is not None else None
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InputError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        return cause.at(span).with_traceback(None)
    if place is None or place.raises or isinstance(error, RecursionError):
        return error
    try:
        with aside(), np.errstate(all="ignore"):
            again()
    except UnknownError:
        if Tracer.__name__ not in str(error) and not place.elsewhere:
            return error
    except Exception as own:
        return own
    return untraceable(place.called).at(span)


class UnknownError(Exception):
    """An input has no value."""


def _numbers(tree: Any) -> Any:
    """Return arguments with the values of tracers in their places.

    Errors: `UnknownError` where one has none.
    """

    def plain(_: str, x: Any) -> Any:
        if type(x) is Tracer and x._value is None:
            raise UnknownError
        return np.copy(x._value)[()] if type(x) is Tracer else x

    return mapped(tree, "", plain)


def _call(function: Function, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call by position, and those by name."""
    positional: list[Any] = []
    named = dict(values)
    for p in parameters_of(function).values():
        if p.kind is Parameter.VAR_POSITIONAL:
            positional += named.pop(p.name, ())
        elif p.kind is Parameter.POSITIONAL_ONLY and p.name in named:
            positional.append(named.pop(p.name))
        elif p.kind is Parameter.POSITIONAL_OR_KEYWORD and p.name in named and not p.name.startswith("\0"):
            positional.append(named.pop(p.name)) if len(positional) == len(values) - len(named) else None
        elif p.kind is Parameter.VAR_KEYWORD:
            named |= named.pop(p.name, {})
    return positional, named


def parameters_of(function: Function) -> Mapping[str, Parameter]:
    """Return the parameters of a function.

    Errors: `InputError` for what has no signature.
    """
    try:
        return signature(getattr(function, "pyfunc", function)).parameters  # of what `np.vectorize` calls
    except (TypeError, ValueError):
        raise InputError(f"`{getattr(function, '__name__', function)}` has no parameters that Python knows") from None


def output_nodes(result: Any, name: str) -> dict[str, Node]:
    """Return a function's result as nodes by name: `f`, `f0` and `f1` for a tuple, the keys of a dictionary.

    Errors: `InputError` for a value that is not a number.
    """
    pairs: list[tuple[str, Any]]
    if iscoroutine(result):
        result.close()  # else Python warns that nobody awaits it
        raise InputError(f"`{name}` returns a coroutine, not numbers", hint="define it without `async`")
    if isinstance(result, dict):
        pairs = [(identifier(str(key)), x) for key, x in result.items()]
    elif isinstance(result, tuple | list) and not hasattr(result, "_fields"):
        pairs = [(f"{name}{k}", x) for k, x in enumerate(result)]
    else:
        pairs = [(name, result)]
    listed = [pair for key, x in pairs for pair in (leaves(x, key) if not is_number(x) else [(key, x)])]
    if not listed:
        if hasattr(result, "close"):
            result.close()  # a coroutine that is never awaited is a warning of Python's
        what = "nothing" if result is None else f"a {type(result).__name__}"
        hint = "end the function with `return`" if result is None else None
        raise InputError(f"`{name}` returns {what}, not numbers", hint=hint)
    nodes = {key: lift(x) for key, x in listed}
    return {key: cast(n, "float64") if n.dtype == "bool" else n for key, n in nodes.items()}


def _graph(inputs: dict[str, Node], outputs: dict[str, Node], names: dict[str, Node], tape: Tape) -> Graph:
    nodes = scheduled([*names.values(), *outputs.values()], inputs.values())
    needed = needed_for(outputs.values(), nodes)
    named = {n: node for n, node in names.items() if node in needed}
    span_at = cache(span_of)
    lines = {node: span_at(*line) for node, line in tape.written.items() if node in needed}
    spans: dict[Node, Span] = {node: span for node, span in lines.items() if span is not None}
    order = {node: k for k, node in enumerate(nodes)}
    ordered = dict(sorted(named.items(), key=lambda item: order[item[1]]))
    return Graph.of(inputs, outputs, names=ordered | outputs, spans=spans)


class _Locals:
    """The local variables of one call of a function, as they are assigned."""

    def __init__(self, function: Function) -> None:
        inner = unwrap(function)
        self._code = getattr(getattr(inner, "__func__", inner), "__code__", None)
        self._frame: types.FrameType | None = None
        self._sought = 0  # how often its frame was sought
        self._found: dict[tuple[str, Node], None] = {}
        self._last: dict[str, Tracer] = {}  # what a variable is now: elements of it may be assigned later
        self._arrays: dict[int, str] = {}
        self._function = inner

    def look(self, frame: types.FrameType | None = None) -> None:
        """Look at the variables: whenever a node is made, and at the end."""
        if self._frame is None and self._sought < _SOUGHT:
            self._sought += 1
            while frame is not None and frame.f_code is not self._code:
                frame = frame.f_back
            self._frame = frame
        if self._frame is None:
            return
        for name, value in self._frame.f_locals.items():
            if type(value) is Tracer:
                if value._node is None:
                    self._arrays.setdefault(id(value._value), name)
                else:
                    self._last[name] = value
                    if not value._cells:
                        self._found[name, value._node] = None
            elif type(value) is np.ndarray:
                self._arrays.setdefault(id(value), name)

    def names(self, outputs: Mapping[str, Node], inputs: Mapping[str, Node], tape: Tape) -> dict[str, Node]:
        """Return nodes by their variables' names: one that is assigned again is numbered, `h`, `h_2`."""
        self.look()
        numbered, stem = Numbered([*outputs, *inputs]), cache(identifier)
        result: dict[str, Node] = {}
        done = {*outputs.values(), *inputs.values()}
        for name, node in [*self._found, *((n, x.node) for n, x in self._last.items() if not x.is_known)]:
            if node in done or node.dtype == "bool" or (node.is_constant and not isinstance(node.settings[0], Weights)):
                continue
            done.add(node)
            result[numbered(stem(name))] = node
        return result | self._constants(tape, numbered, done)

    def _constants(self, tape: Tape, numbered: Numbered, done: set[Node]) -> dict[str, Node]:
        """Return the names of large arrays that the function reads: variables, of its module too."""
        result: dict[str, Node] = {}
        names = getattr(self._function, "__globals__", {})
        known = {id(v): n for n, v in names.items() if type(v) is np.ndarray}
        closure = getattr(self._function, "__closure__", None) or ()
        free = self._code.co_freevars if self._code is not None else ()
        known |= {id(c.cell_contents): n for n, c in zip(free, closure, strict=False) if _is_filled(c)}
        for identity, (_, node) in tape.constants.items():
            if node not in done:
                result[numbered(identifier((self._arrays | known).get(identity, "constant")))] = node
        return result


_SOUGHT = 64  # a decorator may make nodes before it calls the function, or never call it


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def bound(function: Function, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the parameters, defaults among them.

    Errors: `TypeError`, as Python raises it, for arguments that do not fit.
    """
    call = Signature(list(parameters_of(function).values())).bind(*args, **named)
    call.apply_defaults()
    return dict(call.arguments)
