r"""Reads LaTeX formulas of numbers back: what is written is worked out as a reader would, \cdot or nothing a product.

formula  := or                                  "," and "&" end one
or       := and (\vee and)*
and      := not (\wedge not)*
not      := \neg not | sum [sign sum]           a comparison
sum      := [+-] term ([+-] term)*
term     := power ([\cdot] power)* [\bmod term]
power    := base [^ group]
base     := number | name | group | \frac group group | \sqrt [degree] group | function bracket
          | bracket | |formula| | cases
"""

from __future__ import annotations

import operator
import re

import numpy as np
from operations import FUNCTIONS

TOKEN = re.compile(
    r"\\(?:begin|end)\{cases\}|\\text\{[^}]*\}|\\mathrm\{e\}|\\operatorname\{(?:\\_|[^}])*\}|\\[A-Za-z]+(?:_\{[^}]*\})?|\\\\|"
    r"\d+(?:\.\d+)?(?: \\times 10\^\{-?\d+\})?|\([A-Za-z]_\{\d+\}\)_\{[\d,]+\}|u\[\d\]|[A-Za-z](?:_\{[^}]*\})?|\S"
)
COMPARISONS = {
    "<": operator.lt,
    ">": operator.gt,
    r"\leq": operator.le,
    r"\geq": operator.ge,
    "=": operator.eq,
    r"\neq": operator.ne,
}
NAMED = {r"\Gamma": "gamma", r"\psi": "digamma", r"\max": "maximum", r"\min": "minimum", r"\operatorname{sgn}": "sign"}
NAMED |= {r"\arcsin": "asin", r"\arccos": "acos", r"\arctan": "atan", r"\log_{2}": "log2", r"\log_{10}": "log10"}
# What stands behind a term.
ENDS = {")", "}", "⟩", r"\rfloor", r"\rceil", ",", "&", r"\\", None, "+", "-", *COMPARISONS, r"\vee", r"\wedge"}


class Reader:
    """Works out one formula; `names` are the values of its variables, by their LaTeX."""

    def __init__(self, text: str, names: dict[str, float]) -> None:
        bars = text.replace(r"\left|", " ⟨ ").replace(r"\right|", " ⟩ ")
        self.tokens = TOKEN.findall(re.sub(r"\\(left|right)(?![a-z])", "", bars))
        self.names = names

    @property
    def next(self) -> str | None:
        return self.tokens[0] if self.tokens else None

    def take(self, *expected: str) -> str:
        token = self.tokens.pop(0)
        assert not expected or token in expected, f"{token} instead of {expected}"
        return token

    def whole(self):
        found = self.formula()
        assert self.next is None, self.tokens
        return found

    def formula(self):
        found = self.conjunction()
        while self.next == r"\vee":
            self.take()
            found = found | self.conjunction()
        return found

    def conjunction(self):
        found = self.negation()
        while self.next == r"\wedge":
            self.take()
            found = found & self.negation()
        return found

    def negation(self):
        if self.next == r"\neg":
            self.take()
            return ~np.bool_(self.negation())
        left = self.sum()
        if self.next in COMPARISONS:
            compare = COMPARISONS[self.take()]
            return np.bool_(compare(left, self.sum()))
        return left

    def sum(self):
        sign = self.take() if self.next in ("+", "-") else "+"
        found = self.term() if sign == "+" else -self.term()
        while self.next in ("+", "-"):
            sign = self.take()
            found = found + self.term() if sign == "+" else found - self.term()
        return found

    def term(self):
        found = self.power()
        while self.next not in ENDS:
            if self.next == r"\bmod":
                self.take()
                return FUNCTIONS["mod"](found, self.term())
            if self.next == r"\cdot":
                self.take()
            found = found * self.power()
        return found

    def power(self):
        start = self.next
        found = self.base()
        if self.next == "^":
            assert start != r"\begin{cases}", "cases have no end on the right: their power needs brackets"
            self.take()
            found = np.power(found, self.group())
            assert self.next != "^", "a double superscript"
        return found

    def group(self):
        self.take("{")
        found = self.formula()
        self.take("}")
        return found

    def base(self):
        token = self.take()
        if token in self.names:
            return np.float64(self.names[token])
        if token[0].isdigit():
            mantissa, _, exponent = token.partition(r" \times 10^")
            return np.float64(f"{mantissa}e{exponent.strip('{}')}" if exponent else mantissa)
        match token:
            case "(":
                found = self.formula()
                self.take(")")
                return found
            case "{":
                self.tokens.insert(0, token)
                return self.group()
            case "⟨":
                found = abs(self.formula())
                self.take("⟩")
                return found
            case r"\lfloor" | r"\lceil":
                found = (np.floor if token == r"\lfloor" else np.ceil)(self.formula())
                self.take(r"\rfloor", r"\rceil")
                return found
            case r"\frac":
                return self.group() / self.group()
            case r"\sqrt":
                return self.root()
            case r"\begin{cases}":
                return self.cases()
            case r"\mathrm{e}":
                return np.float64(np.e)
            case r"\pi":
                return np.float64(np.pi)
        if token == r"\log" and self.next == r"\Gamma":
            self.take()
            return self.function("lgamma")
        if token == r"\psi" and self.next == "^":
            self.take()
            return self.function("polygamma", [self.group()])
        return self.function(NAMED.get(token) or token.removeprefix(r"\operatorname{").strip("\\}").replace(r"\_", "_"))

    def root(self):
        if self.next != "[":
            return np.sqrt(self.group())
        self.take("[")
        assert self.take() == "3"
        self.take("]")
        return np.cbrt(self.group())

    def function(self, name: str, arguments=()):
        self.take("(")
        arguments = [*arguments, self.formula()]
        while self.next == ",":
            self.take()
            arguments.append(self.formula())
        self.take(")")
        return FUNCTIONS[name](*arguments)

    def cases(self):
        yes = self.formula()
        self.take("&")
        self.take(r"\text{if }")
        condition = self.formula()
        self.take(r"\\")
        no = self.formula()
        self.take("&")
        self.take(r"\text{otherwise}")
        self.take(r"\end{cases}")
        return yes if condition else no


def worth(text: str, names: dict[str, float]) -> float:
    """Return what a formula is worth."""
    with np.errstate(all="ignore"):
        return float(Reader(text, names).whole())
