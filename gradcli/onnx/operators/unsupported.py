"""Operators that are not supported: why, and what to do instead."""

from __future__ import annotations

from gradcli.onnx.register import UNSUPPORTED

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
