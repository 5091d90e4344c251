"""What people type that is no part of the language, and what to type instead."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection

from gradcli.errors import InputError, did_you_mean
from gradcli.graph.names import NAME
from gradcli.lang.elsewhere import ELSEWHERE, key
from gradcli.lang.settings import arguments, signature_of
from gradcli.vocabulary import CONSTANTS, FUNCTIONS, METHODS

LANGUAGE = "the language has + - * / ** @, lists, indexing, and functions such as `sin(x)` and `sum(x)`"
_WHOLE = "arrays are worked on as a whole: `sum(x**2)` adds up the squares of all elements of x"
# What has variables, or a syntax, of its own.
FOREIGN: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lambda: ("`lambda`", "write the expression itself"),
    ast.ListComp: ("a comprehension", _WHOLE),
    ast.GeneratorExp: ("a comprehension", _WHOLE),
    ast.SetComp: ("a comprehension", _WHOLE),
    ast.DictComp: ("a comprehension", _WHOLE),
    ast.JoinedStr: ("an f-string", LANGUAGE),
    ast.IfExp: ("`if … else`", "write `where(condition, a, b)`"),
    ast.NamedExpr: ("`:=`", "a statement of its own gives a part a name: t = …; y = 2*t"),
    ast.Dict: ("a dictionary", LANGUAGE),
    ast.Set: ("a set", "a list of values is written in brackets: [a, b]"),
    ast.Await: ("`await`", LANGUAGE),
    ast.Yield: ("`yield`", LANGUAGE),
    ast.YieldFrom: ("`yield`", LANGUAGE),
}
_REFUSED = {
    **FOREIGN,
    ast.Tuple: ("a tuple", "a list of values is written in brackets: [a, b]"),
    ast.Starred: ("`*`", LANGUAGE),
}
_MODULES = {"np", "numpy", "jnp", "jax", "torch", "math", "cmath", "sympy", "scipy", "tensorflow", "keras", "cupy"}
_LETTERS = {"F", "K", "nn", "tf", "sp", "cp"}  # modules by habit, and names of variables
_TURNS = {"T", "mT"}
_AUTOGRAD = {"backward", "data", "grad", "grad_fn", "item", "requires_grad", "retain_grad", "zero_"}
_FUNCTION_KEYS = {key(name): name for name in reversed(FUNCTIONS)}

_NUMBER = r"(?<![\w.])(?>(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_WORD = rf"{NAME}|{_NUMBER}"
_PAIR = re.compile(rf"({_NUMBER})\s*({NAME})|(?<!\w)({NAME})\s+({_WORD})|({_NUMBER})\s+({_WORD})", re.ASCII)
_BARS = re.compile(r"([\w)\]]\s*)?(\|\|?)([^|]+)\2")
_DEFINED = re.compile(rf"({NAME})\s*\([^()]*\)\s*$")
# Statements of Python's that define no name by an expression.
_STATEMENTS = {"assert", "async", "class", "def", "del", "for", "from", "global", "import", "nonlocal", "pass",
               "raise", "return", "try", "while", "with"}  # fmt: skip
_CHANGED = re.compile(rf"({NAME})\s*(\*\*|//|[-+*/@%])=(?!=)")
_WALRUS = re.compile(rf"({NAME})\s*:=")
_SEVERAL = re.compile(rf"{NAME}(\s*,\s*{NAME})+\s*=(?!=)")
_SHOWN = 40  # characters of a text that is shown in advice
_SHORT = 20  # characters of an argument that is shown in advice
_NEAR = 60  # characters before and behind the place of a mistake that are looked at
# Words of Python's with a use in expressions, where nobody takes them for names.
_IN_USE = {"and", "or", "not", "if", "else", "for", "True", "False", "None"}
_OPERATORS = {"&&": "and", "||": "or", "=>": ">=", "=<": "<=", "<>": "!="}


def two_meanings(op: str, first: str, number: int) -> InputError:
    """Return what to tell of `max(x, 1)`, whose 1 is an axis in PyTorch."""
    x = first if len(first) <= _SHORT else "x"
    return InputError(
        f"`{op}({x}, {number})` can mean two things: PyTorch takes the {number} for an axis",
        hint=f"element by element it is `{op}imum({x}, {number})`, along an axis `{op}({x}, axis={number})`",
    )


def refused(tree: ast.AST) -> InputError:
    """Return what to tell of a piece of Python that is not part of the language."""
    what, hint = _REFUSED.get(type(tree), ("this", LANGUAGE))
    return InputError(f"{what} is not part of the language", hint=hint, about=tree)


def unknown_function(name: str) -> InputError:
    """Return what to tell of a call of a function that gradcli has not.

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
    """Return what to tell of `x.name`, or of a module's function, where gradcli has no such method or function."""
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
    while isinstance(value, ast.Attribute) and value.attr not in _TURNS:
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in _MODULES | _LETTERS:
        return None
    method = _is_method(tree, call) if call else tree.attr in _TURNS
    return None if value.id in _LETTERS and value is tree.value and method else value.id


def _is_method(tree: ast.Attribute, call: ast.Call) -> bool:
    """Tell whether a call fits the method of a variable: no argument too many, and its settings no variables."""
    if tree.attr not in METHODS:
        return False
    signature = signature_of(METHODS[tree.attr])
    try:
        given = arguments(METHODS[tree.attr], [tree.value, *call.args], call.keywords)
    except TypeError:
        return not call.args
    settings = [v for p, v in given.items() if "Node" not in str(signature.parameters[p].annotation)]
    trees = [t for v in settings for t in (v if isinstance(v, tuple) else (v,))]
    return not any(isinstance(n, ast.Name) and n.id not in CONSTANTS for t in trees for n in ast.walk(t))


def product(text: str, inside: int) -> str:
    """Return the advice to multiply with `*` a text whose second factor, in brackets, begins behind `inside`.

    >>> product("2(x + 1)", 1)
    'multiply with `*`: `2*(x + 1)`'
    """
    bracket = text.find("(", inside)
    written = f"{text[:bracket].rstrip()}*{text[bracket:]}"
    return f"multiply with `*`: `{written}`" if len(written) <= _SHOWN else "multiply with `*`: 3*(x + 1)"


def spelling(text: str, place: int) -> str | None:
    """Return how what Python could not read is spelled here, if that is clear; `place` is where Python gave up.

    >>> spelling("2x + 1", 0)
    'a product is written with `*`: `2*x`'
    >>> spelling("2*|x|", 2)
    'an absolute value is written `abs(x)`'
    >>> spelling("exp(-lambda*t)", 11)
    "`lambda` is a word of Python's: call it `lambda_`"
    """
    if advice := _of_a_statement(text):
        return advice
    start = max(0, place - _NEAR)
    text, place = text[start : place + _NEAR], place - start
    here, rest = text[max(0, place - 1) : place + 2], text[place:]
    if ("|" in here or not rest) and (advice := _between_bars(text)):
        return advice
    if operator := next((right for wrong, right in _OPERATORS.items() if wrong in here), None):
        return f"it is written `{operator}`"
    if rest.startswith("!"):
        return "a factorial is written `gamma(n + 1)`"
    if rest.startswith("=") and (defined := _DEFINED.search(text[:place])):
        return f"a name stands alone on the left: `{defined.group(1)} = …`"
    if pair := next((p for p in _PAIR.finditer(text) if p.start() <= place < p.end()), None):
        return _pair(*filter(None, pair.groups()))
    return _reserved(text)


def _of_a_statement(text: str) -> str | None:
    """Return what stands here in the place of another kind of statement, which a script may have.

    >>> _of_a_statement("x += 1")
    'nothing changes in place: give the new value a name of its own, x1 = x + …'
    """
    word = re.match(NAME, text)
    if word and word.group() == "if":
        return "a choice is written `where(x > 0, a, b)`"
    if word and word.group() in _STATEMENTS:
        return "a statement is NAME = EXPRESSION; `gradcli run` takes a Python script"
    if changed := _CHANGED.match(text):
        name, operator = changed.groups()
        return f"nothing changes in place: give the new value a name of its own, {name}1 = {name} {operator} …"
    if walrus := _WALRUS.match(text):
        return f"write `{walrus.group(1)} = …`"
    if _SEVERAL.match(text):
        return "each name has a statement of its own: y = …; z = …"
    return "formulas are typed as in Python, not in LaTeX: sqrt(x)/2" if "\\" in text else None


def _between_bars(text: str) -> str | None:
    """Return how what stands between bars is written."""
    bars = _BARS.search(text)
    if not bars or (bars.group(1) and bars.group(2) == "||"):
        return None
    what, function = ("an absolute value", "abs") if bars.group(2) == "|" else ("a norm", "norm")
    return f"{what} is written `{function}({bars.group(3).strip()})`"


def _reserved(text: str) -> str | None:
    """Return what to call a variable that has the name of a word of Python's."""
    taken = (word for word in re.findall(NAME, text) if keyword.iskeyword(word) and word not in _IN_USE)
    return next((f"`{word}` is a word of Python's: call it `{word}_`" for word in taken), None)


def _pair(a: str, b: str) -> str | None:
    """Return what two words mean that follow each other."""
    if keyword.iskeyword(a) or keyword.iskeyword(b) or len(a + b) > _SHOWN:
        return None
    if a in FUNCTIONS:
        return f"a function is called with brackets: `{a}({b})`"
    return f"a product is written with `*`: `{a}*{b}`"
