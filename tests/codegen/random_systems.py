"""Random systems: numbers, vectors and matrices, in the operations that every target can say."""

import random

UNARY = ["sin({})", "cos({})", "exp(-{}**2)", "tanh({})", "sqrt(1 + {}**2)", "log(2 + cos({}))", "atan({})", "abs({})",
         "relu({})", "sigmoid({})", "softplus({})", "{}**3", "1/(2 + {}**2)", "-{}", "cbrt(2 + sin({}))", "floor({})",
         "expm1({}/4)", "log1p({}**2)", "sinh({}/3)", "sign({})*{}", "where({} > 0, {}, 2*{})"]  # fmt: skip
BINARY = ["{} + {}", "{} - {}", "({})*({})", "({})/(2 + ({})**2)", "maximum({}, {})", "minimum({}, {})",
          "atan2({}, 3 + {}**2)", "hypot({}, 1 + {}**2)", "(2 + cos({}))**({})"]  # fmt: skip
TO_NUMBER = ["sum({})", "mean({})", "prod({})", "max({})", "min({})", "norm({} + 3)", "{}[0]", "{}[-1]",
             "logsumexp({})", "var({})", "std({} + [1, 2, 5])"]  # fmt: skip
TO_VECTOR = ["softmax({})", "cumsum({}, 0)", "{}[::-1]", "M @ {}", "{} @ M", "concatenate([{}[1:], {}[:1]])",
              "cumprod({}, 0)",
             "inv(M + 4*[[1,0,0],[0,1,0],[0,0,1]]) @ {}", "diag(outer({}, x))", "log_softmax({})", "{}[[2, 0, 0]]",
             "cross({}, x)", "triu(M) @ {}", "M.T @ {}", "sum(outer({}, z), axis=0)",
              "einsum('i,ij->j', {}, M)"]  # fmt: skip


def system(seed):
    """Return a system of a, b, x (3), z (3) and M (3 × 3), as text."""
    draw = random.Random(seed)
    numbers, vectors = ["a", "b"], ["x", "z"]
    lines = []
    for k in range(draw.randint(2, 5)):
        kind = draw.choice(["number", "number", "vector", "vector", "reduce", "both"])
        name = f"h{k}"
        if kind == "number":
            lines.append(f"{name} = {elementwise(draw, numbers, draw.randint(1, 2))}")
            numbers.append(name)
        elif kind == "vector":
            inner = elementwise(draw, vectors, 1)
            lines.append(f"{name} = {filled(draw.choice(TO_VECTOR), f'({inner})')}")
            vectors.append(name)
        elif kind == "reduce":
            lines.append(f"{name} = {filled(draw.choice(TO_NUMBER), f'({elementwise(draw, vectors, 1)})')}")
            numbers.append(name)
        else:
            lines.append(f"{name} = ({draw.choice(numbers)})*({draw.choice(vectors)})/4")
            vectors.append(name)
    lines.append(f"y = {draw.choice(numbers)}*{draw.choice(vectors)} + {draw.choice(vectors)}")
    return "\n".join(lines)


def filled(pattern, text):
    return pattern.replace("{}", text)


def elementwise(draw, names, depth):
    """Return an expression of numbers, or of vectors."""
    if depth == 0:
        return draw.choice(names)
    if draw.random() < 0.5:
        return filled(draw.choice(UNARY), f"({elementwise(draw, names, depth - 1)})")
    pattern = draw.choice(BINARY)
    return pattern.format(*(f"({elementwise(draw, names, depth - 1)})" for _ in range(2)))
