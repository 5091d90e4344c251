"""Scripts under PyTorch run as they would without a recording, and their records hold: the formulas give PyTorch's
numbers and gradients.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.record.numbers import Numbers
from gradcli.script.under_pytorch.verify import verify
from tests.realtorch.runs import SAMPLES, SCRIPTS, run_script
from tests.record.conformance import check_record

pytestmark = pytest.mark.filterwarnings("ignore")
EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-8}


@pytest.mark.parametrize("path", [*SCRIPTS, *SAMPLES], ids=lambda p: p.stem)
def test_a_recorded_script_prints_what_it_prints_without(path):
    plain, recorded = run_script(path, False), run_script(path, True)
    assert recorded.out == plain.out
    assert recorded.err == plain.err
    assert recorded.status == plain.status
    for record in recorded.records:
        check_record(record)
        (backward,) = record.backwards
        for o in record.operations:
            check_formula(record, o)
            assert o.is_opaque or verify(record, backward, o), (o.row, o.site.line)


def check_formula(record, o):
    """Assert that the formula of an operation gives the numbers that PyTorch has computed."""
    operands = [record.quantities[x].numbers if isinstance(x, int) else x for x in o.operands]
    if any(n.whole is None or n.dtype == "bfloat16" for n in operands):
        return
    for q, definition in zip(o.results, o.definitions, strict=False):
        result = record.quantities[q].numbers
        if result.whole is None or result.dtype == "bfloat16":
            continue
        leaves = [leaf(n.shape, n.dtype) for n in operands[: definition.operands]]
        node = definition.node(leaves)
        inputs = {f"x{k}": n for k, n in enumerate(leaves)}
        graph = Graph.of(inputs, {"y": node})
        value = at_point(graph, {f"x{k}": n.whole for k, n in enumerate(operands)}, [node])[node]
        size = np.abs(result.whole[np.isfinite(result.whole)]).max(initial=1)
        assert np.allclose(value, result.whole, 1e-4, 1e-4 * size, equal_nan=True), (o.row, o.site.line)


def test_most_operations_have_a_formula():
    """Of the operations in these scripts, which the emulation does not run, seven in ten; the names of the others."""
    known, unknown = Counter(), Counter()
    for path in SCRIPTS:
        for record in run_script(path, True).records:
            for o in record.operations:
                (unknown if o.is_opaque else known)[o.row] += 1
    share = known.total() / (known.total() + unknown.total())
    print(round(share, 3), dict(unknown.most_common()))
    assert share >= 0.7, unknown


def test_what_a_function_returns_as_it_is_leaves_the_other_results_their_formulas():
    """`broadcast_tensors` returns a tensor of the common shape itself, and one that requires no gradient."""
    records = run_script(next(p for p in SCRIPTS if p.stem == "distributions"), True).records
    operations = [o for record in records for o in record.operations]
    assert sum(o.grad_fn == "ExpandBackward0" and o.row == "broadcast" for o in operations) >= 2
    assert not [o.row for o in operations if o.is_opaque]


def test_large_numbers_are_kept_until_they_are_overwritten():
    import torch

    from gradcli.realtorch.driver import Session

    records = []
    with Session(lambda *_: True, lambda record, *_: records.append(record)).running():
        x = torch.zeros(100, 100, requires_grad=True)
        y = x + 1
        z = y.relu()
        y.add_(5)  # which relu does not need: it keeps its result
        (z.sum() + y.sum()).backward()
    (record,) = records
    by_row = {o.row: o for o in record.operations}
    assert isinstance(record.quantities[by_row["relu"].operands[0]].numbers, Numbers)
    assert (record.quantities[by_row["relu"].operands[0]].numbers.whole == 1).all()


def test_what_is_not_among_the_inputs_of_grad_is_not_said_to_be_without_effect():
    import torch

    from gradcli.realtorch.driver import Session
    from gradcli.script.pages.flow import flow

    records = []
    with Session(lambda *_: True, lambda record, *_: records.append(record)).running():
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        torch.autograd.grad((x * w).sum(), x)
    (record,) = records
    assert {row.name: row.why for row in flow(record, record.backwards[0])} == {
        "x": "",
        "w": "not among the inputs of this call",
    }
