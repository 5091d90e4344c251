"""Expressions at points where they are compared with PyTorch: those that gradcli and PyTorch read alike.

A point of whole numbers is one without a gradient.  `record_pytorch.py` writes what PyTorch says of them.
"""

from math import inf, nan

CORNERS = [
    -inf, -1e200, -1000.0, -50.0, -1.0, -0.5, -1e-9, -0.0, 0.0, 1e-9, 0.3, 1.0, 2.5, 50.0, 1000.0, 1e200, inf, nan,
]  # fmt: skip
FINITE = [x for x in CORNERS if abs(x) < inf]
HALVES = [-inf, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370497.0, 1e300, nan]
DIGITS = [-1250.0, -0.375, 0.125, 0.5, 2.625, 150.0, 250.0, 1e6]

# Of two numbers, and of three.
LOGS = [
    [1, 0, -inf, inf, inf, 1000, -inf, 3, inf, nan, 1, 1e300],
    [2, 0, -inf, inf, -inf, -1000, 3, -inf, 1, 1, nan, 1],
]
REMAINDERS = [
    [5.5, -5.5, 5.5, -4, 1, inf, 2, -2, 0.9999999999999999, 0, nan, 2],
    [2, 2, -2, 2, 0, 2, inf, inf, 1, 3, 2, nan],
]
BASES = [[8, 0, -1, 9, 1, inf, 2, nan], [2, 10, 2, 3, 1, 2, 0.5, 2]]
LERPS = [
    [1, 1, 1, 1, inf, 1, 1, 0.1, 1, 1, 0],
    [3, 3, 3, 1e300, 1, inf, inf, 0.7, 3, 3, 1],
    [0.25, 0.5, 0.75, 0.3, 0, 1, 0, 1, -2, nan, -0.5],
]
# Predictions and targets.
RESIDUALS = [[1, 1, 1.5, 0.5, 3, 1, inf, nan, -inf, 1e200, 0], [1, 0.5, 0.5, 1.5, 1, 3, 1, 1, 0, 0, 0.25]]
CHANCES = [[0.3, 0.3, 0, 0, 0, 1, 1, 1, 1e-50, 1e-50, 1e-5, 1e-13], [1, 0.2, 0, 1, 0.5, 1, 0, 0.5, 1, 0, 1, 0]]
LOGITS = [[0.3, 0, 50, 50, -50, -50, 1000, -1000, inf, inf, -inf, nan, 40], [1, 0.2, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0.5]]

SCORES = [[1.0, -0.5, 2.0], [0.25, 3.0, -1.0]]
LIKELY = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
PICTURE = [[[0.1, 1.0], [2.0, -1.0], [0.5, 0.0]], [[1.5, -2.0], [0.3, 0.7], [-0.4, 0.9]]]
RUNNING = "[1.0, -0.5, 2.0], [0.5, 2.0, 0.25]"
FAR = [[1000.0, -1000.0, 0.0], [1e16, 1e16 + 2, 0.0]]


def floats(*columns):
    """Return the columns as values of x, z and w."""
    return {name: [float(e) for e in column] for name, column in zip("xzw", columns, strict=False)}


UNARY = [
    *("elu(x)", "elu(x, 0.5)", "elu(x, alpha=0)", "selu(x)", "celu(x)", "celu(x, 0.5)", "celu(x, alpha=-2)", "mish(x)"),
    *("hardtanh(x)", "hardtanh(x, 0, 2.5)", "hardtanh(x, min_val=-0.5, max_val=1)", "logsigmoid(x)", "tanhshrink(x)"),
    *("ndtr(x)", "trunc(x)", "fix(x)", "round(x)", "frac(x)", "detach(x)*x + x.detach()", "x.trunc() + x.frac()"),
    *("zeros_like(x)", "ones_like(x)*x", "log_softmax(x[5:15], 0)", "log(x, 3)"),
]

CASES = [
    *((text, floats(CORNERS)) for text in UNARY),
    ("softsign(x)", floats(FINITE)),
    *((f"round(x{more})", floats(HALVES)) for more in ("", ", decimals=0")),
    *((f"round(x, decimals={d})", floats(DIGITS)) for d in (2, 1, -1, -2)),
    ("logaddexp(x, z)", floats(*LOGS)),
    ("fmod(x, z)", floats(*REMAINDERS)),
    ("log(x, z)", floats(*BASES)),
    ("log(x, 2)", floats(BASES[0])),
    ("log(x, 10)", floats(BASES[0])),
    ("lerp(x, z, w)", floats(*LERPS)),
    *((f"lerp(x, z, {w})", floats([1, 0.1, 1e300], [3, 0.7, 1])) for w in (0, 0.25, 0.5, 1)),
    # Along an axis
    *((f"log_softmax(x, {axis})", {"x": SCORES}) for axis in ("0", "1", "dim=-1")),
    ("log_softmax(x, 1)", {"x": FAR}),
    ("log_softmax(x, 1)", {"x": [[inf, 0.0, 0.0], [-inf, 0.0, 0.0], [-inf, -inf, -inf], [nan, 0.0, 0.0]]}),
    # Losses of numbers
    *(
        (f"{loss}(x, z, reduction='none'{more})", floats(*RESIDUALS))
        for loss, more in [
            *(
                ("mse_loss", ""),
                ("l1_loss", ""),
                ("huber_loss", ""),
                ("huber_loss", ", delta=0.5"),
                ("smooth_l1_loss", ""),
            ),
            *(("smooth_l1_loss", ", beta=2"), ("smooth_l1_loss", ", beta=0")),
        ]
    ),
    *(
        (f"{loss}(x, z{more})", {"x": SCORES, "z": LIKELY})
        for loss in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss")
        for more in ("", ", reduction='sum'", ", reduction='mean'")
    ),
    # Losses of probabilities
    ("binary_cross_entropy(x, z, reduction='none')", floats(*CHANCES)),
    ("binary_cross_entropy_with_logits(x, z, reduction='none')", floats(*LOGITS)),
    ("binary_cross_entropy_with_logits(x, z, reduction='none', pos_weight=[3.0])", floats(*LOGITS)),
    *(
        (f"binary_cross_entropy{more})", {"x": LIKELY, "z": LIKELY[::-1], "w": SCORES})
        for more in [
            *("(x, z", "(x, z, [[1.0, 2.0, 0.5], [0.25, 1.0, 3.0]]", "(x, z, reduction='sum'", "_with_logits(w, z"),
            "_with_logits(w, z, [0.25, 1.0, 3.0], reduction='sum', pos_weight=[2.0, 0.5, 1.0]",
        ]
    ),
    # Losses of classes
    *(
        (f"cross_entropy(x, {target})", {"x": SCORES})
        for target in [
            *("[2, 0]", "[1, -100]", "[-100, -100]", "[0, 1], reduction='sum'", "[0, 1], reduction='none'"),
            *("[2, 1], [1.0, 2.0, 0.5]", "[2, 1], weight=[1.0, 2.0, 0.5], reduction='sum'", "[2, 0], ignore_index=2"),
            *("[2, 1], label_smoothing=0.1", "[2, 1], [1.0, 2.0, 0.5], label_smoothing=0.3"),
            *("[2, -100], label_smoothing=0.1", "[2, -100], [1.0, 2.0, 0.5], label_smoothing=0.3, reduction='sum'"),
            *(
                "[[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]",
                "[[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], [1.0, 2.0, 0.5], reduction='sum'",
            ),
            "[[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]], [1.0, 2.0, 0.5], label_smoothing=0.25",
        ]
    ),
    ("cross_entropy(x, z)", {"x": SCORES, "z": LIKELY}),
    ("cross_entropy(x, z)", {"x": SCORES, "z": [2, 0]}),
    ("cross_entropy(x, z, [1.0, 2.0, 0.5], label_smoothing=0.2)", {"x": SCORES, "z": [2, 0]}),
    ("cross_entropy(x, [0, 2])", {"x": FAR}),
    *(
        (f"cross_entropy(x, {t})", {"x": SCORES[0]})
        for t in ("0", "2", "-100", "1, [1.0, 2.0, 0.5]", "[0.2, 0.3, 0.5]")
    ),
    *(
        (f"cross_entropy(x, {target})", {"x": PICTURE})
        for target in ("[[0, 2], [1, 1]]", "[[0, 2], [1, 1]], [1.0, 2.0, 0.5], ignore_index=1, reduction='none'")
    ),
    *(
        (f"nll_loss(x, {more})", {"x": PICTURE})
        for more in ("[[0, 2], [1, 1]]", "[[0, 2], [1, -100]], [1.0, 2.0, 0.5]")
    ),
    *(
        (f"nll_loss(x, {more})", {"x": [[-inf, -0.5, nan], [0.0, -inf, -1.0]]})
        for more in ("[1, 0]", "[0, 2]", "[1, 2], reduction='sum'", "[2, 1], reduction='none'")
    ),
    ("nll_loss(x, 1)", {"x": SCORES[0]}),
    # Normalisations
    *(
        (f"layer_norm(x, {more})", {"x": PICTURE, "w": SCORES[0][:2], "z": SCORES[1][:2]})
        for more in ("(2,)", "(3, 2)", "(2,), w", "(2,), w, z", "(2,), bias=z, weight=w, eps=0.5")
    ),
    ("layer_norm(x, (3,))", {"x": [[2.0, 2.0, 2.0]]}),
    *(
        (f"rms_norm(x, {more})", {"x": PICTURE, "w": SCORES[0][:2]})
        for more in ("(2,)", "(3, 2)", "(2,), w", "(2,), eps=0.5")
    ),
    *(
        (f"group_norm(x, {more})", {"x": PICTURE, "w": SCORES[0], "z": [0.5, 2.0, 0.25]})
        for more in ("1", "3", "3, w", "1, w, z", "3, bias=z, weight=w, eps=0.5")
    ),
    *(
        (f"instance_norm(x{more})", {"x": PICTURE, "w": SCORES[0], "z": [0.5, 2.0, 0.25]})
        for more in ("", ", weight=w", ", weight=w, bias=z, eps=0.5", f", {RUNNING}, use_input_stats=False")
    ),
    *(
        (f"batch_norm(x, {more})", {"x": x, "w": SCORES[0], "z": [0.5, 2.0, 0.25]})
        for x in (SCORES, PICTURE)
        for more in [
            *("None, None, training=True", RUNNING, f"{RUNNING}, training=True", f"{RUNNING}, eps=0.5"),
            *(f"{RUNNING}, z, w", "None, None, weight=z, bias=w, training=True, momentum=0.3, eps=0.01"),
        ]
    ),
    # Creation
    *(
        (text, {"x": SCORES})
        for text in [
            *(
                "zeros(3) + x", "ones(2, 3)*x", "ones((2, 3))@x.T", "full((2, 3), 1.5)*x", "full((2,), 3.0)@x",
                "eye(2)@x",
            ),
            *(
                "eye(2, 3)*x",
                "x@eye(3)",
                "arange(3)*x",
                "arange(1, 4)*x",
                "arange(1, 2.5, 0.5)*x",
                "arange(3, 0, -1)*x",
            ),
            *(
                "linspace(0, 1, 3)*x",
                "linspace(1, -1, steps=3)*x",
                "linspace(2, 7, 1)*x",
                "zeros_like(x) + ones_like(x)",
            ),
        ]
    ),
]  # fmt: skip
