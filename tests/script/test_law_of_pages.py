"""The law of truth: each number on a page is one that its variable had, and each equation holds between such numbers.

Random scripts change tensors and views of them in place, also where no step is recorded of it, assign `.data`, take
branches, and change gradients by hooks.  What variables had is seen by a trace of the test's own, line by line;
equations are evaluated by Python, in NumPy.
"""

import ast
import random
import re
import sys
import unicodedata

import numpy as np
import pytest

from tests.conftest import some

START = """\
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
w = torch.tensor([0.5, -1., 2.], requires_grad=True)
buf = torch.tensor([1., 1., 2.])
"""
HOOKS = ("g*2", "g + 1", "-g", "g.clamp(max=1)")
FUNCTIONS = {
    **{name: getattr(np, name) for name in ("sum", "exp", "sin", "cos", "where")},
    "ones": lambda *shape: np.ones(shape),
    "zeros": lambda *shape: np.zeros(shape),
    "array": lambda items: np.stack([np.asarray(e, float) for e in items]),
}


def statements(rng):
    """Yield the lines of a random script, from the leaves x and w to the loss z."""
    known = ["x", "w"]
    for n in range(rng.randint(4, 8)):
        inner = known[2:]
        kind = rng.random() if inner else 0
        if kind < 0.5:
            a, b, c = rng.choice(known), *(rng.choice([*known, "buf", "2", "0.5"]) for _ in "bc")
            forms = (
                f"{a} * {b}", f"{a} - {b}", f"{a}**2", f"torch.exp(0.3*{a})", f"torch.sin({a})", f"{a} * {b} + {c}",
            )  # fmt: skip
            known.append(f"y{n}")
            yield f"y{n} = {rng.choice(forms)}"
        elif kind < 0.6:
            yield rng.choice(("buf += 5", "buf.mul_(2)", "buf[0] = 7", "buf = buf + 1", "buf.numpy()[1] = 4"))
        elif kind < 0.7:
            yield f"{rng.choice([*inner, *inner, 'x'])}.data[{rng.randint(0, 2)}] = {rng.randint(4, 9)}"
        elif kind < 0.8:
            yield rng.choice(inner) + rng.choice((" += 1", "[1:] *= 2"))
        elif kind < 0.84:
            yield f"{rng.choice([*inner, 'x', 'buf'])}.data = torch.tensor([{rng.randint(1, 9)}., 2., 3.])"
        elif kind < 0.9:
            a, b = rng.choice(known), rng.choice(known)
            known.append(f"y{n}")
            yield f"if {a}.sum() > 1:\n    y{n} = {a}*3\nelse:\n    y{n} = {b} - 1"
        else:
            yield f"{rng.choice([*inner, 'x'])}.register_hook(lambda g: {rng.choice(HOOKS)})"
    yield f"z = ({known[-1]}*{known[-1]} + {rng.choice(known)} + {rng.choice(known)}*x).sum()"
    yield "z.backward()"


def number(text):
    """Return the numbers that a text is; None where it is a formula."""
    return np.array(ast.literal_eval(text), float) if re.fullmatch(r"[-\d.e+,\[\] ]+", text) else None


def read(page):
    """Return the equations of a page as their sides, and the numbers of the point and of what hooks returned."""
    equations, known = [], {"v": np.ones(())}
    for line in page.splitlines():
        if line.startswith("v = "):
            continue
        row = re.match(r"^  +(?:[a-z][a-z ]*[a-z]  +)?(\S+)  +(?:scalar|[\d×]+)  +(\[.*\]|[-\d.]+)$", line)
        point = re.search(r"(?:^|   )at (\w+ = .+)$", line)
        hook = re.match(r"(\w+)'s hook[^:]*: (.*) → (.*)$", line)
        if row:
            known[row[1]] = number(row[2])
        elif hook:
            name = f"{hook[1][0]}\u0304{hook[1][1:]}"
            while name in known:
                name = f"hook({name})"
            name, before = (name, None) if name.startswith("hook") else (f"hook({name})", name)
            known |= {before: number(hook[2])} if before else {}
            known[name] = number(hook[3])
        for name, value in re.findall(r"(\w+) = (\[[^=]*\]|[-\d.]+)(?:, |$)", point[1]) if point else ():
            known[name] = number(value)
        line = line[: point.start()] if point else line
        if re.match(r"^[^\s=:]+ +=", line):
            equations.append([side.strip() for side in re.split(r" +=(?!=) ", line)])
    return equations, known


class _Arrays(ast.NodeTransformer):
    """Makes arrays of lists."""

    def visit_List(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("array", ast.Load()), [node], [])


def value(formula, known):
    """Return the value of a formula in terms of known names, which Python may not have as names."""
    names = sorted(known, key=len, reverse=True)
    pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w\u0304(])" for name in names)
    text = re.sub(pattern, lambda m: f"_{names.index(m[0])}", formula.replace("·", "*")) if names else formula
    tree = ast.fix_missing_locations(_Arrays().visit(ast.parse(text, mode="eval")))
    scope = {f"_{k}": known[name] for k, name in enumerate(names)}
    return np.asarray(eval(compile(tree, formula, "eval"), {**FUNCTIONS, **scope}), float)


def close(a, b):
    """Return whether numbers are equal as far as a page has digits."""
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=3e-4, atol=3e-4)


def told(page):
    """Return the equations of a page, and the numbers of all names on it."""
    equations, known = read(page)
    numbers = {left: number(sides[-1]) for left, *sides in equations if not left.endswith(".grad")}
    known = {name: a for name, a in numbers.items() if a is not None} | known
    waiting = [(left, sides[0]) for left, *sides in equations if left not in known and not left.endswith(".grad")]
    while waiting:  # adjoints are defined from the last operation to the first, and have no numbers
        for left, formula in waiting:
            try:
                known[left] = value(formula, known)
                break
            except NameError:
                continue
        else:
            raise AssertionError(f"not defined on the page: what {waiting} name")
        waiting = [(left, formula) for left, formula in waiting if left not in known]
    return equations, known


NO_FORMULA = re.compile("Backward0|left it|changed since|^∂")  # in words, or a name of an adjoint


@pytest.mark.parametrize("seed", some(range(300)))
def test_a_page_is_true(cli, tmp_path, monkeypatch, seed):
    monkeypatch.setenv("COLUMNS", "900")
    path = tmp_path / "script.py"
    path.write_text(START + "".join(f"{line}\n" for line in statements(random.Random(seed))), "utf-8")
    had = {}

    def line(frame, event, argument):
        if frame.f_code.co_filename == str(path):
            for name, x in frame.f_locals.items():
                if hasattr(x, "_a"):
                    had.setdefault(name, []).append(x._a[..., 0].copy())
            return line
        return None

    before = sys.gettrace()
    sys.settrace(line)
    try:
        outcome = cli("run", str(path))
    finally:
        sys.settrace(before)
    page = unicodedata.normalize("NFD", outcome.out)
    if "modified by an inplace operation" in outcome.err:
        return  # as PyTorch says
    assert outcome.status == 0
    assert "not explained" not in page
    if " with [" in page:
        return  # an adjoint that is assembled by indices, which Python cannot evaluate
    equations, known = told(page)
    for left, *sides in equations:
        numbers = number(sides[-1])
        numbers = known.get(left) if numbers is None else numbers
        for side in sides:
            if not NO_FORMULA.search(side):
                assert close(value(side, known), numbers), (left, side, page)
    for name, numbers in known.items():
        variable = name if name in had else re.sub(r"_\d+$", "", name)
        if variable in had:
            assert any(close(numbers, a) for a in had[variable]), (name, numbers, page)
    for leaf, grad in re.findall(r"^(\w)\.grad: None → (.*)$", page, re.MULTILINE):
        headline = next(sides[-1] for left, *sides in equations if left == f"{leaf}.grad")
        assert close(number(headline), number(grad)), page
