"""The nodes of a model, one after the other, as nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.errors import InputError, Source, Span
from gradcli.files import printable
from gradcli.graph.array import Array
from gradcli.graph.dtypes import DType
from gradcli.graph.names import identifier, variable_name
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.onnx import operators as operators  # registers them
from gradcli.onnx.control import CONTROL, MAX_ALL_ROUNDS, Inner
from gradcli.onnx.files import array
from gradcli.onnx.register import OPERATORS, UNSUPPORTED, Operator, lookup
from gradcli.onnx.values import DEPENDS, KNOWN, Folded, Value, lift, own_leaf

MAX_NODES = 200_000  # of a model, with the rounds of its loops
MAX_BYTES = 2**30  # of all numbers that are computed while it is read
MAX_DEPTH = 50  # of functions in functions

# A node of the model that becomes more nodes than these is written as its operator: the formula of a convolution, with
# its padding and its windows, is harder to read than `Conv(x, weight)`.
_FORMULA = 3
_LISTED = 8  # elements of an attribute that are written; others are counted
_WRITTEN = (1, 2, 3, 6, 7)  # types of attributes: FLOAT, INT, STRING, FLOATS and INTS

Scope = MutableMapping[str, Value | None]


class Translator:
    """The translation of one model's nodes into nodes of a graph, real numbers in the type `dtype`."""

    def __init__(self, model: Any, folder: Path, label: str, dtype: DType = "float64") -> None:
        self.folder = folder
        self.label = label
        self.dtype: DType = dtype
        self.opsets = {_domain(entry.domain): entry.version for entry in model.opset_import}
        self.functions = {(_domain(f.domain), f.name): f for f in model.functions}
        self.spans: dict[Node, Span] = {}
        self.parts: dict[Node, str] = {}
        self.variables: dict[Node, str] = {}  # in the order in which they are computed
        self._count = 0
        self._rounds = 0
        self._bytes = 0
        self._made: dict[tuple[Any, ...] | None, Folded] = {}
        self._lifted: dict[int, tuple[Array, Node]] = {}

    def lift(self, value: Value) -> Node:
        """Return a value as a node, an array always as the same one."""
        if isinstance(value, Node):
            return value
        if id(value) not in self._lifted:
            self._lifted[id(value)] = (value, lift(value, self.dtype))
        return self._lifted[id(value)][1]

    def named_array(self, value: Array) -> Array:
        """Return an array, whose node keeps it, so that formulas show its name and not its numbers."""
        if value.dtype.kind == "f":
            self._lifted[id(value)] = (value, lift(value, self.dtype, listed=1))
        return value

    def run(self, nodes: Sequence[Any], scope: Scope, opsets: Mapping[str, int], depth: int = 0) -> None:
        """Add the results of nodes, which are in the order of computation, to the scope.

        Errors: `InputError` for what is not supported, and for a value that is not computed before.
        """
        for k, node in enumerate(nodes):
            self._count += 1
            if self._count > MAX_NODES:
                raise InputError(f"`{self.label}` has more than {MAX_NODES:,} nodes, with the rounds of its loops")
            try:
                results = self._results(node, scope, opsets, depth)
            except InputError as error:
                if error.key == _PLACED:
                    raise
                raise self._error_at_node(error, node, k) from None
            for name, result in zip(node.output, results, strict=False):
                if name:
                    scope[name] = result
            if depth == 0:
                self._note(node, results)
                for result in results:
                    if isinstance(result, np.ndarray) and is_named(node, result):
                        self.named_array(result)

    def _begin_round(self) -> None:
        """Count a round of a loop, which may have no nodes."""
        self._rounds += 1
        if self._rounds > MAX_ALL_ROUNDS:
            raise InputError(f"the loops of `{self.label}` have more than {MAX_ALL_ROUNDS:,} rounds")

    def _note(self, node: Any, results: Sequence[Value | None]) -> None:
        """Note to which node of the model the nodes belong that it has added, their names, and how a page writes it."""
        part = printable(node.name or node.output[0])
        added = 0
        for name, result in zip(node.output, results, strict=False):
            if isinstance(result, Node):
                self.variables.setdefault(result, variable_name(identifier(name)))
        for result in results:
            waiting = [result] if isinstance(result, Node) else []
            while waiting:
                n = waiting.pop()
                if n not in self.parts and n.args:
                    self.parts[n] = part
                    waiting += n.args
                    added += 1
        if added > _FORMULA:
            text = _call(node)
            for result in results:
                if isinstance(result, Node):
                    self.spans.setdefault(result, Span(Source(text, self.label), 0, len(text)))

    def _error_at_node(self, error: InputError, node: Any, k: int) -> InputError:
        named = f" `{printable(node.name)}`" if node.name else ""
        where = f"{printable(node.op_type)}, node{named} ({k + 1} of `{self.label}`)"
        return InputError(f"{where}: {error.message}", error.span, error.hint, key=_PLACED)

    def _results(self, node: Any, scope: Scope, opsets: Mapping[str, int], depth: int) -> Sequence[Value | None]:
        domain = _domain(node.domain)
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        inputs = [self._input(i, scope) for i in node.input]
        if (domain, node.op_type) in self.functions:
            return self._called(self.functions[domain, node.op_type], node, inputs, depth)
        if name in UNSUPPORTED:
            why, way_out = UNSUPPORTED[name]
            raise InputError(why, hint=way_out)
        if name in ("If", "Loop", "Scan"):
            graphs = {a.name: a.g for a in node.attribute if a.HasField("g")}
            attributes = {a.name: self._attribute(a) for a in node.attribute if a.name not in graphs}
            inner = Inner(self.run, self._begin_round, self.folder, scope, opsets, depth + 1, self.variables)
            with _fitting():
                return CONTROL[name](inner, inputs, graphs, attributes)
        opset = opsets.get(domain, 1)
        row = lookup(name, opset)
        if row is None:
            body = function_body(node, domain, opset, inputs)
            if body is None:
                raise _not_supported(name, domain, opset)
            return self._called(body, node, inputs, depth)
        attributes = {a.name: self._attribute(a) for a in node.attribute}
        inputs = _with_inputs(row, inputs, attributes)
        if not row.takes_any and (other := next((a for a in attributes if a not in row.attributes), None)):
            what = f"its attribute `{printable(other)}` is not supported"
            raise InputError(*((f"{what} in opset {opset}", None, _CONVERT) if opset < _OLD else (what,)))
        if missing := row.required - attributes.keys():
            raise InputError(f"its attribute `{min(missing)}` is missing")
        return self._computed(row, inputs, attributes, len(node.output))

    def _input(self, name: str, scope: Scope) -> Value | None:
        if not name:
            return None
        if name not in scope:
            raise InputError(f"its input `{printable(name)}` is not computed before it", hint="the model is damaged")
        return scope[name]

    def _attribute(self, attribute: Any) -> Any:
        from onnx import AttributeProto, helper

        if attribute.type == AttributeProto.TENSOR:
            return array(attribute.t, self.folder)
        try:
            value = helper.get_attribute_value(attribute)
        except Exception:
            raise InputError(f"its attribute `{printable(attribute.name)}` cannot be read") from None
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if attribute.type == AttributeProto.STRINGS:
            return [text.decode(errors="replace") for text in value]
        return list(value) if attribute.type in (AttributeProto.FLOATS, AttributeProto.INTS) else value

    def _computed(
        self, row: Operator, inputs: Sequence[Value | None], attributes: Mapping[str, Any], outputs: int
    ) -> Sequence[Value | None]:
        """Return the results of an operator of its inputs: numbers, where all inputs are."""
        given = dict(attributes)
        if "outputs" in row.attributes:
            given["outputs"] = outputs
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        with _fitting(), np.errstate(all="ignore"):
            arrays = [v for v in inputs if not isinstance(v, Node)]
            if len(arrays) == len(inputs):
                return self._numbers(row, arrays, given)
            return self._built(row, [*_paired(row, inputs)], given)

    def _built(
        self, row: Operator, pairs: Sequence[tuple[Parameter, Value | None]], given: Mapping[str, Any]
    ) -> list[Value | None]:
        """Return what an operator makes of its inputs."""
        result = row.build(*(self._argument(p, v) for p, v in pairs), **given)
        several = result if isinstance(result, tuple) else (result,)
        return [v if v is None or isinstance(v, Node) else np.asarray(v) for v in several]

    def _numbers(
        self, row: Operator, inputs: Sequence[Array | None], given: Mapping[str, Any]
    ) -> Sequence[Array | None]:
        """Return the results of an operator of known inputs, by a graph that is made once for the same shapes."""
        pairs = [*_paired(row, inputs)]
        values = {str(k): v for k, (p, v) in enumerate(pairs) if isinstance(v, np.ndarray) and takes_node(p)}
        key = None
        if len(values) == sum(v is not None for v in inputs) and all(isinstance(a, _PLAIN) for a in given.values()):
            key = (row, repr(given), *(None if v is None else (v.shape, v.dtype.name) for v in inputs))
        made = self._made.get(key)
        if made is None:
            leaves = {k: own_leaf(v) for k, v in values.items()}
            results = self._built(row, [(p, leaves.get(str(k), v)) for k, (p, v) in enumerate(pairs)], given)
            made = Folded.of(leaves, results)
            if key is not None:
                self._made[key] = made
        self._spend(sum(_bytes(v, inputs) for v in made.results))
        return made.numbers(values)

    def _spend(self, count: int) -> None:
        """Count the bytes of numbers that are computed while the model is read.

        Errors: `InputError` where they are too many.
        """
        self._bytes += count
        if self._bytes > MAX_BYTES:
            raise InputError(f"the constants that the model computes have more than {MAX_BYTES // 2**20:,} MiB")

    def _argument(self, parameter: Parameter, value: Value | None) -> Value | None:
        """Return an input as its parameter wants it."""
        kind = str(parameter.annotation)
        if value is None:
            if "None" not in kind:
                raise InputError(f"its input `{parameter.name}` is missing")
            return None
        if takes_node(parameter):
            return self.lift(value)
        if kind.startswith("Array") and isinstance(value, Node):
            if value.is_constant:
                return np.array([float(v) for v in value.values]).reshape(value.shape)
            raise InputError(DEPENDS.format(parameter.name), hint=KNOWN)
        return value

    def _called(self, function: Any, node: Any, inputs: Sequence[Value | None], depth: int) -> Sequence[Value | None]:
        """Return the results of a function, with the attributes of the call in place of its parameters."""
        if depth >= MAX_DEPTH:
            raise InputError(f"functions call each other more than {MAX_DEPTH} deep", hint="the model is damaged")
        attributes = {a.name: a for a in node.attribute}
        defaults = {a.name: a for a in function.attribute_proto}
        scope: Scope = dict(zip(function.input, [*inputs, *[None] * len(function.input)], strict=False))
        versions = {_domain(entry.domain): entry.version for entry in function.opset_import}
        nodes = [_with_attributes(n, defaults | attributes) for n in function.node]
        self.run(nodes, scope, self.opsets | versions, depth + 1)
        return [scope.get(name) for name in function.output]


_PLACED = "a node of a model"
_OLD = 7  # the opset since which arrays broadcast as in NumPy
_CONVERT = "`onnx.version_converter.convert_version(model, 13)` converts most models"


def _not_supported(name: str, domain: str, opset: int) -> InputError:
    """Return the error of an operator that gradcli does not have, or not in this version."""
    if name in OPERATORS:
        return InputError(f"this operator is not supported in opset {opset}", hint=_CONVERT)
    if domain.startswith("com.microsoft"):
        hint = "only ONNX Runtime has it: read the model as it was exported before optimisation, or export ONNX's own"
        return InputError(f"this operator of `{printable(domain)}` is not supported", hint=hint)
    of = f" of the domain `{printable(domain)}`" if domain else ""
    return InputError(f"this operator{of} is not supported", hint="`gradcli explain models` lists those that are")


@contextmanager
def _fitting() -> Iterator[None]:
    """Raise `InputError` for inputs and attributes that an operator cannot have."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # hostile attributes of any type and size
        raise InputError(f"its inputs or attributes do not fit: {printable(str(error)[:200])}") from None


_PLAIN = (int, float, str, list)  # attributes that a text tells apart


def takes_node(parameter: Parameter) -> bool:
    """Return whether an operator takes an input as a node, known or not."""
    return parameter.annotation is Parameter.empty or str(parameter.annotation).startswith("Node")


def is_named(node: Any, value: Value) -> bool:
    """Return whether a result of a node stands in formulas by its name: a node, and an array as an initializer does."""
    return isinstance(value, Node) or (value.dtype.kind == "f" and value.size > 1 and node.op_type != "Constant")


def _bytes(value: Value | None, inputs: Sequence[Value | None]) -> int:
    """Return the memory that the numbers of a result take, which a view of an input does not."""
    if isinstance(value, Node):
        whole = value
        while whole.args and OPERATIONS[whole.op].kind == "view":
            (whole,) = whole.args
        return 0 if whole.is_leaf else 8 * value.size
    arrays = [v for v in inputs if isinstance(v, np.ndarray)]
    return 0 if value is None or any(np.may_share_memory(value, v) for v in arrays) else value.nbytes


def _call(node: Any) -> str:
    """Return a node of a model as a call: `Conv(x, weight, pads=[1, 1, 1, 1])`, in the names that formulas have."""
    from onnx import helper

    arguments = [identifier(name) if name else "None" for name in node.input]
    for attribute in node.attribute:
        if attribute.type in _WRITTEN:
            value = helper.get_attribute_value(attribute)
            value = value.decode(errors="replace") if isinstance(value, bytes) else value
            arguments.append(f"{attribute.name}={_number(value)}")
    return printable(f"{node.op_type}({', '.join(arguments)})")


def _number(value: Any) -> str:
    """Return the value of an attribute as text, a float32 with its shortest decimal."""
    if isinstance(value, float):
        return str(np.float32(value))
    if isinstance(value, int | str):
        return repr(value)
    return f"[{', '.join(map(_number, value)) if len(value) <= _LISTED else f'{len(value):,} numbers'}]"


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _with_inputs(row: Operator, inputs: list[Value | None], attributes: dict[str, Any]) -> list[Value | None]:
    """Return the inputs of an operator with those that its opset has as attributes, which are taken from these."""
    for k, p in enumerate(row.inputs):
        if p.name in attributes:
            inputs = [*inputs, *[None] * (k + 1 - len(inputs))]
            inputs[k] = np.asarray(attributes.pop(p.name))
    return inputs


def _paired(row: Operator, inputs: Sequence[Value | None]) -> Iterable[tuple[Parameter, Value | None]]:
    """Yield the parameters of an operator with its inputs; one that takes any number has the rest."""
    parameters = row.inputs
    if parameters and parameters[-1].kind == Parameter.VAR_POSITIONAL:
        fixed = parameters[:-1]
        parameters = [*fixed, *[parameters[-1]] * (len(inputs) - len(fixed))]
    if len(inputs) > len(parameters):
        raise InputError(f"it has {len(inputs)} inputs, and takes {len(parameters)}")
    missing = [p for p in parameters[len(inputs) :] if p.default is Parameter.empty]
    if missing:
        raise InputError(f"its input `{missing[0].name}` is missing")
    return zip(parameters, inputs, strict=False)


def _with_attributes(node: Any, attributes: Mapping[str, Any]) -> Any:
    """Return a node of a function with the attributes that it takes from the call."""
    if not any(a.ref_attr_name for a in node.attribute):
        return node
    result = type(node)()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            result.attribute.append(attribute)
        elif attribute.ref_attr_name in attributes:
            copy = result.attribute.add()
            copy.CopyFrom(attributes[attribute.ref_attr_name])
            copy.name = attribute.name
    return result


def function_body(node: Any, domain: str, opset: int, inputs: Sequence[Value | None]) -> Any:
    """Return the function that defines an operator, with the defaults of its attributes; None if there is none."""
    from onnx import FunctionProto, defs

    try:
        schema = defs.get_schema(node.op_type, opset, domain)
    except Exception:  # SchemaError has no public name in all versions
        return None
    if schema.has_function:
        body = FunctionProto()
        body.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        types = [_type(v) for v in inputs]
        text = schema.get_context_dependent_function(node.SerializeToString(), types)
        if not text:
            raise InputError("the specification does not expand it for these inputs")
        body = FunctionProto.FromString(text)
    else:
        return None
    known = {a.name for a in body.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in known and attribute.default_value.name:
            body.attribute_proto.append(attribute.default_value)
    return body


def _type(value: Value | None) -> bytes:
    """Return the type of a value, as a protobuf."""
    from onnx import TensorProto, TypeProto, helper

    if value is None:
        return bytes(TypeProto().SerializeToString())
    if isinstance(value, Node):
        kind = TensorProto.BOOL if value.dtype == "bool" else TensorProto.FLOAT
    else:
        kind = TensorProto.FLOAT if value.dtype.kind == "f" else helper.np_dtype_to_tensor_dtype(value.dtype)
    return bytes(helper.make_tensor_type_proto(kind, list(value.shape)).SerializeToString())
