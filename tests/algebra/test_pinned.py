"""What derivatives look like: some that everybody knows are printed as a textbook prints them, to the character."""

from conftest import each

from gradcli import parse, symbolic_jacobian
from gradcli.notation.formulas import code

SOFTMAX = {f"p[{i}]": f"exp(z[{i}])/(exp(z[0]) + exp(z[1]) + exp(z[2]))" for i in range(3)}

# A system, the shapes of its arrays, some entries of its Jacobian, and the intermediates that entries mention.
PINNED = [
    (
        "p = softmax(z)",
        {"z": (3,)},
        {"dp[0]/dz[0]": "p[0]*(1 - p[0])", "dp[0]/dz[1]": "-p[0]*p[1]", "dp[2]/dz[1]": "-p[1]*p[2]"},
        SOFTMAX,
    ),
    (
        "S = exp(z1) + exp(z2) + exp(z3); L = log(S) - t1*z1 - t2*z2 - t3*z3",
        {},
        {"dL/dz1": "exp(z1)/S - t1", "dL/dz3": "exp(z3)/S - t3", "dL/dt2": "-z2"},
        {"S": "exp(z1) + exp(z2) + exp(z3)"},
    ),
    (
        "S = exp(z1) + exp(z2) + exp(z3); L = -t1*log(exp(z1)/S) - t2*log(exp(z2)/S) - t3*log(exp(z3)/S)",
        {},
        {"dL/dz1": "(t1 + t2 + t3)*exp(z1)/S - t1", "dL/dt1": "-log(exp(z1)/S)"},
        {"S": "exp(z1) + exp(z2) + exp(z3)"},
    ),
    (
        "r = a - b; L = where(abs(r) <= d, r**2/2, d*(abs(r) - d/2))",
        {},
        {"dL/da": "where(abs(r) <= d, r, d*sign(r))", "dL/dd": "where(abs(r) <= d, 0, abs(r) - d)"},
        {"r": "a - b"},
    ),
    ("y = (x**2 - 1)/(x - 1)", {}, {"dy/dx": "1"}, {}),
    ("y = sqrt(x)*w/2", {}, {"dy/dw": "sqrt(x)/2", "dy/dx": "w/(4*sqrt(x))"}, {}),
    ("y = 0.5*sqrt(x)*w", {}, {"dy/dw": "0.5*sqrt(x)", "dy/dx": "0.25*w/sqrt(x)"}, {}),
    (
        "h = tanh(W@x + b); y = u@h",
        {"W": (2, 2), "x": (2,), "b": (2,), "u": (2,)},
        {"dy/dW[1,0]": "u[1]*x[0]*(1 - h[1]**2)", "dy/db[0]": "u[0]*(1 - h[0]**2)", "dy/du[1]": "h[1]"},
        {f"h[{i}]": f"tanh(W[{i},0]*x[0] + W[{i},1]*x[1] + b[{i}])" for i in range(2)},
    ),
    ("p = sigmoid(w*x + b)", {}, {"dp/dw": "p*x*(1 - p)", "dp/db": "p*(1 - p)"}, {"p": "sigmoid(b + w*x)"}),
    (
        "s = w*x + b; y = sigmoid(s)",
        {},
        {"dy/dw": "x*y*(1 - y)", "dy/dx": "w*y*(1 - y)", "dy/db": "y*(1 - y)"},
        {"s": "b + w*x", "y": "sigmoid(s)"},
    ),
    ("y = sigmoid(-x)", {}, {"dy/dx": "-(1 - sigmoid(-x))*sigmoid(-x)"}, {}),
    (
        "L = -t*log(sigmoid(w*x + b)) - (1 - t)*log(1 - sigmoid(w*x + b))",
        {},
        {"dL/dw": "x*(sigmoid(b + w*x) - t)", "dL/db": "sigmoid(b + w*x) - t"},
        {},
    ),
    (
        "z = w*x + b; p = sigmoid(z); L = -(t*log(p) + (1 - t)*log(1 - p))",
        {},
        {"dL/dw": "x*(p - t)", "dL/db": "p - t", "dL/dt": "log(1 - p) - log(p)"},
        {"z": "b + w*x", "p": "sigmoid(z)"},
    ),
    (
        "p = sigmoid(w*x + b); L = (p - t)**2/2",
        {},
        {"dL/dw": "p*x*(1 - p)*(p - t)", "dL/dt": "t - p"},
        {"p": "sigmoid(b + w*x)"},
    ),
    ("r = sqrt(x**2 + y**2); V = -G*M/r", {}, {"dV/dx": "G*M*x/r**3", "dV/dG": "-M/r"}, {"r": "sqrt(x**2 + y**2)"}),
    ("y = -(x - mu)**2/(2*s**2) - log(s)", {}, {"dy/dmu": "(x - mu)/s**2", "dy/ds": "(x - mu)**2/s**3 - 1/s"}, {}),
    ("y = (a*x + b)/(c*x + d)", {}, {"dy/dx": "(a*d - b*c)/(c*x + d)**2", "dy/da": "x/(c*x + d)"}, {}),
    ("y = a*b/(a + b)", {}, {"dy/da": "b**2/(a + b)**2", "dy/db": "a**2/(a + b)**2"}, {}),
    ("y = x*log(x) - x", {}, {"dy/dx": "log(x)"}, {}),
    ("y = log(x/(1 - x))", {}, {"dy/dx": "1/(x*(1 - x))"}, {}),
    ("y = x/(x**2 + z**2)", {}, {"dy/dx": "(z**2 - x**2)/(x**2 + z**2)**2"}, {}),
    ("y = cos(x)/(1 + sin(x))", {}, {"dy/dx": "-1/(sin(x) + 1)"}, {}),
    ("y = sin(x)/cos(x)", {}, {"dy/dx": "1/cos(x)**2"}, {}),
    ("y = sin(x)*cos(x)", {}, {"dy/dx": "cos(x)**2 - sin(x)**2"}, {}),
    ("y = (r*cos(t))**2 + (r*sin(t))**2", {}, {"dy/dr": "2*r"}, {}),
    ("y = exp(-a*t)*cos(w*t)", {}, {"dy/dt": "-a*exp(-a*t)*cos(t*w) - w*exp(-a*t)*sin(t*w)"}, {}),
    ("y = norm(x)", {"x": (2,)}, {"dy/dx[1]": "x[1]/sqrt(x[0]**2 + x[1]**2)"}, {}),
    ("y = x/norm(x)", {"x": (2,)}, {"dy[0]/dx[1]": "-x[0]*x[1]/(x[0]**2 + x[1]**2)**(3/2)"}, {}),
    ("y = x@M@x", {"x": (2,), "M": (2, 2)}, {"dy/dx[0]": "2*M[0,0]*x[0] + M[0,1]*x[1] + M[1,0]*x[1]"}, {}),
    ("y = logsumexp(x)", {"x": (2,)}, {"dy/dx[0]": "exp(x[0])/(exp(x[0]) + exp(x[1]))"}, {}),
    ("y = maximum(a, b)", {}, {"dy/da": "where(a == b, 1/2, where(a < b, 0, 1))"}, {}),
    ("y = relu(x)**2", {}, {"dy/dx": "where(x <= 0, 0, 2*relu(x))"}, {}),
    ("y = x**n", {}, {"dy/dx": "n*x**(n - 1)", "dy/dn": "x**n*log(x)"}, {}),
    ("y = (1 + x/n)**n", {}, {"dy/dx": "(1 + x/n)**(n - 1)"}, {}),
    ("y = (x - z)**2", {}, {"dy/dx": "2*(x - z)", "dy/dz": "-2*(x - z)"}, {}),
]


@each(("system", "shapes", "entries", "where"), PINNED)
def test_a_derivative_that_everybody_knows(system, shapes, entries, where):
    found = symbolic_jacobian(parse(system, **shapes))
    decimals = "." in system
    names = {f"d{found.rows[i]}/d{found.columns[j]}": code(e, decimals) for (i, j), e in found.entries.items()}
    assert {name: names.get(name) for name in entries} == entries
    assert {name: code(e, decimals) for name, e in found.where.items()} == where
