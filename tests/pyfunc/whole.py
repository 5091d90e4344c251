"""Functions as people write them in NumPy and SciPy: each is differentiated at its defaults, in every parameter."""

# ruff: noqa: B008, D, RUF059
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.linalg import inv, norm
from scipy import linalg, stats
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import multivariate_normal

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 3))
y = (X[:, 0] > 0).astype(float)
t = np.linspace(0.0, 2.0, 8)
data = {"X": X, "y": y}
ones = np.ones((8, 1))
K0 = np.zeros((3, 3))


def gp_likelihood(theta=np.array([0.3, -0.2, 0.1])):
    """Negative log marginal likelihood of a Gaussian process, with a Cholesky factor (Rasmussen, algorithm 2.1)."""
    length, sigma_f, sigma_n = np.exp(theta)
    sqdist = np.sum(X**2, 1).reshape(-1, 1) + np.sum(X**2, 1) - 2 * np.dot(X, X.T)
    K = sigma_f**2 * np.exp(-0.5 / length**2 * sqdist) + sigma_n**2 * np.eye(len(X))
    L = linalg.cholesky(K, lower=True)
    alpha = linalg.cho_solve((L, True), y)
    return 0.5 * y.dot(alpha) + np.sum(np.log(np.diagonal(L))) + 0.5 * len(X) * np.log(2 * np.pi)


def gp_cdist(log_length=0.2, log_noise=-1.0):
    """The same with cdist and multivariate_normal."""
    K = np.exp(-cdist(X / np.exp(log_length), X / np.exp(log_length), "sqeuclidean") / 2)
    K[np.diag_indices_from(K)] += np.exp(log_noise)
    return -multivariate_normal.logpdf(y, mean=np.zeros(len(y)), cov=K)


def gp_numpy(params=np.array([1.2, 0.4])):
    """With solve and slogdet."""
    K = params[0] * np.exp(-0.5 * squareform(pdist(X)) ** 2) + params[1] * np.identity(8)
    _, logdet = np.linalg.slogdet(K)
    return 0.5 * y.T.dot(np.linalg.solve(K, y)) + 0.5 * logdet


def black_scholes(S=100.0, K=95.0, T=0.5, r=0.02, sigma=0.3):
    """The price of a European call."""
    d1 = (np.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    return S * stats.norm.cdf(d1) - K * np.exp(-r * T) * stats.norm.cdf(d2)


def put_by_math(S=100.0, K=95.0, T=0.5, r=0.02, sigma=0.3):
    """A put, with math alone."""

    def N(x):
        return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))

    d1 = (math.log(S / K) + (r + 0.5 * sigma * sigma) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    return K * math.exp(-r * T) * N(-d2) - S * N(-d1)


def lotka_volterra(t=0.0, z=np.array([10.0, 5.0]), a=1.5, b=1.0, c=3.0, d=1.0):
    """SciPy's solve_ivp example: a list is returned."""
    x, y = z
    return [a * x - b * x * y, -c * y + d * x * y]


def lorenz(t=0.0, state=np.array([1.0, 2.0, 3.0]), sigma=10.0, rho=28.0, beta=8 / 3):
    """A tuple is returned."""
    x, y, z = state
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def double_pendulum(state=np.array([0.5, 0.1, -0.3, 0.2]), L1=1.0, L2=0.8, m1=1.0, m2=2.0, G=9.8):
    """matplotlib's example: dydx is filled."""
    dydx = np.zeros_like(state)
    dydx[0] = state[1]
    delta = state[2] - state[0]
    den1 = (m1 + m2) * L1 - m2 * L1 * np.cos(delta) * np.cos(delta)
    dydx[1] = (
        m2 * L1 * state[1] * state[1] * np.sin(delta) * np.cos(delta)
        + m2 * G * np.sin(state[2]) * np.cos(delta)
        + m2 * L2 * state[3] * state[3] * np.sin(delta)
        - (m1 + m2) * G * np.sin(state[0])
    ) / den1
    dydx[2] = state[3]
    den2 = (L2 / L1) * den1
    dydx[3] = (-m2 * L2 * state[3] * state[3] * np.sin(delta) * np.cos(delta)) / den2
    return dydx


def logistic_regression(w=np.array([0.1, -0.2, 0.3]), b=0.05, lam=0.1):
    """The cross entropy with X.dot(w)."""
    z = X.dot(w) + b
    p = 1 / (1 + np.exp(-z))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) + lam / 2 * w.dot(w)


def logistic_expit(theta=np.array([0.1, -0.2, 0.3, 0.4])):
    """Data in a dictionary, and a column of ones."""
    Xb = np.c_[ones, data["X"]]
    h = expit(Xb.dot(theta))
    return (-data["y"].T.dot(np.log(h)) - (1 - data["y"]).T.dot(np.log(1 - h))) / len(data["y"])


def softmax_regression(W=np.array([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2]])):
    """The mean log likelihood with logsumexp and one label a row."""
    scores = X.dot(W.T)
    logp = scores - logsumexp(scores, axis=1, keepdims=True)
    return -logp[np.arange(len(y)), y.astype(int)].mean()


def kalman(q=0.1, r=0.5, x0=np.array([0.0, 1.0])):
    """The log likelihood of a Kalman filter with a constant velocity."""
    F = np.array([[1.0, 0.25], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = q * np.eye(2)
    x, P = x0, np.eye(2)
    ll = 0.0
    for z in t:
        x = F.dot(x)
        P = F.dot(P).dot(F.T) + Q
        S = H.dot(P).dot(H.T) + r
        K = P.dot(H.T).dot(inv(S))
        e = z - H.dot(x)
        x = x + K.dot(e)
        P = (np.eye(2) - K.dot(H)).dot(P)
        ll += -0.5 * (np.log(2 * np.pi * np.linalg.det(S)) + e.dot(inv(S)).dot(e))
    return ll


def mlp(W1=X[:4] * 0.5, b1=np.zeros(4), W2=np.array([[0.3, -0.2, 0.5, 0.1]])):
    """A network of two layers."""
    h = np.maximum(0, X.dot(W1.T) + b1 + 0.05)
    out = np.tanh(h @ W2.T).ravel()
    return ((out - y) ** 2).sum() / y.size


@dataclass
class Ridge:
    """A model whose data are its attributes."""

    X: np.ndarray
    y: np.ndarray

    def loss(self, w):
        r = self.y - self.X.dot(w)
        return r.dot(r) + 0.1 * np.sum(w**2)


ridge = Ridge(X, y)


def ridge_loss(w=np.array([0.5, 0.2, -0.1])):
    """An object of the module."""
    return ridge.loss(w)


def rosenbrock(x=np.array([1.3, 0.7, 0.8, 1.9, 1.2])):
    """SciPy's tutorial."""
    return sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def rosenbrock_gradient(x=np.array([1.3, 0.7, 0.8, 1.9, 1.2])):
    """SciPy's tutorial: the gradient by hand, filled."""
    xm, xm_m1, xm_p1 = x[1:-1], x[:-2], x[2:]
    der = np.zeros_like(x)
    der[1:-1] = 200 * (xm - xm_m1**2) - 400 * (xm_p1 - xm**2) * xm - 2 * (1 - xm)
    der[0] = -400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
    der[-1] = 200 * (x[-1] - x[-2] ** 2)
    return der


def rosenbrock_hessian(x=np.array([1.3, 0.7, 0.8, 1.9, 1.2])):
    """SciPy's tutorial: the Hessian by hand, with np.diag."""
    x = np.asarray(x)
    H = np.diag(-400 * x[:-1], 1) - np.diag(400 * x[:-1], -1)
    diagonal = np.zeros_like(x)
    diagonal[0] = 1200 * x[0] ** 2 - 400 * x[1] + 2
    diagonal[-1] = 200
    diagonal[1:-1] = 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]
    return H + np.diag(diagonal)


def curve_residuals(p=np.array([2.5, 1.3, 0.5])):
    """scipy.optimize.least_squares: residuals of a fit."""
    a, b, c = p
    return a * np.exp(-b * t) + c - y


def mixture(mu=np.array([-0.5, 1.0]), log_sigma=np.array([0.1, -0.2]), logits=np.array([0.3, 0.0])):
    """The likelihood of a mixture of Gaussians."""
    log_w = logits - logsumexp(logits)
    sigma = np.exp(log_sigma)
    ll = [log_w[k] + stats.norm.logpdf(X[:, 0], mu[k], sigma[k]) for k in range(2)]
    return -np.sum(logsumexp(ll, axis=0))


def poisson_regression(beta=np.array([0.2, -0.1, 0.3])):
    """The log likelihood with gammaln."""
    lam = np.exp(np.dot(X, beta))
    counts = np.round(3 * y)
    return np.sum(counts * np.log(lam) - lam - gammaln(counts + 1))


def forward_kinematics(q=np.array([0.1, -0.4, 0.7]), L=(1.0, 0.8, 0.5)):
    """The position of an arm: homogeneous matrices of lists."""
    T = np.eye(3)
    for qi, li in zip(q, L, strict=True):
        c, s = np.cos(qi), np.sin(qi)
        T = T @ np.array([[c, -s, li * c], [s, c, li * s], [0, 0, 1]])
    return T[:2, 2]


def rotation(r=np.array([0.3, -0.2, 0.5])):
    """Rodrigues' formula."""
    theta = norm(r)
    k = r / theta
    K = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    return np.eye(3) + np.sin(theta) * K + (1 - np.cos(theta)) * K.dot(K)


def skew_in_place(r=np.array([0.3, -0.2, 0.5])):
    """An array of the module is copied and filled, and its exponential taken."""
    K = K0.copy()
    K[0, 1], K[0, 2], K[1, 2] = -r[2], r[1], -r[0]
    K -= K.T
    return linalg.expm(K)


@np.errstate(divide="ignore")
def distance_to_data(c=1.5):
    """What a library's decorator or object calls finds its arrays, too."""
    return X[:2].T.dot(np.ones(2) * c)


@np.vectorize
def share_below(c=0.3):
    """The same for each element."""
    return expit(t.dot(ones[:, 0] * c))


def called_by_libraries(c=np.array([0.3, -0.8])):
    """Functions behind errstate and vectorize."""
    return np.concatenate([share_below(c), distance_to_data(c[0] * 2)])


def rk4(y0=np.array([1.0, 0.0]), omega=2.0):
    """Ten steps of Runge and Kutta."""

    def f(y):
        return np.array([y[1], -(omega**2) * y[0]])

    h, y = 0.1, y0
    for _ in range(10):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def heat(u0=np.sin(np.linspace(0, np.pi, 7)), kappa=0.2):
    """Explicit steps of the heat equation in place."""
    u = u0.copy()
    for _ in range(5):
        u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def lennard_jones(pos=np.array([[0.0, 0.0, 0.0], [1.1, 0.2, 0.0], [0.3, 1.2, 0.4]]), eps=1.0, sigma=1.0):
    """The energy of three atoms."""
    energy = 0.0
    for i in range(len(pos)):
        for j in range(i + 1, len(pos)):
            r = np.linalg.norm(pos[i] - pos[j])
            energy += 4 * eps * ((sigma / r) ** 12 - (sigma / r) ** 6)
    return energy


def bicycle(x=np.array([0.0, 0.1, 0.2, 3.0]), u=np.array([0.4, 0.1]), L=2.5, dt=0.1):
    """The next state of a car, of lists."""
    _, _, theta, v = x
    a, delta = u
    beta = np.arctan2(np.tan(delta), 2.0)
    return np.array(x) + dt * np.array([v * np.cos(theta + beta), v * np.sin(theta + beta), v * np.tan(delta) / L, a])


class Solution(NamedTuple):
    """A result with names."""

    weights: np.ndarray
    risk: float


def portfolio(mu=np.array([0.1, 0.2, 0.15]), gamma=2.0):
    """The optimal weights of a portfolio: a named tuple is returned."""
    cov = np.cov(X.T)
    w = np.linalg.solve(gamma * cov, mu)
    return Solution(w, np.sqrt(w.dot(cov).dot(w)))


def attention(Q=X[:2], K=X[2:5]):
    """Scaled dot product attention."""
    scores = Q.dot(K.T) / np.sqrt(Q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).dot(X[5:8])


def batch_norm(x=X[:, :2], gamma=np.array([1.0, 2.0]), beta=np.array([0.1, 0.0])):
    """CS231n's batch normalization: a tuple of the result and a cache."""
    mu = x.mean(axis=0)
    var = x.var(axis=0)
    x_hat = (x - mu) / np.sqrt(var + 1e-5)
    cache = {"x_hat": x_hat, "std": np.sqrt(var)}
    return gamma * x_hat + beta, cache


def ar1(phi=0.6, sigma=0.8):
    """The log likelihood of a series, with a loop and a list."""
    terms = [stats.norm.logpdf(t[0], 0.0, sigma / np.sqrt(1 - phi**2))]
    for k in range(1, len(t)):
        terms.append(stats.norm.logpdf(t[k], loc=phi * t[k - 1], scale=sigma))
    return np.sum(terms)


def beam(w=np.array([1.0, 2.0]), E=3.0):
    """A stiffness matrix that is assembled with np.ix_."""
    K = np.zeros((3, 3))
    k = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for e in range(2):
        K[np.ix_([e, e + 1], [e, e + 1])] += E * w[e] * k
    u = np.zeros(3)
    u[1:] = np.linalg.solve(K[1:, 1:], [0.0, 1.0])
    return u


def von_mises(kappa=1.5, mu=0.3):
    """A likelihood with an integral by the trapezoidal rule."""
    grid = np.linspace(-np.pi, np.pi, 50)
    Z = np.trapezoid(np.exp(kappa * np.cos(grid)), grid)
    return np.sum(kappa * np.cos(t - mu)) - len(t) * np.log(Z)
