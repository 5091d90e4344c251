"""Mistakes: each is refused with status 2, in a few lines, with a caret under the place and a way out."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from conftest import each, said

from gradcli.errors import InputError

WAY_OUT = r"\n  \S"  # a line of advice below the message, or below the caret


@dataclass(frozen=True)
class Mistake:
    """Arguments with «marks» around the place where the carets should stand, the message, and the way out."""

    arguments: tuple[str, ...]
    message: str
    way_out: str
    stdin: str | bytes = ""


def mistake(*arguments: str, says: str, mend: str = WAY_OUT, stdin: str | bytes = "") -> Mistake:
    return Mistake(arguments, says, mend, stdin)


def system(text: str, *options: str, says: str, mend: str = WAY_OUT) -> Mistake:
    """Return a mistake in a system, at which every command stumbles."""
    return Mistake(("jacobian", text, *options), says, mend)


def at(text: str, says: str, mend: str = WAY_OUT) -> Mistake:
    return Mistake(("backward", "y=sum(x)*z", "--at", text), says, mend)


def v(text: str, says: str, mend: str = WAY_OUT) -> Mistake:
    return Mistake(("backward", "y=[x,2*x,3*x]", "--at", "x=1", "--v", text), says, mend)


LANGUAGE = [
    # Brackets
    system("y = «(»x+1", says="`(` is never closed", mend=r"add a `\)`"),
    system("y = x+1«)»", says="unmatched `)`", mend="remove it"),
    system("y = [x, 1«)»", says="`)` closes a bracket that needs `]`", mend=""),
    system("y = x«[»", says="`[` is never closed", mend="add a `]`"),
    system("y = sin«(»(x + 2) * 3; z = x", says="is never closed"),
    # What the language lacks
    system("y = «x.__class__»", says="`.__class__` is not part of the language"),
    system("y = 2*«x.backward»()", says="`.backward` belongs to PyTorch's tensors", mend="gradcli backward"),
    system("y = «().__class__.__bases__»", says="`.__bases__` is not part of the language"),
    system("y = «__import__('os').system»('true')", says="`.system` is not part of the language"),
    system("y = «__import__»('os')", says="unknown function `__import__`"),
    system("y = «eval»('1')", says="unknown function `eval`"),
    system("y = «f'{x}'»", says="an f-string is not part of the language"),
    system("y = «[a for a in x]»", says="a comprehension is not part of the language"),
    system("y = «{1: x}»", says="a dictionary is not part of the language"),
    system("y = x + «(x, 1)»", says="a tuple is not part of the language", mend=r"\[a, b\]"),
    system("y = «x if x > 0 else 0»", says="`if … else` is not part of the language", mend="where"),
    system("y = «x//2»", says="this operator is not part of the language", mend="floor"),
    system("y = «x<<2»", says="this operator is not part of the language"),
    system("y = 2*«'a'»", says="text is not a number", mend="real numbers"),
    system("y = x*«1j»", says="not a number", mend="real numbers"),
    system("y = «None»", says="`None` is not a number"),
    system("y = «np.sin»(x)", says="functions go without a module's name", mend=r"`sin\(…\)`"),
    # What cannot be read
    system("y = x «+»", says="this cannot be read as an expression"),
    system("«import» os", says="this cannot be read as an expression", mend="`gradcli run` takes a Python script"),
    system("«for» i in range(3): y = x", says="this cannot be read as an expression", mend="`gradcli run` takes"),
    system("«if» x > 0: y = x", says="this cannot be read as an expression", mend=r"where\(x > 0, a, b\)"),
    system("x «+=» 1", says="this cannot be read as an expression", mend="x1 = x [+] …"),
    system("y «:=» x", says="this cannot be read as an expression", mend="`y = …`"),
    system("y, z «=» x, 2*x", says="`=` is inside an expression", mend="each name has a statement of its own"),
    system("y = \\«f»rac{1}{x}", says="this cannot be read as an expression", mend="not in LaTeX"),
    system("y = x«'»", says="a quote is opened and never closed"),
    system("y = «x.item»()", says="`.item` belongs to PyTorch's tensors", mend="leave it out"),
    system("y = «zeros(10**2)»*x", says="a plain number is needed here", mend="write it out"),
    system("y = «1/3/1e-320»*x", says="this number is too large", mend="1.8e308"),
    system("y = «3»x", says="this is not a number", mend=r"3\*x"),
    system("«=»", says="`=` is inside an expression", mend="needs quotes"),
    system("y = x«=»2", says="`=` is inside an expression", mend="NAME = EXPRESSION"),
    system("«y» =", says="is followed by nothing", mend="NAME = EXPRESSION"),
    # Characters
    system("y = «\0»x", says="U+0000"),
    system("y = 2*«х»", says="CYRILLIC SMALL LETTER HA", mend="ASCII"),
    system("y = «２»*x", says="FULLWIDTH DIGIT TWO", mend="type `2`"),
    system("y = x«²»", says="SUPERSCRIPT TWO", mend=r"type `\*\*2`"),
    system("y = x «−» 1", says="MINUS SIGN", mend="type `-`"),
    system("y = «²»", says="SUPERSCRIPT TWO", mend=r"type `\*\*2`$"),
    system("y = x«⁻¹²»", says="SUPERSCRIPT MINUS", mend=r"`x\*\*-12`"),
    system("y = x«ⁿ»", says="SUPERSCRIPT LATIN SMALL LETTER N", mend=r"`x\*\*n`"),
    system("y = 2*sin«²»(x + 1)", says="SUPERSCRIPT TWO", mend=r"`sin\(x \+ 1\)\*\*2`"),
    system("«“»y=x”", says="LEFT DOUBLE QUOTATION MARK", mend='type `"`'),
    system("y = M«ᵀ» @ x", says="MODIFIER LETTER CAPITAL T", mend=r"`M\.T`"),
    system("y = x«₁»", says="SUBSCRIPT ONE", mend="`x1`"),
    system("y = «٣»*x", says="ARABIC-INDIC DIGIT THREE", mend="type `3`"),
    system("y = «√»x + 1", says="SQUARE ROOT", mend=r"`sqrt\(x\)`"),
    system("y = «√»(x + 1)", says="SQUARE ROOT", mend=r"`sqrt\(x \+ 1\)`"),
    system("y = «‖»x‖", says="DOUBLE VERTICAL LINE", mend=r"`norm\(x\)`"),
    system("y = x**«½»", says="VULGAR FRACTION ONE HALF", mend=r"`\(1/2\)`"),
    system("y = where(x «≤» 1, x, 0)", says="LESS-THAN OR EQUAL TO", mend="`<=`"),
    system("y = x«\u0387»x", says="GREEK ANO TELEIA", mend=r"type `\*`"),
    system("y = x«\u200d»", says="ZERO WIDTH JOINER", mend="remove it"),
    system("y = 2*l«о»ss", says="CYRILLIC SMALL LETTER O), which looks like `o`", mend="ASCII letter `o`"),
    system("y = «Α»*x", says="GREEK CAPITAL LETTER ALPHA), which looks like `A`", mend="ASCII letter `A`"),
    system("«с» = x", says="CYRILLIC SMALL LETTER ES), which looks like `c`"),
    system("y = «вес» + вec", says="`вес` looks like the other name `вec`", mend="the same letters"),
    system("input Δx = 1; y = Δx + «Δх»", says="has U+0445 (CYRILLIC SMALL LETTER HA)", mend="same letters"),
    system("y = «λ» + λ\ufe00", says="VARIATION SELECTOR-1"),
    system("y = «x\u0304»", says="a bar marks an adjoint", mend="`x_bar`"),
    system("y = «𝐢𝐟»*x", says="`if` is a word of Python's", mend="`if_`"),
    system("y = «\x1b»[31mx", says="U+001B"),
    # Names
    system("y = «sinn»(x)", says="unknown function `sinn`", mend="did you mean `sin` or `sinh`"),
    system("y = «sihn»(x)", says="unknown function `sihn`", mend="`sinh`"),
    system("y = «Sin»(x)", says="unknown function `Sin`", mend="did you mean `sin`"),
    system("y = «logg»(x)", says="unknown function `logg`", mend="did you mean `log`"),
    system("y = «rsqrt»(x)", says="`rsqrt` is not one of gradcli's functions", mend=r"it is `1/sqrt\(x\)`"),
    system(
        "y = «CrossEntropyLoss»(x)", says="unknown function `CrossEntropyLoss`", mend="did you mean `cross_entropy`"
    ),
    system("y = «svd»(x)", says="`svd` is not one of gradcli's functions", mend="the language has"),
    system("y = «x.diff»(0)", says="`.diff` is not part of the language", mend=r"`x\[1:\] - x\[:-1\]`"),
    # Modules
    system("y = «F.cross_entropy»(x, 1)", says="functions go without a module's name", mend=r"`cross_entropy\(…\)`"),
    system("y = «F.hardswish»(x)", says="`hardswish` is not one of gradcli's functions", mend=r"`x\*clamp"),
    system("y = «torch.nn.functional.relu6»(x)", says="`relu6` is not one of", mend=r"`clamp\(x, 0, 6"),
    system("y = «F.softmax»(x, dim=0)", says="functions go without a module's name", mend=r"`softmax\(…\)`"),
    system("y = «K.sum»(x)", says="functions go without a module's name", mend=r"`sum\(…\)`"),
    system("y = «tf.reduce_sum»(x)", says="`reduce_sum` is not one of gradcli's functions", mend=r"`sum\(x\)`"),
    system("y = «tf.nn.softplus»(x)", says="functions go without a module's name", mend=r"`softplus\(…\)`"),
    system("y = «jnp.linalg.inv»(x)", says="functions go without a module's name", mend=r"`inv\(…\)`"),
    system("y = «np.linalg.matrix_power»(A, 3)", says="`matrix_power` is not one of gradcli's functions", mend="A @ A"),
    system("y = x*«np.pi»", says="constants go without a module's name", mend="`pi`"),
    system("y = x*«np.newaxis»", says="`newaxis` is not one of gradcli's functions"),
    # Statements that are none
    system("«y == x**2»", says="`==` is a comparison, not a definition", mend=r"write `y = x\*\*2`"),
    system("«x + z == 2»", says="`==` is a comparison, not a definition", mend="NAME = EXPRESSION"),
    system("z = x; «z > 2»", says="a condition is not a value", mend="where"),
    system("y = 2*x; «y»", says="a bare expression is called `y`", mend="give it a name: `f = y`"),
    # Spelling
    system("y = 2 «λ»", says="this cannot be read as an expression", mend=r"`2\*λ`"),
    system("y = x «z» + 1", says="this cannot be read as an expression", mend=r"`x\*z`"),
    system("y = sin «x»", says="this cannot be read as an expression", mend=r"`sin\(x\)`"),
    system("y = exp(-«lambda»*t)", says="this cannot be read as an expression", mend="call it `lambda_`"),
    system("y = w*«in» + b", says="this cannot be read as an expression", mend="call it `in_`"),
    system("y = «(x + 1)(x - 1)»", says="only functions can be called", mend=r"`\(x \+ 1\)\*\(x - 1\)`"),
    system("y = x*«x»(x + 2)", says="unknown function `x`", mend=r"`x\*\(x \+ 2\)`"),
    system("y = «|»x - 1| + 2", says="this cannot be read as an expression", mend=r"`abs\(x - 1\)`"),
    system("y = 2|x«|»", says="this cannot be read as an expression", mend=r"`abs\(x\)`"),
    system("y = «|»|x||", says="this cannot be read as an expression", mend=r"`norm\(x\)`"),
    system("y = where(x > 0 |«|» x < -1, x, 0)", says="this cannot be read as an expression", mend="`or`"),
    system("y = where(x > 0 &«&» x < 1, x, 0)", says="this cannot be read as an expression", mend="`and`"),
    system("y = where(x =«<» 1, x, 0)", says="this cannot be read as an expression", mend="`<=`"),
    system("y = x «=»> 1", says="`=` is inside an expression", mend="`>=`"),
    system("y = x«!»", says="this cannot be read as an expression", mend=r"`gamma\(x \+ 1\)`"),
    system("f(x) «=» x**2", says="`=` is inside an expression", mend="on the left: `f = …`"),
    system("y = x*«x»(2)", says="unknown function `x`", mend=r"multiply with `\*`"),
    system("y = «x.sum»*2", says="`.sum` is a function", mend=r"call it: `\.sum\(…\)`"),
    system("y = «x.summ»()", says="`.summ` is not part of the language", mend="did you mean `sum`"),
    system("y = «y» + 1", says="`y` is used in its own definition", mend="call the new value something else"),
    system("«inf» = 2*x", says="`inf` is a constant", mend="`inf_`"),
    system("y = x; input «nan» = 2", says="`nan` is a constant", mend="`nan_`"),
    system("«lambda» = 2*x", says="`lambda` is a word of Python's", mend="`lambda_`"),
    system("y = sum(«x + 1=»2)", says="only a name, or an element such as `y[0]`, can be assigned", mend="NAME = EXPR"),
    system("y = («t := x»)", says="`:=` is not part of the language", mend="a statement of its own"),
    system("y = 2*«t»; t=[-3, 1]", says="`t` is used before it is assigned\n", mend=r"`--at t=\[-3, 1\]`"),
    system("y = 2*«t»; t = x", says="`t` is used before it is assigned\n", mend="write `t = …` before it"),
    system("y = x; «y» = 2*x", says="`y` is assigned already", mend="once"),
    system("input x = 1; «x» = 2; y = x", says="`x` is declared as an input already", mend="once"),
    system("input x = 1; input «x» = 2; y = x", says="`x` is declared as an input twice", mend="once"),
    system("input x = «z»; y = x", says="unknown name `z`"),
    system("y[0] = «x»; y[2] = x", says="`y[1]` is never assigned", mend=""),
    system("«y[a]» = x", says="integers", mend=r"`y\[0\] = …`"),
    # Numbers
    system("y = «1e400»*x", says="this number is too large", mend="`inf`"),
    system("y = x*(«1/0»)", says="division by zero", mend=""),
    # Shapes
    system("y = «x + z»", "--shape", "x=2,z=3", says="shapes (2,) and (3,) do not fit together", mend="aligned"),
    system("y = 2*(«x @ M»)", "--shape", "x=2,M=3x3", says="2 columns meet 3 rows", mend="must be equal"),
    system("y = «x @ 2»", says="`@` multiplies vectors and matrices", mend="--shape"),
    system("y = «x[5]»", "--shape", "x=3", says="there is no element 5 among 3", mend="from 0 to 2"),
    system("y = «x[-4]»", "--shape", "x=3", says="there is no element -4 among 3", mend="from 0 to 2"),
    system("y = «x[0]» + x[0,1]", says="`x` is a scalar and has no elements", mend="--shape x=3"),
    system("y = x[0] + «x[0,1]»", "--shape", "x=3", says="`x` is an array of 1 dimension", mend=""),
    system("y = «x[2:1]»", "--shape", "x=3", says="this slice is empty", mend=r"the array has shape \(3,\)"),
    system("y = «x[1.5]»", "--shape", "x=3", says="an index must be an integer", mend=r"x\[0\]"),
    system("y = «x[0]» + x", says="`x` is a scalar", mend="--shape x=3"),
    system("y = «[]»", says="an empty list has no shape", mend=""),
    system("y = «[[x, 1], [x]]»", says="cannot be stacked into one array", mend=""),
    system("y = «reshape(x, 4)»", "--shape", "x=3", says="3 elements of shape (3,) do not fill shape (4,)", mend=""),
    system("y = «sum(x, axis=5)»", "--shape", "x=3", says="there is no axis 5", mend=""),
    # Functions and conditions
    system("y = «sin(x, x)»", says="`sin` has too many arguments", mend=r"`sin\(x\)`"),
    system("y = «sin()»", "--at", "x=1", says="`sin` is missing an argument", mend=r"`sin\(x\)`"),
    system("y = «sum()»", says="`sum` is missing an argument", mend="axis=None"),
    system("y = «sum(x, foo=1)»", says="`sum` has no such setting", mend="axis=None"),
    system("y = «clamp(x)»", says="`clamp` needs a bound", mend=r"clamp\(x, 0, 1\)"),
    system("y = «stack(x)»", says="a list of expressions is needed", mend=r"stack\(\[a, b\]\)"),
    system(
        "y = «maximum(x)»", says="`maximum` takes two values or more", mend=r"`max\(x\)` is the maximum of an array"
    ),
    system("y = «Min(x)»", says="`minimum` takes two values or more", mend=r"`min\(x\)` is the minimum of an array"),
    system("y = «max()»", says="`max` is missing an argument", mend=r"`max\(x\)`"),
    system("y = «max(x, 1, keepdim=True)»", says="PyTorch takes the 1 for an axis", mend=r"`max\(x, axis=1\)`"),
    system("y = «max(x, z, axis=0)»", says="`max` of several values has no axis", mend=r"`max\(x, axis=0\)`"),
    system("y = «max(x, 1)»", says="PyTorch takes the 1 for an axis", mend=r"`maximum\(x, 1\)`, .* `max\(x, axis=1\)`"),
    system(
        "y = «min(2*x, -1)»",
        says="PyTorch takes the -1 for an axis",
        mend=r"`minimum\(2\*x, -1\)`, .* `min\(2\*x, axis=-1\)`",
    ),
    system("n = 0; y = 2*«max(z, n)»", says="PyTorch takes the 0 for an axis", mend=r"`maximum\(z, 0\)`"),
    system("y = («x>0») + 1", says="a condition is not a number", mend="where"),
    system("y = where(«x», 1, 2)", says="a condition is needed here", mend="`x > 0`"),
    system("y = 1", says="the system has no input", mend="for example"),
    system("y = x + True", says="not a number", mend="where"),
]

OPTIONS = [
    at("«@p.jsonl»", says="a point is NAME=VALUE", mend="`--points p.jsonl`"),
    at("x=1,z=2,«w»=3", "`w` is not in the system", "the inputs are x, z"),
    at("x=1,«zz»=2", "`zz` is not in the system", "did you mean `z`"),
    at("x=1", "the point has no value for `z`", "add it: --at x=1,z=1"),
    at("x=[1, 2.5]", "the point has no value for `z`", r"add it: --at 'x=\[1, 2.5\],z=1'"),
    at("", "something is missing", "one comma"),
    at(f"x=[{', '.join('1' * 30)}]", "the point has no value for `z`", "add it: --at '…,z=1'"),
    at("«x»", "`x` has no value", r"write x=1, or a vector x=\[1,2\]"),
    at("x=1,z=2,«x»=3", "`x` is given twice", "repeat --at"),
    at("z=2,«x[0 1]»=3", "an element is given by integers from 0", r"x\[0\]=3"),
    at("«y»=3,x=1,z=1", "`y` is computed by the system", "only inputs"),
    at("x=«foo»,z=1", "`foo` is not a number", r"\[1, 2\]"),
    at("x=«[»1,2", "`[` is never closed", "add a `]`"),
    at("x=1,«2»", "a name is missing", r"x=\[1,2\]"),
    at("«1=x»", "`1` is not a name", "NAME=VALUE"),
    at("x=1,«=2»", "a name is missing", "NAME=VALUE"),
    at("«x»=", "is followed by nothing", "NAME=VALUE"),
    at("x=«9**9**9»,z=1", "this number is too large", "1.8e308"),
    at("x=«１»,z=1", "FULLWIDTH DIGIT ONE", "type `1`"),
    at("x=«[1,[2]]»,z=1", "cannot be stacked", ""),
    at("x=«[]»,z=1", "empty", ""),
    at("«x»=@no.npy,z=1", "`no.npy` cannot be read: no such file", ""),
    mistake("backward", "y=x", "--at", "x=1", "--at", "«x»=[1,2]", says="point 2 has `x` of shape (2,)", mend="same"),
    mistake("jacobian", "-|x|", says="this cannot be read as an expression", mend=r"`abs\(x\)`"),
    mistake("jacobian", "-√x", says="SQUARE ROOT", mend=r"`sqrt\(x\)`"),
    at("x=1,z=1,«х»=2", "CYRILLIC SMALL LETTER HA), which looks like `x`", "ASCII letter `x`"),
    at("x=1,z=1,a«·»b=2", "MIDDLE DOT", r"type `\*`"),
    at("x=1,«if»=2", "`if` is a word of Python's", "`if_`"),
    at("x=1,«nan»=2", "`nan` is a constant", "`nan_`"),
    at("x=1,z=«2»z", "this is not a number", r"`2\*z`"),
    mistake("jacobian", "y=x", "--shape", "«х»=2", says="CYRILLIC SMALL LETTER HA), which looks like `x`"),
    mistake("jacobian", "y=x", "--shape", "«x=0»", says="would be empty", mend="from 1"),
    mistake("jacobian", "y=x", "--shape", "«x»", says="a shape is NAME=SIZE", mend="--shape x=3, or --shape x=2x2"),
    mistake("jacobian", "y=x", "--shape", "«z»=3", says="`z` is not in the system", mend="the inputs are x"),
    mistake("jacobian", "y=x", "--shape", "x=2,«x=3»", says="`x` is given two shapes", mend=""),
    mistake("jacobian", "y=x", "--shape", "«x=999999999»", says="is too large", mend="at most"),
    mistake("jacobian", "y=x", "--shape", "x=2", "--at", "«x»=[1,2,3]", says="its shape is (2,)"),
    mistake(
        "backward",
        "y=cumprod(x)",
        "--shape",
        "x=2000",
        "--v",
        "ones",
        says="2,000 × 2,000 entries",
        mend="with --at$",
    ),
    mistake("jacobian", "y=x", "--shape", "x=20000", says="20,000 × 20,000 entries", mend="--outputs"),
    mistake("jacobian", "y=alpha", "--wrt", "«alhpa»", says="`alhpa` is not in the system", mend="mean `alpha`"),
    mistake("jacobian", "y=x", "--wrt", "«y»", says="`y` is computed", mend="--retain y"),
    mistake("jacobian", "y=x", "--wrt", "x,«x»", says="`x` is named twice", mend=""),
    mistake("jacobian", "y=x", "--outputs", "«x»", says="`x`, which is an input", mend=""),
    mistake("jacobian", "y=x", "--outputs", "«q»", says="`q`, which is not assigned", mend="y"),
    mistake("backward", "y=x", "--at", "x=1", "--retain", "«q»", says="`q` is not in the system"),
    mistake("backward", "y=x", "--at", "x=1", "--retain", "«x»", says="`x` is an input", mend=""),
    v("«1,2»", "shape (2,) of v against shape (3,) of y", "PyTorch says"),
    v("«y»=[1,2]", "shape (2,) of v against shape (3,) of y", ""),
    v("«y[3]»=1", "`y[3]` is not an element of `y`, of shape (3,)", ""),
    v("«z»=1", "`z` is not an output", "the outputs are y"),
    v("y=[1,2,3],«y»=1", "`y` is given twice", "repeat --v"),
    v("«onehot:3»", "outputs are counted from 0 to 2", ""),
    v("«onehot:z»", "names no element"),
    v("«onehot:y[3]»", "names no element", r"did you mean `y\[2\]`"),
    v("«onehot:y»", "names no element", r"onehot:y\[0\]"),
    v("«onehot»", "needs an output", "onehot:1"),
    v("«foo»", "`foo` is not a number", r"\[1, 2\]"),
    v("«[[1,2],[3]]»", "cannot be stacked", ""),
    v("«@no.npy»", "`no.npy` cannot be read: no such file", ""),
    mistake(
        "backward",
        "y=x",
        "z=w",
        "--at",
        "x=1,w=2",
        "--v",
        "«1,2,3»",
        says="shape (3,) of v against 2",
        mend="one number for each of y, z",
    ),
    mistake("jacobian", "-F", "-", "-F", "-", says="standard input can be read only once", mend="-F system.grad"),
    mistake("backward", "--v", "-", says="no system is given", mend="gradcli"),
    mistake("jacobian", says="no system is given", mend="write a statement"),
    mistake("jacobian", "y=x", "-f", "«xml»", says="'xml' is not one of 'table', 'json'", mend="--help"),
    mistake("jacobian", "y=x", "-f", "«jsn»", says="'jsn' is not one of 'table', 'json'", mend="did you mean `json`"),
    mistake("jacobian", "y=x", "--wtr", "x", says="No such option '--wtr'", mend="did you mean `--wrt`"),
    mistake("y=x", says="No such command 'y=x'", mend="after a command: gradcli backward y=x"),
    mistake("jacobian", "y=x", "--nonsense", says="No such option '--nonsense'", mend="--help"),
    mistake("nonsense", says="No such command 'nonsense'", mend="--help"),
    mistake("forward", "x**2", says="No such command 'forward'", mend="did you mean `jvp`"),
    mistake("guide", says="No such command 'guide'", mend="did you mean `explain`"),
    mistake("train.py", "--epochs", "3", says="No such command 'train.py'", mend="gradcli run train.py --epochs 3"),
    mistake("x**2", "--at", "x=3", says=r"No such command 'x**2'", mend=r"gradcli backward 'x\*\*2'"),
    mistake("backward", "y=x", "--gradient", "1", says="No such option '--gradient'", mend="did you mean `--v`"),
    mistake("backward", "y=x", "-v", "1", says="No such option '-v'", mend="did you mean `--v`"),
    mistake("jacobian", stdin="a = x\nb = a*«foo»(x)\n", says="standard input, line 2", mend=""),
    mistake("jacobian", stdin=b"y = x\xff", says="is not UTF-8 text", mend="save it as UTF-8"),
    mistake("jacobian", stdin=b"y = x\0", says="NUL", mend=""),
    mistake("jacobian", stdin="\ufeffa = x\r\ny = «foo»(a)\r\n", says="unknown function `foo`"),
]


def marked(text: str) -> tuple[str, str, int, int] | None:
    """Return a text without its marks, the line that they are in, and their columns there."""
    head, _, rest = text.partition("«")
    inside, _, tail = rest.partition("»")
    if not rest:
        return None
    column = len(head) - head.rfind("\n") - 1
    line = (head + inside + tail).split("\n")[head.count("\n")]
    return head + inside + tail, line, column, len(inside)


@each("mistake", LANGUAGE + OPTIONS)
def test_mistake(cli, mistake):
    clean = [mark[0] if (mark := marked(text)) else text for text in mistake.arguments]
    stdin = mistake.stdin
    places = [mark for text in (*mistake.arguments, stdin) if isinstance(text, str) and (mark := marked(text))]
    err = cli.refused(*clean, stdin=places[0][0] if places and stdin else stdin)
    assert mistake.message in said(err)
    for _, line, column, width in places:
        shown = "".join(c if c.isprintable() else "�" for c in line.strip("\ufeff\r").replace("\t", " "))
        assert f"\n  {shown}\n  {' ' * column}{'^' * width}\n" in err + "\n"
    # The place of the excerpt is no advice yet.
    assert re.search(mistake.way_out, re.sub(r"\n  (in --\w+|.*, line \d+):(?=\n|$)", "", said(err)))


def test_carets_stand_below_letters_of_any_width(cli):
    """A letter of East Asia takes two columns of a terminal, an accent none."""
    assert "\n  y = 変数 + sinn(x)\n             ^^^^\n" in cli.refused("jacobian", "y = 変数 + sinn(x)")
    assert "\n  y = q\u0301 + sinn(x)\n          ^^^^\n" in cli.refused("jacobian", "y = q\u0301 + sinn(x)")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("nonsense", "nonsense"),
        ("jacobian y=x --nonsense", "--nonsense"),
        ("jacobian y=x --strict", "--strict"),
        ("backward y=x --at", "--at"),
        ("backward y=x --standalone", "--standalone"),
        ("backward y=x --points no.csv", "no.csv"),
        ("graph y=x --output picture.xyz", "picture.xyz"),
        ("run no.py", "no.py"),
    ],
)
def test_carets_stand_below_a_word_of_the_command_line(cli, line, place):
    shown = f"gradcli {line}"
    assert f"\n  {shown}\n  {' ' * shown.index(place)}{'^' * len(place)}\n" in cli(*line.split()).told


def test_a_caret_stands_where_a_value_is_to_be_added(cli):
    assert "\n  in --at:\n  x=3\n     ^\n  add it: " in cli.refused("jacobian", "y=x*z", "--at", "x=3")


@pytest.mark.parametrize("name", ["λ" * 1001, "x" + "\u0301\u0323" * 100_000], ids=["letters", "accents"])
def test_names_that_are_too_long(cli, name):
    assert "characters is too long" in cli.refused("jacobian", f"y = {name}")
    assert "characters is too long" in cli.refused("backward", "y = x", "--at", f"{name}=1")


def test_a_message_of_any_length_is_cut(cli):
    name = "a" * 100_000
    assert len(cli.refused("backward", f"{name} = b", "--at", "c=1")) < 10_000
    assert len(cli("backward", f"y = {name} + b", "--at", f"{name}=1,b=2", "--only", "grad").err) < 10_000
    assert len(str(InputError("x" * 10**6, hint="y" * 10**6))) < 10_000
