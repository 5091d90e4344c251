"""One trace of a function: its inputs, its result, the names of its local variables, the branches that it took."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from inspect import Parameter, Signature, signature, unwrap
from typing import Any

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph, needed_for, scheduled
from gradcli.graph.names import identifier
from gradcli.graph.node import Node, cast, leaf
from gradcli.graph.weights import Weights
from gradcli.pyfunc import functions as functions  # registers NumPy's functions
from gradcli.pyfunc import methods as methods
from gradcli.pyfunc.patches import patched
from gradcli.pyfunc.tape import Condition, Tape, line_of, recording, span_of
from gradcli.pyfunc.tracer import Tracer, lift
from gradcli.pyfunc.trees import is_number, leaves, mapped

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
    watched = _Locals(function) if names else None
    with recording(tape), patched(globals_of(function)), np.errstate(all="ignore"):
        try:
            with watched.watching() if watched else nullcontext():
                result = _called(function, values)
        except InputError as error:
            line = line_of(error.__traceback__)
            raise error.at(span_of(*line) if line else None) from None
    outputs = output_nodes(result, name)
    known = watched.names(outputs, inputs, tape) if watched else {}
    return Trace(_graph(inputs, outputs, known, tape), tuple(tape.conditions), result)


@dataclass(frozen=True)
class Unknown:
    """An input without a value, of this shape."""

    shape: tuple[int, ...] = ()


def _called(function: Function, values: Mapping[str, Any]) -> Any:
    """Return the result of a function of these arguments."""
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
    return function(*positional, **named)


def parameters_of(function: Function) -> Mapping[str, Parameter]:
    """Return the parameters of a function.

    Errors: `InputError` for what has no signature.
    """
    try:
        return signature(function).parameters
    except (TypeError, ValueError):
        raise InputError(f"`{getattr(function, '__name__', function)}` has no parameters that Python knows") from None


def globals_of(function: Function) -> dict[str, Any]:
    """Return the names of the module in which a function is defined."""
    inner = unwrap(function)
    inner = getattr(inner, "__func__", inner)
    inner = getattr(inner, "func", inner)
    if not hasattr(inner, "__globals__"):  # an object that is called
        inner = vars(type(inner)).get("__call__", inner)
    names: dict[str, Any] = getattr(inner, "__globals__", {})
    return names


def output_nodes(result: Any, name: str) -> dict[str, Node]:
    """Return a function's result as nodes by name: `f`, `f0` and `f1` for a tuple, the keys of a dictionary.

    Errors: `InputError` for a value that is not a number.
    """
    pairs: list[tuple[str, Any]]
    if isinstance(result, dict):
        pairs = [(identifier(str(key)), x) for key, x in result.items()]
    elif isinstance(result, tuple | list) and not hasattr(result, "_fields"):
        pairs = [(f"{name}{k}", x) for k, x in enumerate(result)]
    else:
        pairs = [(name, result)]
    listed = [pair for key, x in pairs for pair in (leaves(x, key) if not is_number(x) else [(key, x)])]
    if not listed:
        what = "nothing" if result is None else f"a {type(result).__name__}"
        raise InputError(f"`{name}` returns {what}, not numbers", hint="end the function with `return`")
    nodes = {key: lift(x) for key, x in listed}
    return {key: cast(n, "float64") if n.dtype == "bool" else n for key, n in nodes.items()}


def _graph(inputs: dict[str, Node], outputs: dict[str, Node], names: dict[str, Node], tape: Tape) -> Graph:
    nodes = scheduled([*names.values(), *outputs.values()], inputs.values())
    needed = needed_for(outputs.values(), nodes)
    named = {n: node for n, node in names.items() if node in needed}
    spans: dict[Node, Span] = {}
    for node, line in tape.written.items():
        if node in needed and (span := span_of(*line)) is not None:
            spans[node] = span
    order = {node: k for k, node in enumerate(nodes)}
    ordered = dict(sorted(named.items(), key=lambda item: order[item[1]]))
    return Graph.of(inputs, outputs, names=ordered | outputs, spans=spans)


class _Locals:
    """The local variables of one call of a function, as they are assigned."""

    def __init__(self, function: Function) -> None:
        inner = unwrap(function)
        self._code = getattr(getattr(inner, "__func__", inner), "__code__", None)
        self._frame: types.FrameType | None = None
        self._found: list[tuple[str, Tracer, Node]] = []
        self._seen: set[tuple[str, int]] = set()
        self._arrays: dict[int, str] = {}
        self._function = inner

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the variables after each line."""
        before = sys.gettrace()
        if self._code is None or before is not None:  # a debugger has the lines
            yield
            return
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code is self._code and self._frame is None:
            self._frame = frame
            return self._line
        return None

    def _line(self, frame: types.FrameType, event: str, _: Any) -> Any:
        for name, value in frame.f_locals.items():
            if type(value) is Tracer:
                if value._node is not None and not value._cells and (key := (name, id(value._node))) not in self._seen:
                    self._seen.add(key)
                    self._found.append((name, value, value._node))
            elif type(value) is np.ndarray:
                self._arrays.setdefault(id(value), name)
        return self._line

    def names(self, outputs: Mapping[str, Node], inputs: Mapping[str, Node], tape: Tape) -> dict[str, Node]:
        """Return the names of nodes: a variable that is assigned again has its number behind its name."""
        taken = {*outputs, *inputs}
        result: dict[str, Node] = {}
        done = {*outputs.values(), *inputs.values()}
        for name, _, node in [*self._found, *((n, x, x.node) for n, x, _ in self._found if not x.is_known)]:
            if node in done or node.dtype == "bool" or (node.is_constant and not _is_large(node)):
                continue
            label, k = identifier(name), 2
            while label in taken:
                label, k = f"{identifier(name)}_{k}", k + 1
            taken.add(label)
            done.add(node)
            result[label] = node
        return result | self._constants(tape, taken, done)

    def _constants(self, tape: Tape, taken: set[str], done: set[Node]) -> dict[str, Node]:
        """Return the names of large arrays that the function reads: variables, of its module too."""
        result: dict[str, Node] = {}
        known = {id(v): n for n, v in globals_of(self._function).items() if type(v) is np.ndarray}
        closure = getattr(self._function, "__closure__", None) or ()
        free = self._code.co_freevars if self._code is not None else ()
        known |= {id(c.cell_contents): n for n, c in zip(free, closure, strict=False) if _is_filled(c)}
        for identity, (_, node) in tape.constants.items():
            name = identifier((self._arrays | known).get(identity, "constant"))
            label, k = name, 2
            while label in taken:
                label, k = f"{name}_{k}", k + 1
            if node not in done:
                taken.add(label)
                result[label] = node
        return result


def _is_large(node: Node) -> bool:
    return isinstance(node.settings[0], Weights)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def values_by_name(arguments: Mapping[str, Any]) -> dict[str, Array]:
    """Return the numbers and arrays among arguments, by the names of the inputs that they are.

    >>> values_by_name({"x": 2, "p": {"W": [1.0]}, "kind": "tanh"})
    {'x': array(2), 'p_W_0': array(1.)}
    """
    return {key: np.asarray(x) for name, value in arguments.items() for key, x in leaves(value, name)}


def bound(function: Function, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of the parameters, defaults among them.

    Errors: `TypeError`, as Python raises it, for arguments that do not fit.
    """
    call = Signature(list(parameters_of(function).values())).bind(*args, **named)
    call.apply_defaults()
    return dict(call.arguments)
