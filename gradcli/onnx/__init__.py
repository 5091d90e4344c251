"""ONNX models → Graph: a table from operator to vocabulary, and the translator that uses it."""
