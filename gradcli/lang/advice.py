"""Errors of what is not part of the language, with what to type instead."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection
from typing import NamedTuple

from gradcli.errors import Fix, InputError, Span, did_you_mean
from gradcli.graph.names import NAME
from gradcli.lang.indices import arguments, signature_of
from gradcli.vocabulary import CONSTANTS, FUNCTIONS, METHODS

_ITSELF = "gradcli differentiates for you: `gradcli jacobian` shows the derivatives, `gradcli backward` the gradient"
_LISTS = "an array is a list of its elements: `[0, 1, 2]`"
_NOTHING = """
erfinv lstsq pinv cholesky eig eigh eigvals svd qr slogdet expm rank quantile unique fft convolve interp integrate
"""
_DATA = "random numbers and data are given as values: `--at x=@file.npy`"

ELSEWHERE = {
    # Losses
    "mae": "it is `l1_loss(x, target)`",
    "bce": "it is `binary_cross_entropy(x, target)`",
    "bcewithlogits": "it is `binary_cross_entropy_with_logits(x, target)`",
    "kldiv": "for the logarithms x, it is `mean(target*(log(target) - x))`",
    "cosinesimilarity": "it is `(x @ z)/(norm(x)*norm(z))`",
    # Activations and layers
    "relu6": "it is `clamp(x, 0, 6)`",
    "hardsigmoid": "it is `clamp(x/6 + 1/2, 0, 1)`",
    "hardswish": "it is `x*clamp(x/6 + 1/2, 0, 1)`",
    "prelu": "it is `leaky_relu(x, slope)`",
    "normalize": "it is `x/norm(x)`",
    # Elementwise
    "reciprocal": "it is `1/x`",
    "rsqrt": "it is `1/sqrt(x)`",
    "logit": "it is `log(x/(1 - x))`",
    "sinc": "it is `sin(pi*x)/(pi*x)`",
    "csch": "it is `1/sinh(x)`",
    "coth": "it is `1/tanh(x)`",
    "asec": "it is `acos(1/x)`",
    "acsc": "it is `asin(1/x)`",
    "acot": "it is `atan(1/x)`",
    **dict.fromkeys(("deg2rad", "radians"), "it is `x*pi/180`"),
    **dict.fromkeys(("rad2deg", "degrees"), "it is `x*180/pi`"),
    "factorial": "it is `gamma(n + 1)`",
    "beta": "it is `gamma(x)*gamma(z)/gamma(x + z)`",
    **dict.fromkeys(("binomial", "comb"), "it is `gamma(n + 1)/(gamma(k + 1)*gamma(n - k + 1))`"),
    "real": "numbers are real here: leave it out",
    "imag": "numbers are real here",
    "conj": "numbers are real here: leave it out",
    # Linear algebra
    **dict.fromkeys(("inner", "vdot"), "it is `x @ z`"),
    "dist": "it is `norm(x - z)`",
    "tensordot": 'products and sums are written with `@`, `outer(x, z)` or `einsum("ij,jk->ik", A, B)`',
    "logdet": "of a matrix whose determinant is positive, it is `log(det(A))`",
    "matrixpower": "it is `A @ A @ A` for the third power",
    # Arrays
    **dict.fromkeys(("array", "asarray", "tensor", "matrix", "vector", "list"), _LISTS),
    "range": "of 5 numbers, it is `arange(5)`",
    "swapaxes": "it is `transpose(x, 0, 1)`",
    "vstack": "it is `stack([x, z])`",
    "hstack": "it is `concatenate([x, z])`",
    "diagonal": "it is `diag(A)`",
    "diff": "it is `x[1:] - x[:-1]` of an array; " + _ITSELF,
    **dict.fromkeys(("len", "shape", "size", "numel"), "sizes are known: write the number"),
    **dict.fromkeys(("float", "double", "int", "long", "contiguous", "clone"), "numbers are float64: leave it out"),
    **dict.fromkeys(("rand", "randn", "normal", "uniform", "open", "load", "loadtxt"), _DATA),
    "average": "it is `mean(x)`",
    "reducesum": "it is `sum(x)`",
    "reducemean": "it is `mean(x)`",
    "reduceprod": "it is `prod(x)`",
    "reducemax": "it is `max(x)`",
    "reducemin": "it is `min(x)`",
    # Calculus
    **dict.fromkeys(("grad", "jacobian", "hessian", "derivative", "gradient", "dx", "d", "limit"), _ITSELF),
    "trapz": "it is `sum((x[1:] + x[:-1])*h)/2` for values a step h apart",
    # What has no other name here
    **dict.fromkeys(_NOTHING.split(), ""),
}


def key(name: str) -> str:
    """Return the key of a name in the table: in lower case, without `_` and `Loss`.

    >>> key("CrossEntropyLoss"), key("cross_entropy")
    ('crossentropy', 'crossentropy')
    """
    return name.lower().replace("_", "").removesuffix("loss")


LANGUAGE = "the language has + - * / ** @, lists, indexing, and functions such as `sin(x)` and `sum(x)`"
_WHOLE = "operations work on whole arrays: `sum(x**2)` adds up the squares of all elements of x"
# Syntax that has variables, or a grammar, of its own.
FOREIGN: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lambda: ("`lambda`", "write the expression itself"),
    ast.ListComp: ("a comprehension", _WHOLE),
    ast.GeneratorExp: ("a comprehension", _WHOLE),
    ast.SetComp: ("a comprehension", _WHOLE),
    ast.DictComp: ("a comprehension", _WHOLE),
    ast.JoinedStr: ("an f-string", LANGUAGE),
    ast.NamedExpr: ("`:=`", "a statement of its own gives a part a name: t = …; y = 2*t"),
    ast.Dict: ("a dictionary", LANGUAGE),
    ast.Set: ("a set", "a list of values is written in brackets: [a, b]"),
    ast.Await: ("`await`", LANGUAGE),
    ast.Yield: ("`yield`", LANGUAGE),
    ast.YieldFrom: ("`yield`", LANGUAGE),
}
_UNSUPPORTED = {
    **FOREIGN,
    ast.IfExp: ("`if … else`", "write `where(condition, a, b)`"),
    ast.Tuple: ("a tuple", "a list of values is written in brackets: [a, b]"),
    ast.Starred: ("`*`", LANGUAGE),
}
_MODULES = {"np", "numpy", "jnp", "jax", "torch", "math", "cmath", "sympy", "scipy", "tensorflow", "keras", "cupy"}
_LETTERS = {"F", "K", "nn", "tf", "sp", "cp"}  # modules by habit, and names of variables
_TRANSPOSES = {"T", "mT"}
_AUTOGRAD = {"backward", "data", "grad", "grad_fn", "item", "requires_grad", "retain_grad", "zero_"}
_FUNCTION_KEYS = {key(name): name for name in reversed(FUNCTIONS)}

_NUMBER = r"(?<![\w.])(?>(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_WORD = rf"{NAME}|{_NUMBER}"
# Patterns as texts, which are compiled for an error alone.
_PAIR = rf"(?a)({_NUMBER})\s*({NAME})|(?<!\w)({NAME})\s+({_WORD})|({_NUMBER})\s+({_WORD})"
_TERM = rf"(?a)({_NUMBER})?\s*\*?\s*({NAME})|{_NUMBER}"  # behind a function's name
_POWERED = rf"(?a)(?<![\w.])({NAME})\s*(?:\^|\*\*)\s*(-?\d+)\s*(?=[(\w])"
_OPERAND = rf"(?a)(?:{NAME}|\d+)$"
_COMMA = r"(?<![\w.,])(\d+),(\d+(?:e[+-]?\d+)?)(?![\w.,])"
_BARS = r"([\w)\]]\s*)?(\|\|?)([^|]+)\2"
_DEFINED = rf"({NAME})\s*\([^()]*\)\s*$"
_STATEMENTS = "assert|async|class|def|del|for|from|global|import|nonlocal|pass|raise|return|try|while|with"
# Statements of Python's, what to type instead, and what takes their place.
_OF_STATEMENTS = (
    (r"^if\b", "a choice is written `where(x > 0, a, b)`", None),
    (rf"^(?:{_STATEMENTS})\b", "a statement is NAME = EXPRESSION; `gradcli run` takes a Python script", None),
    (rf"^({NAME})\s*(\*\*|//|[-+*/@%])=(?!=)",
     r"nothing changes in place: give the new value a name of its own, \g<1>1 = \1 \2 …", None),
    (rf"^({NAME})\s*:=", r"write `\1 = …`", r"\1 ="),
    (rf"^{NAME}(\s*,\s*{NAME})+\s*=(?!=)", "each name has a statement of its own: y = …; z = …", None),
    (r"\s*\\\s*$", r"no line follows the `\\`: remove it", ""),
)  # fmt: skip
_SHOWN = 40  # characters of a text that is shown in advice
_SHORT = 20  # characters of an argument that is shown in advice
_NEAR = 60  # characters before and after a mistake that are searched for its cause
# Keywords of Python that belong in expressions, and are not mistaken for names.
_IN_USE = {"and", "or", "not", "if", "else", "for", "True", "False", "None"}
_OPERATORS = {"&&": "and", "||": "or", "=>": ">=", "=<": "<=", "<>": "!="}


def two_meanings(op: str, first: str, number: int) -> InputError:
    """Return the error of `max(x, 1)`, whose 1 is an axis in PyTorch."""
    x = first if len(first) <= _SHORT else "x"
    return InputError(
        f"`{op}({x}, {number})` can mean two things: PyTorch takes the {number} for an axis",
        hint=f"element by element it is `{op}imum({x}, {number})`, along an axis `{op}({x}, axis={number})`",
    )


def unsupported(tree: ast.AST) -> InputError:
    """Return the error of Python syntax that is not part of the language."""
    what, hint = _UNSUPPORTED.get(type(tree), ("this", LANGUAGE))
    return InputError(f"{what} is not part of the language", hint=hint, about=tree)


def unknown_function(name: str) -> InputError:
    """Return the error of a call of an unknown function.

    >>> print(unknown_function("rsqrt"))
    `rsqrt` is not one of gradcli's functions
      it is `1/sqrt(x)`
    >>> print(unknown_function("MSELoss"))
    unknown function `MSELoss`
      did you mean `mse_loss`?
    """
    if key(name) in ELSEWHERE:
        return InputError(f"`{name}` is not one of gradcli's functions", hint=ELSEWHERE[key(name)] or LANGUAGE)
    return InputError(f"unknown function `{name}`", hint=_similar(name, FUNCTIONS) or LANGUAGE)


def unknown_attribute(tree: ast.Attribute, module: str | None) -> InputError:
    """Return the error of `x.name`, or of a module's function, where gradcli has no such method or function."""
    name = tree.attr
    plain = name if name in FUNCTIONS else _FUNCTION_KEYS.get(key(name))
    if name in _AUTOGRAD:
        hint = "leave it out" if name in ("data", "item") else "`gradcli backward` shows every x.grad"
        return InputError(f"`.{name}` belongs to PyTorch's tensors", hint=hint)
    if module and (plain or name in CONSTANTS):
        what = "functions go" if plain else "constants go"
        return InputError(f"{what} without a module's name", hint=f"write `{plain}(…)`" if plain else f"write `{name}`")
    if module:
        return InputError(f"`{name}` is not one of gradcli's functions", hint=unknown_function(name).hint)
    if name in METHODS:
        return InputError(f"`.{name}` is a function", hint=f"call it: `.{name}(…)`")
    hint = ELSEWHERE.get(key(name)) or _similar(name, [*METHODS, "T"]) or LANGUAGE
    return InputError(f"`.{name}` is not part of the language", hint=hint)


def _similar(name: str, known: Collection[str]) -> str | None:
    """Return a hint with the functions that may be meant; the first letter is seldom the one that is mistyped."""
    if (plain := _FUNCTION_KEYS.get(key(name))) in known:
        return f"did you mean `{plain}`?"
    return did_you_mean(name, [f for f in known if f[0] == name[0]])


def module_of(tree: ast.Attribute, call: ast.Call | None = None) -> str | None:
    """Return the module that a pasted `np.sin(x)` or `torch.nn.functional.relu(x)` names, or None for a variable's.

    F and K are variables, too: `F.relu(x)` and `F.cross_entropy(x, 1)` are functions, `F.sum()` and `F.T` are not.

    >>> call = ast.parse("F.relu(x)", mode="eval").body
    >>> module_of(call.func, call)
    'F'
    """
    value = tree.value
    while isinstance(value, ast.Attribute) and value.attr not in _TRANSPOSES:
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in _MODULES | _LETTERS:
        return None
    method = _is_method(tree, call) if call else tree.attr in _TRANSPOSES
    return None if value.id in _LETTERS and value is tree.value and method else value.id


def _is_method(tree: ast.Attribute, call: ast.Call) -> bool:
    """Return whether a call fits a method of a variable: not too many arguments, and no variable as a setting."""
    if tree.attr not in METHODS:
        return False
    signature = signature_of(METHODS[tree.attr])
    try:
        values = arguments(METHODS[tree.attr], [tree.value, *call.args], call.keywords)
    except TypeError:
        return not call.args
    settings = [v for p, v in values.items() if "Node" not in str(signature.parameters[p].annotation)]
    trees = [t for v in settings for t in (v if isinstance(v, tuple) else (v,))]
    return not any(isinstance(n, ast.Name) and n.id not in CONSTANTS for t in trees for n in ast.walk(t))


class Advice(NamedTuple):
    """A correction of a text: a hint, and the replacement of its characters from `start` to `end`."""

    hint: str
    start: int = 0
    end: int = 0
    instead: str | None = None

    def fix(self, span: Span) -> Fix | None:
        """Return the correction; `span` is the position of the text that the advice is about."""
        if self.instead is None:
            return None
        return Fix(Span(span.source, span.start + self.start, span.start + self.end), self.instead)

    def moved(self, offset: int) -> Advice:
        """Return the advice for a longer text, which has `offset` more characters in front."""
        return self._replace(start=self.start + offset, end=self.end + offset)


def product(text: str, inside: int) -> Advice:
    """Return the advice to multiply with `*` a text whose second factor, in brackets, begins behind `inside`.

    >>> product("2(x + 1)", 1).hint
    'multiply with `*`: `2*(x + 1)`'
    """
    bracket = text.find("(", inside)
    written = f"{text[:bracket].rstrip()}*{text[bracket:]}"
    hint = f"multiply with `*`: `{written}`" if len(written) <= _SHOWN else "multiply with `*`: 3*(x + 1)"
    return Advice(hint, 0, len(text), written)


def spelling(text: str, offset: int) -> Advice | None:
    """Return how to write a text that Python cannot parse, if that is clear; `offset` is that of Python's error.

    >>> spelling("2x + 1", 0)
    Advice(hint='a product is written with `*`: `2*x`', start=0, end=2, instead='2*x')
    >>> spelling("2*|x|", 2).hint
    'an absolute value is written `abs(x)`'
    >>> spelling("exp(-lambda*t)", 11).hint
    "`lambda` is a word of Python's: call it `lambda_`"
    """
    if advice := _of_a_statement(text):
        return advice
    start = max(0, offset - _NEAR)
    near = _near(text[start : offset + _NEAR], offset - start)
    return near and near.moved(start)


def _near(text: str, offset: int) -> Advice | None:
    """Return the advice on the characters around an offset."""
    here, rest = text[max(0, offset - 1) : offset + 2], text[offset:]
    if ("|" in here or not rest) and (advice := _between_bars(text)):
        return advice
    if operator := next((wrong for wrong in _OPERATORS if wrong in here), None):
        start = max(0, offset - 1) + here.index(operator)
        return _written("it is written", start, start + len(operator), _OPERATORS[operator])
    if rest.startswith("!"):
        return _factorial(text, offset)
    if rest.startswith("=") and (defined := re.search(_DEFINED, text[:offset])):
        name = defined.group(1)
        return Advice(f"only a name is allowed on the left: `{name} = …`", defined.start(), offset, f"{name} ")
    if advice := next((a for a in powered(text) if a.start <= offset <= a.end + 1), None):
        return advice
    if pair := next((p for p in re.finditer(_PAIR, text) if p.start() <= offset < p.end()), None):
        return _pair(text, pair)
    return _reserved(text)


def _written(hint: str, start: int, end: int, instead: str) -> Advice:
    """Return the advice whose hint ends with the replacement."""
    return Advice(f"{hint} `{instead}`", start, end, instead)


def _factorial(text: str, offset: int) -> Advice:
    operand = re.search(_OPERAND, text[:offset])
    if operand is None:
        return Advice("a factorial is written `gamma(n + 1)`")
    return _written("a factorial is written", operand.start(), offset + 1, f"gamma({operand.group()} + 1)")


def powered(text: str) -> list[Advice]:
    """Return the advice on each power of a function's name, as in sin^2(x), which is a power of the function's value.

    >>> [a.instead for a in powered("sin^2(2*x) + cos**3 t + tan^-1(x)")]
    ['sin(2*x)**2', 'cos(t)**3', 'atan(x)']
    """
    result = []
    for match in re.finditer(_POWERED, text):
        name, power = match.groups()
        argument = _argument(text, match.end())
        if name not in FUNCTIONS or argument is None:
            continue
        inside = text[match.end() : argument].strip()
        inside = inside if inside.startswith("(") else f"({inside})"
        inverse = f"a{name}"
        if power == "-1" and inverse in FUNCTIONS:
            advice = _written(f"`1/{name}{inside}` is the reciprocal; the inverse function is written",
                              match.start(), argument, f"{inverse}{inside}")  # fmt: skip
        else:
            exponent = power if power.isdigit() else f"({power})"
            what = "a power of a function's value is written"
            advice = _written(what, match.start(), argument, f"{name}{inside}**{exponent}")
        result.append(advice)
    return result


def _argument(text: str, start: int) -> int | None:
    """Return the end of a function's argument from `start`, or None.

    It is in brackets, or a number, a name, or the one times the other.
    """
    if text.startswith("(", start):
        depth = 0
        for offset in range(start, len(text)):
            depth += (text[offset] == "(") - (text[offset] == ")")
            if depth == 0:
                return offset + 1
        return None
    term = re.compile(_TERM).match(text, start)
    return term.end() if term else None


def _of_a_statement(text: str) -> Advice | None:
    """Return the advice on a statement of Python that the language does not have.

    >>> _of_a_statement("x += 1").hint
    'nothing changes in place: give the new value a name of its own, x1 = x + …'
    """
    for pattern, hint, instead in _OF_STATEMENTS:
        if match := re.search(pattern, text):
            return Advice(match.expand(hint), *match.span(), instead and match.expand(instead))
    return Advice("formulas are typed as in Python, not in LaTeX: sqrt(x)/2") if "\\" in text else None


def _between_bars(text: str) -> Advice | None:
    """Return the advice on |x|."""
    bars = re.search(_BARS, text)
    if not bars or (bars.group(1) and bars.group(2) == "||"):
        return None
    what, function = ("an absolute value", "abs") if bars.group(2) == "|" else ("a norm", "norm")
    factor = bars.group(1)
    start = bars.start(2) if factor else bars.start()
    call = f"{function}({bars.group(3).strip()})"
    return Advice(f"{what} is written `{call}`", start, bars.end(), f"*{call}" if factor else call)


def _reserved(text: str) -> Advice | None:
    """Return the advice to rename a variable that is called by a keyword of Python."""
    for word in re.finditer(NAME, text):
        if keyword.iskeyword(word.group()) and word.group() not in _IN_USE:
            return Advice(f"`{word.group()}` is a word of Python's: call it `{word.group()}_`",
                          *word.span(), f"{word.group()}_")  # fmt: skip
    return None


def _pair(text: str, pair: re.Match[str]) -> Advice | None:
    """Return the advice on two words in a row: a product, or a call of a function."""
    a, b = filter(None, pair.groups())
    if keyword.iskeyword(a) or keyword.iskeyword(b) or len(a + b) > _SHOWN:
        return None
    if a in FUNCTIONS:
        start = pair.end() - len(b)
        end = _argument(text, start) or pair.end()
        term = re.compile(_TERM).match(text, start)
        inside = f"{term.group(1)}*{term.group(2)}" if term and term.group(1) and term.group(2) else text[start:end]
        return _written("a function is called with brackets:", pair.start(), end, f"{a}({inside})")
    return _written("a product is written with `*`:", pair.start(), pair.end(), f"{a}*{b}")


def decimals(text: str) -> str | None:
    """Return a text with decimal points for the commas between two digits, or None where it has none.

    >>> decimals("1,5*x + 2,25"), decimals("x, 5")
    ('1.5*x + 2.25', None)
    """
    pointed = re.sub(_COMMA, r"\1.\2", text)
    return None if pointed == text else pointed
