"""Facts of an operation are on its row: comparisons with an operation's name are few, and are listed here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gradcli
from gradcli.graph.operations import OPERATIONS

ROOT = Path(gradcli.__file__).parent
# Comparisons of `.op` by file, outside the tables, and why they are no fact of a row: fewer are welcome, more are not.
REASONS = {
    "pattern": "matches formulas of a certain shape (a product of matrices): operations are its subject",
    "writing": "writes this operation in its own way",
    "engine": "has its own code for this operation: a target's rule that is no line of its table",
    "poles": "knows where an operation has no value, or an infinite one, which no row says yet",
    "script": "reads a recorded step's name, which is PyTorch's",
}
ALLOWED: dict[str, tuple[int, str]] = {
    "algebra/formulas.py": (1, "writing"),
    "algebra/functions.py": (3, "writing"),
    "api/differentiate.py": (1, "pattern"),
    "codegen/arrays.py": (3, "engine"),
    "codegen/elements.py": (1, "engine"),
    "codegen/loops.py": (5, "engine"),
    "engine/llvm/code.py": (3, "engine"),
    "engine/lowering.py": (2, "engine"),
    "engine/numpy_kernel.py": (2, "engine"),
    "engine/wide.py": (2, "engine"),
    "graph/jacobian.py": (2, "pattern"),
    "graph/jvp.py": (1, "pattern"),
    "graph/node.py": (3, "pattern"),
    "graph/rewrite.py": (1, "pattern"),
    "graph/vjp.py": (1, "pattern"),
    "notation/latex_arrays.py": (1, "writing"),
    "notation/text.py": (1, "writing"),
    "notation/writer.py": (3, "writing"),
    "onnx/operators/classical.py": (4, "pattern"),
    "onnx/operators/elementwise.py": (2, "pattern"),
    "pages/backward/gradients.py": (1, "pattern"),
    "pages/backward/steps.py": (1, "writing"),
    "pages/backward/torch_script.py": (2, "writing"),
    "pages/check/borders.py": (10, "poles"),
    "pages/check/claim.py": (1, "pattern"),
    "pages/check/derivation.py": (7, "pattern"),
    "pages/check/magnitudes.py": (3, "pattern"),
    "pages/check/parting.py": (6, "poles"),
    "pages/check/proof.py": (1, "pattern"),
    "pages/check/regions.py": (1, "poles"),
    "pages/check/slip_text.py": (5, "writing"),
    "pages/check/slips.py": (10, "pattern"),
    "pages/forms/hessian.py": (1, "pattern"),
    "pages/forms/rules.py": (4, "pattern"),
    "pages/forms/sums.py": (2, "pattern"),
    "pages/not_finite.py": (2, "poles"),
    "pages/picture/folding.py": (1, "pattern"),
    "pyfunc/elements.py": (1, "engine"),
    "pytorch/double_backward.py": (3, "script"),
    "pytorch/layouts.py": (2, "script"),
    "script/errors/finite.py": (3, "script"),
    "script/instances.py": (4, "pattern"),
    "script/measured.py": (1, "pattern"),
}


def comparisons(path):
    """Yield the lines where an attribute `op` is compared or matched."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Compare(left, _, others):
                sides = [left, *others]
            case ast.Match(subject):
                sides = [subject]
            case _:
                continue
        parts = [e for side in sides for e in (side.elts if isinstance(side, ast.Tuple) else [side])]
        known = any(isinstance(p, ast.Name) and p.id == "OPERATIONS" for p in parts)  # whether it has a row at all
        if not known and any(isinstance(p, ast.Attribute) and p.attr == "op" for p in parts):
            yield node.lineno


@pytest.mark.parametrize("room", sorted(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("_")))
def test_operations_are_known_by_their_rows(room):
    for path in sorted((ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        lines = [*comparisons(path)]
        most, reason = ALLOWED.get(name, (0, "pattern"))
        assert reason in REASONS
        assert len(lines) <= most, f"{name}, lines {lines}: a fact of an operation belongs on its row"


def test_the_list_has_no_file_that_is_gone():
    assert all((ROOT / name).exists() for name in ALLOWED)


def test_facts_are_of_arguments_that_there_are():
    for op, row in OPERATIONS.items():
        positions = {*row.linear, *row.multiplies, *(row.corner.positions if row.corner else ())}
        assert all(k < row.arity for k in positions) or row.kind in ("along", "scan"), op
        assert not row.commutes or row.arity == 2, op
        assert bool(row.infix) == (row.precedence.name != "ATOM"), op
