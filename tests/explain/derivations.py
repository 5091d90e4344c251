"""Derivations from textbooks and papers of different fields, as they stand there and as people get them wrong.

Each has its source, the system, the shapes of its inputs, the right claims, and wrong claims with words that must stand
in what is said of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Derivation(NamedTuple):
    source: str
    system: str
    shapes: dict[str, tuple[int, ...]]
    right: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...] = ()


_ATTENTION = "S = Q @ K.T/sqrt(2); P = softmax(S, axis=1); O = P @ V"
_LSTM = "i = sigmoid(a); f = sigmoid(b); g = tanh(d); o = sigmoid(q); c = f*c0 + i*g; h = o*tanh(c)"
_BLACK_SCHOLES = (
    "d1 = (log(S/K) + (r + s**2/2)*T)/(s*sqrt(T)); d2 = d1 - s*sqrt(T); C = S*ndtr(d1) - K*exp(-r*T)*ndtr(d2)"
)
_PHI = "exp(-d1**2/2)/sqrt(2*pi)"
_COX = "R = triu(ones(4, 4)); E = exp(X @ b); l = sum(X @ b - log(R @ E))"
_NORMED = "m = mean(x); s = sqrt(mean((x - m)**2) + 0.00001); h = (x - m)/s; y = g*h + b"
_LAYER = "m = mean(x, axis=1, keepdims=True); s = sqrt(mean((x - m)**2, axis=1, keepdims=True)); h = (x - m)/s"
_DOUBLE = (
    "T = m1*l1**2*w1**2/2 + m2*(l1**2*w1**2 + l2**2*w2**2 + 2*l1*l2*w1*w2*cos(t1 - t2))/2; "
    "V = -(m1 + m2)*g*l1*cos(t1) - m2*g*l2*cos(t2); L = T - V"
)

DERIVATIONS = [
    Derivation(
        "Kalman gain by the trace of the posterior covariance: Gelb, Applied Optimal Estimation (1974), 4.2",
        "P = A @ A.T; R = B @ B.T; M = eye(2) - K @ H; J = trace(M @ P @ M.T + K @ R @ K.T)",
        {"A": (2, 2), "B": (2, 2), "K": (2, 2), "H": (2, 2)},
        ("dJ/dK = -2*M @ P @ H.T + 2*K @ R",),
        (("dJ/dK = -2*P @ H.T + 2*K @ R", "missing: + 2*K @ H @ (P @ H.T)"),),
    ),
    Derivation(
        "Rayleigh quotient, for principal components: Golub and Van Loan, Matrix Computations, 8.2",
        "r = (x @ A @ x)/(x @ x)",
        {"x": (3,), "A": (3, 3)},
        ("dr/dx = (A @ x + A.T @ x - 2*r*x)/(x @ x)",),
        (("dr/dx = 2*(A @ x - r*x)/(x @ x)", "right only where A is symmetric"),),
    ),
    Derivation(
        "Responsibilities of a Gaussian mixture: Bishop, Pattern Recognition and Machine Learning (2006), 9.2",
        "q = log(w) - log(s) - (x - m)**2/(2*s**2); L = logsumexp(q)",
        {"w": (3,), "s": (3,), "m": (3,)},
        ("dL/dm = softmax(q)*(x - m)/s**2", "dL/ds = softmax(q)*((x - m)**2/s**3 - 1/s)"),
        (("dL/ds = softmax(q)*(x - m)**2/s**3", "missing: - exp(q - L)/s"),),
    ),
    Derivation(
        "Forget gate of an LSTM cell: Hochreiter and Schmidhuber, Neural Computation 9 (1997)",
        _LSTM,
        dict.fromkeys(("a", "b", "d", "q", "c0"), (2,)),
        ("b.grad = v*o*(1 - tanh(c)**2)*c0*f*(1 - f)", "a.grad = v*o*(1 - tanh(c)**2)*g*i*(1 - i)"),
        (("b.grad = v*o*(1 - c**2)*c0*f*(1 - f)", "c should be tanh(c)"),),
    ),
    Derivation(
        "Batch normalisation: Ioffe and Szegedy, Batch Normalization (2015), section 3",
        _NORMED,
        {"x": (4,)},
        ("x.grad = g/(4*s)*(4*v - sum(v) - h*sum(v*h))", "g.grad = sum(v*h)", "b.grad = sum(v)"),
        (("x.grad = g/(4*s)*(4*v - sum(v))", "missing"),),
    ),
    Derivation(
        "Layer normalisation: Ba, Kiros and Hinton, Layer Normalization (2016)",
        _LAYER,
        {"x": (3, 3)},
        ("x.grad = (v - mean(v, axis=1, keepdims=True) - h*mean(v*h, axis=1, keepdims=True))/s",),
        (("x.grad = (v - mean(v, axis=0, keepdims=True) - h*mean(v*h, axis=1, keepdims=True))/s", "wrong axis"),),
    ),
    Derivation(
        "Softmax and cross-entropy: Goodfellow, Bengio and Courville, Deep Learning (2016), 6.2",
        "p = softmax(z); L = -sum(t*log(p))",
        {"z": (3,), "t": (3,)},
        ("dL/dz = sum(t)*p - t",),
        (("dL/dz = p - t", "right only where t sums to 1"),),
    ),
    Derivation(
        "Scaled dot-product attention: Vaswani and others, Attention Is All You Need (2017)",
        _ATTENTION,
        {"Q": (2, 2), "K": (3, 2), "V": (3, 2)},
        (
            "V.grad = P.T @ v",
            "Q.grad = (P*(v @ V.T - sum(v @ V.T*P, axis=1, keepdims=True))) @ K/sqrt(2)",
            "K.grad = (P*(v @ V.T - sum(v @ V.T*P, axis=1, keepdims=True))).T @ Q/sqrt(2)",
        ),
        (("Q.grad = (P*(v @ V.T - sum(v @ V.T*P, axis=1, keepdims=True))) @ K", "yours is sqrt(2) times it"),),
    ),
    Derivation(
        "Logistic regression: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 4.4",
        "L = mean(log(1 + exp(-t*(X @ w))))",
        {"X": (5, 2), "w": (2,), "t": (5,)},
        ("dL/dw = -X.T @ (t*sigmoid(-t*(X @ w)))/5",),
        (("dL/dw = -X.T @ (t*sigmoid(-t*(X @ w)))", "1/n"),),
    ),
    Derivation(
        "Support vector machine, hinge loss: Shalev-Shwartz and others, Pegasos (2007)",
        "L = a*(w @ w)/2 + sum(maximum(0, 1 - t*(X @ w)))",
        {"X": (4, 2), "w": (2,), "t": (4,)},
        ("dL/dw = a*w - X.T @ (t*where(t*(X @ w) < 1, 1, 0))",),
        (("dL/dw = a*w + X.T @ (t*where(t*(X @ w) < 1, 1, 0))", "the sign of the term"),),
    ),
    Derivation(
        "Robust loss: Huber, Robust Estimation of a Location Parameter (1964)",
        "r = x - m; L = where(abs(r) <= 1, r**2/2, abs(r) - 1/2)",
        {},
        ("dL/dx = clamp(r, -1, 1)", "dL/dm = -clamp(r, -1, 1)"),
        (("dL/dx = where(abs(r) <= 1, r, 1)", "it is yours + (where(abs(x - m) <= 1, 0, sign(x - m) - 1))"),),
    ),
    Derivation(
        "Partial likelihood of survival times: Cox, Regression Models and Life-Tables (1972)",
        _COX,
        {"X": (4, 2), "b": (2,)},
        ("dl/db = sum(X, axis=0) - X.T @ (E*(R.T @ (1/(R @ E))))",),
        (("dl/db = sum(X, axis=0) - X.T @ (E*(R @ (1/(R @ E))))", "transposed"),),
    ),
    Derivation(
        "The Greeks: Black and Scholes, The Pricing of Options and Corporate Liabilities (1973)",
        _BLACK_SCHOLES,
        {},
        ("dC/dS = ndtr(d1)", f"dC/ds = S*{_PHI}*sqrt(T)", f"d2C/dS2 = {_PHI}/(S*s*sqrt(T))"),
        ((f"d2C/dS2 = {_PHI}/(S*s)", "divided by sqrt(T)"),),
    ),
    Derivation(
        "Enzyme kinetics: Michaelis and Menten (1913)",
        "v = V*S/(K + S)",
        {},
        ("dv/dS = V*K/(K + S)**2", "dv/dK = -V*S/(K + S)**2"),
        (("dv/dK = V*S/(K + S)**2", "the sign"),),
    ),
    Derivation(
        "Force of the Lennard-Jones potential: Frenkel and Smit, Understanding Molecular Simulation, 4.2",
        "V = 4*u*((s/r)**12 - (s/r)**6)",
        {},
        ("dV/dr = -24*u*(2*(s/r)**12 - (s/r)**6)/r",),
        (("dV/dr = -24*u*(2*(s/r)**13 - (s/r)**7)", "divided by s"),),
    ),
    Derivation(
        "Double pendulum: Landau and Lifshitz, Mechanics, section 5",
        _DOUBLE,
        {},
        (
            "dL/dw1 = (m1 + m2)*l1**2*w1 + m2*l1*l2*w2*cos(t1 - t2)",
            "dL/dt2 = m2*l1*l2*w1*w2*sin(t1 - t2) - m2*g*l2*sin(t2)",
        ),
        (
            ("dL/dw1 = (m1 + m2)*l1**2*w1", "missing: + l1*l2*m2*w2*cos(t1 - t2)"),
            ("dL/dt2 = -m2*l1*l2*w1*w2*sin(t1 - t2) - m2*g*l2*sin(t2)", "the sign of"),
        ),
    ),
    Derivation(
        "Rotation by a quaternion: Sola, Quaternion Kinematics for the Error-State Kalman Filter (2017), 4.3",
        "k = 2*cross(u, x); y = x + w*k + cross(u, k)",
        {"u": (3,), "x": (3,)},
        ("dy/dw = 2*cross(u, x)", "x.grad = v - cross(u, 2*w*v) + cross(u, 2*cross(u, v))"),
        (("dy/dw = cross(u, x)", "1/2 of it"),),
    ),
    Derivation(
        "Pinhole camera: Hartley and Zisserman, Multiple View Geometry, 6.1",
        "p = [f*X/Z + c, f*Y/Z + d]",
        {},
        ("dp/dX = [f/Z, 0]", "dp/dZ = [-f*X/Z**2, -f*Y/Z**2]"),
        (("dp/dZ = [-f*X/Z, -f*Y/Z]", "exponent off by one"),),
    ),
    Derivation(
        "Triplet loss: Schroff, Kalenichenko and Philbin, FaceNet (2015)",
        "h = sum((a - p)**2) - sum((a - n)**2) + m; L = maximum(0, h)",
        {"a": (3,), "p": (3,), "n": (3,)},
        ("dL/da = where(h > 0, 2*(n - p), 0)", "dL/dp = where(h > 0, -2*(a - p), 0)"),
        (("dL/da = 2*(n - p)", "right only where h > 0"), ("dL/dn = where(h > 0, -2*(a - n), 0)", "the sign")),
    ),
    Derivation(
        "Kullback-Leibler divergence of two Gaussians: Kullback, Information Theory and Statistics (1959)",
        "D = log(s2/s1) + (s1**2 + (m1 - m2)**2)/(2*s2**2) - 1/2",
        {},
        ("dD/ds2 = 1/s2 - (s1**2 + (m1 - m2)**2)/s2**3", "dD/dm1 = (m1 - m2)/s2**2"),
        (("dD/ds2 = 1/s2 - (s1**2 + (m1 - m2)**2)/s2**2", "s2**2 should be s2**3"),),
    ),
    Derivation(
        "Reparameterisation: Kingma and Welling, Auto-Encoding Variational Bayes (2013), appendix B",
        "z = m + exp(l/2)*n; D = -sum(1 + l - m**2 - exp(l))/2",
        {"m": (3,), "l": (3,), "n": (3,)},
        ("dD/dl = (exp(l) - 1)/2", "dD/dm = m", "l.grad = z.v*n*exp(l/2)/2 + D.v*(exp(l) - 1)/2"),
        (
            ("dD/dl = exp(l)/2", "missing: - 1/2"),
            ("l.grad = z.v*n*exp(l/2) + D.v*(exp(l) - 1)/2", "should be"),
        ),
    ),
]  # fmt: skip
