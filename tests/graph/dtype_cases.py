"""What both the record of PyTorch's dtypes and the test against it go through."""

DTYPES = ["bool", "uint8", "int32", "int64", "float32", "float64"]
UNARY = ["sin", "exp", "sqrt", "abs", "floor"]
REDUCTIONS = ["sum", "prod"]
BINARY = ["add", "mul", "div", "mod", "maximum", "lt", "eq"]
NUMBERS = [2, 0.1]
VALUES = [[1, 2, 3], [2, 1, 3]]
REFUSED = {"abs bool", "floor bool", "mod bool bool"}  # by PyTorch, or by NumPy
