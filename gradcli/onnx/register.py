"""The register of operators.

An operator is a function of its inputs, which are positional, and of its attributes, which are keywords with the
defaults of the specification.  The annotation of an input says how it is read: `Node`, or none, is a node, `Array` must
be known while the model is read (integers that are shapes, axes or indices), `Value` is either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import Parameter, signature
from typing import Any

from gradcli.onnx.values import Value

Build = Callable[..., Any]


class Operator:
    """One row of the table: `build` returns the result."""

    def __init__(self, build: Build) -> None:
        self.build = build

    @cached_property
    def _parameters(self) -> list[Parameter]:
        return list(signature(self.build).parameters.values())

    @cached_property
    def inputs(self) -> list[Parameter]:
        """The parameters that are inputs."""
        return [p for p in self._parameters if p.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)]

    @cached_property
    def attributes(self) -> set[str]:
        """The names of the attributes."""
        return {p.name for p in self._parameters if p.kind == Parameter.KEYWORD_ONLY}

    @cached_property
    def required(self) -> set[str]:
        """The names of the attributes that have no defaults."""
        return {p.name for p in self._parameters if p.kind == Parameter.KEYWORD_ONLY and p.default is Parameter.empty}

    @cached_property
    def takes_any(self) -> bool:
        """Whether it takes attributes of any name."""
        return any(p.kind == Parameter.VAR_KEYWORD for p in self._parameters)


OPERATORS: dict[str, dict[int, Operator]] = {}  # by name, with its domain unless it is ai.onnx, and by first opset
UNSUPPORTED: dict[str, tuple[str, str]] = {}  # why an operator is not supported, and what to do


def add(build: Build, *names: str, since: int = 1) -> None:
    """Register the function that builds the result of operators, from an opset on."""
    for name in names:
        OPERATORS.setdefault(name, {})[since] = Operator(build)


def operator(*names: str, since: int = 1) -> Callable[[Build], Build]:
    """Return a decorator that registers a function, as `add` does."""

    def register(build: Build) -> Build:
        add(build, *names, since=since)
        return build

    return register


def lookup(name: str, opset: int) -> Operator | None:
    """Return the row of an operator in the version of an opset; None where there is none."""
    versions = [since for since in OPERATORS.get(name, {}) if since <= opset]
    return OPERATORS[name][max(versions)] if versions else None


def first(values: Value | tuple[Value, ...]) -> Value:
    """Return the only result, or the first of several."""
    return values[0] if isinstance(values, tuple) else values


_QUANTISED = ("it computes with quantised integers", "export the model before quantisation")
_SEQUENCE = ("sequences and optional values are not supported", "export the model with arrays alone")
_TEXT = ("it computes with text", "differentiate the part of the model after it: cut the model at its result")
_RANDOM = ("its result is random", "export the model for inference, or make its result an input")
_TRAINING = ("it trains a model", "export the model for inference")
_IMAGE = ("it reads an encoded image", "make its result an input")
_CHOICE = ("it chooses elements by values of the inputs, so the shape of its result varies", "make its result an input")

_REASONS: dict[tuple[str, str], str] = {
    _QUANTISED: "QuantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger",
    _SEQUENCE: "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
    "SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement",
    _TEXT: "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer ai.onnx.ml.CategoryMapper "
    "ai.onnx.ml.DictVectorizer ai.onnx.ml.CastMap",
    _RANDOM: "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
    _TRAINING: "ai.onnx.preview.training.Adagrad ai.onnx.preview.training.Adam ai.onnx.preview.training.Gradient "
    "ai.onnx.preview.training.Momentum",
    _IMAGE: "ImageDecoder",
    _CHOICE: "NonMaxSuppression",
}
UNSUPPORTED.update({name: reason for reason, names in _REASONS.items() for name in names.split()})
