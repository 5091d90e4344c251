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
_ARM = "[-a*sin(q[0]) - b*sin(q[0] + q[1]), -b*sin(q[0] + q[1])]"

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
        (("dL/dx = where(abs(r) <= 1, r, 1)", "the derivative of abs(r) is forgotten: 1 should be sign(r)"),),
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
    Derivation(
        "Gamma likelihood: Casella and Berger, Statistical Inference (2002), 7.2",
        "l = n*a*log(b) - n*lgamma(a) + (a - 1)*S - b*T",
        {},
        ("dl/da = n*log(b) - n*digamma(a) + S", "dl/db = n*a/b - T", "d2l/da2 = -n*polygamma(1, a)"),
        (("dl/db = n*a/b + T", "the sign of the term -T"),),
    ),
    Derivation(
        "Jacobian of a planar arm: Siciliano and others, Robotics (2009), 3.1",
        "p = [a*cos(q[0]) + b*cos(q[0] + q[1]), a*sin(q[0]) + b*sin(q[0] + q[1])]",
        {"q": (2,)},
        (f"dp/dq = [{_ARM}, [a*cos(q[0]) + b*cos(q[0] + q[1]), b*cos(q[0] + q[1])]]",),
        (
            (f"dp/dq = [{_ARM}, [a*cos(q[0]) + b*cos(q[0] + q[1]), a*cos(q[0] + q[1])]]",
             "right but for the entry [1,1]: inputs exchanged: a stands where b belongs"),
            (f"dp/dq = [{_ARM}, [-a*cos(q[0]) - b*cos(q[0] + q[1]), -b*cos(q[0] + q[1])]]",
             "right but for [1,:]: the sign"),
        ),
    ),
    Derivation(
        "A step of linear-quadratic control: Anderson and Moore, Optimal Control (1990), 2.4",
        "J = x @ Q @ x + u @ R @ u + (A @ x + B @ u) @ P @ (A @ x + B @ u)",
        dict.fromkeys("QRPAB", (2, 2)) | dict.fromkeys("xu", (2,)),
        ("dJ/du = (R + R.T) @ u + B.T @ (P + P.T) @ (A @ x + B @ u)",),
        (
            ("dJ/du = 2*R @ u + 2*B.T @ P @ (A @ x + B @ u)", "right only where P and R are symmetric"),
            ("dJ/dx = 2*Q @ x + 2*A.T @ P @ A @ x",
             "even where P and Q are symmetric: missing: + 2*A.T @ P @ (B @ u)"),
        ),
    ),
    Derivation(
        "Refraction: Hecht, Optics (2017), 4.4",
        "b = asin(n/m*sin(a))",
        {},
        ("db/da = n*cos(a)/(m*cos(b))",),
        (
            ("db/da = cos(a)/cos(b)", "it is yours times n/m"),
            ("db/da = n*cos(a)/sqrt(m**2 - n**2*sin(a)**2)", "right only for positive m"),
        ),
    ),
    Derivation(
        "Logistic growth: Murray, Mathematical Biology (2002), 1.1",
        "N = K/(1 + (K - M)/M*exp(-r*t))",
        {},
        ("dN/dt = r*N*(1 - N/K)", "dN/dM = K**2*exp(-r*t)/(M + (K - M)*exp(-r*t))**2"),
        (
            ("dN/dt = r*N*(1 - N)", "a factor is missing: N should be N/K"),
            ("dN/dt = r*M*(1 - N/K)", "M stands where N belongs"),
            ("dN/dt = r*N*(1 - K*N)", "K*N should be N/K"),
            ("dN/dt = r*N*(1 - N*M/K)", "a factor too many: N*M should be N"),
        ),
    ),
    Derivation(
        "Contrastive loss: van den Oord, Li and Vinyals, Contrastive Predictive Coding (2018)",
        "S = A @ B.T/T; L = mean(logsumexp(S, axis=1) - diag(S))",
        {"A": (3, 2), "B": (3, 2)},
        ("dL/dA = (softmax(S, axis=1) - eye(3)) @ B/(3*T)", "dL/dT = -sum((softmax(S, axis=1) - eye(3))*S)/(3*T)"),
        (
            ("dL/dB = (softmax(S, axis=1) - eye(3)) @ A/(3*T)", "should be softmax(S, axis=1).T"),
            ("dL/dT = -sum((softmax(S, axis=0) - eye(3))*S)/(3*T)", "the wrong axis"),
            ("dL/dA = (softmax(S, axis=1) - eye(3)) @ B/T", "1/n"),
        ),
    ),
    Derivation(
        "Rate of a reaction: Arrhenius (1889); Atkins, Physical Chemistry, 17D",
        "k = A*exp(-E/(R*T))",
        {},
        ("dk/dT = k*E/(R*T**2)", "dk/dE = -k/(R*T)"),
        (
            ("dk/dE = -k/R*T", "brackets are missing: -k/R*T should be -k/(R*T)"),
            ("dk/dT = E/(R*T**2)", "it is yours times k"),
            ("dk/dT = k*E/(R*T)", "an exponent off by one"),
        ),
    ),
    Derivation(
        "Width of a Gaussian beam: Saleh and Teich, Fundamentals of Photonics (2019), 3.1",
        "w = w0*sqrt(1 + (z/s)**2)",
        {},
        ("dw/dz = w0*z/(s**2*sqrt(1 + (z/s)**2))", "dw/ds = -w0*z**2/(s**3*sqrt(1 + (z/s)**2))"),
        (("dw/dz = w0*z/(s*sqrt(1 + (z/s)**2))", "times 1/s, the derivative of z/s"),),
    ),
    Derivation(
        "Highlights: Phong, Illumination for Computer Generated Pictures (1975)",
        "r = 2*dot(n, l)*n - l; s = dot(r, e)**p",
        {"n": (3,), "l": (3,), "e": (3,)},
        ("ds/de = p*dot(r, e)**(p - 1)*r", "ds/dn = 2*p*dot(r, e)**(p - 1)*(dot(n, l)*e + dot(n, e)*l)"),
        (("ds/de = p*dot(r, e)**(p - 1)*n", "n stands where r belongs"),),
    ),
    Derivation(
        "Risk and return: Sharpe, Mutual Fund Performance (1966)",
        "s = (m @ w)/sqrt(w @ C @ w)",
        {"m": (3,), "w": (3,), "C": (3, 3)},
        ("ds/dw = m/sqrt(w @ C @ w) - (m @ w)*(C @ w + C.T @ w)/2/(w @ C @ w)**(3/2)",),
        (("ds/dw = m/sqrt(w @ C @ w) - (m @ w)*(C @ w)/(w @ C @ w)**(3/2)", "right only where C is symmetric"),),
    ),
    Derivation(
        "An epidemic: Kermack and McKendrick (1927)",
        "f = [-b*S*I/N, b*S*I/N - g*I]",
        {},
        ("df/dI = [-b*S/N, b*S/N - g]",),
        (
            ("df/dI = [b*S/N - g, -b*S/N]", "indices exchanged: yours has at 0 what belongs at 1"),
            ("df/dI = [-b*S/N, b*S/N]", "in [1] missing: - g"),
        ),
    ),
    Derivation(
        "Backpropagation through a layer: Rumelhart, Hinton and Williams (1986)",
        "Z = X @ W + b; A = tanh(Z); L = sum((A - T)**2)/2",
        {"X": (2, 3), "W": (3, 2), "b": (2,), "T": (2, 2)},
        ("dL/dW = X.T @ ((A - T)*(1 - A**2))", "dL/db = sum((A - T)*(1 - A**2), axis=0)"),
        (
            ("dL/dW = X.T @ (A - T)", "the derivative of A is forgotten: A - T should be (A - T)*"),
            ("dL/dX = ((A - T)*(1 - A)) @ W.T", "an exponent is forgotten: A should be A**2"),
        ),
    ),
    Derivation(
        "Rectified linear units: Nair and Hinton (2010)",
        "Z = X @ W; A = relu(Z); Y = A @ V",
        {"X": (2, 3), "W": (3, 4), "V": (4, 2)},
        ("W.grad = X.T @ (v @ V.T*where(Z > 0, 1, 0))",),
        (("W.grad = X.T @ (v @ V.T)", "the derivative of A is forgotten"),),
    ),
    Derivation(
        "Poisson regression: McCullagh and Nelder, Generalized Linear Models (1989), 6.2",
        "m = exp(X @ b); l = sum(y*log(m) - m)",
        {"X": (4, 2), "y": (4,), "b": (2,)},
        ("dl/db = X.T @ (y - m)", "d2l/db2 = -X.T @ (m[:, None]*X)"),
        (("dl/db = X.T @ (y - log(m))", "a function too many: log(m) should be m"),),
    ),
    Derivation(
        "Vapour pressure: Antoine (1888)",
        "P = 10**(A - B/(C + T))",
        {},
        ("dP/dT = P*log(10)*B/(C + T)**2", "dP/dA = P*log(10)"),
        (("dP/dT = P*B/(C + T)**2", "yours is 1/log(10) of it"),),
    ),
]  # fmt: skip
