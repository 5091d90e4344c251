"""ONNX models → Graph: a table from operator to vocabulary, and what reads a model with it."""
