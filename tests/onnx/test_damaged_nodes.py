"""Nodes with attributes and inputs that they cannot have: a clear error, or numbers, and nothing else."""

import random
import warnings

import numpy as np
import pytest
from conftest import long

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from tests.onnx.builder import onnx
from tests.onnx.test_node_cases import KINDS, at, cases, in_scope, with_known

INTEGERS = (0, -1, -2, 1, 2, 7, 2**31, 2**62, -(2**63))
NUMBERS = (0.0, -1.0, 1e30, float("nan"), float("inf"))
SMALL = 1_000  # elements of an input


def damaged(case, rng):
    """Return a test of which an attribute, or an input, is another."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = rng.choice(list(model.graph.node))
    if not node.attribute or rng.random() < 0.3:
        k = rng.randrange(len(case.inputs))
        return case._replace(inputs=[_damaged_array(a, rng) if i == k else a for i, a in enumerate(case.inputs)])
    attribute = rng.choice(list(node.attribute))
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(INTEGERS)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice(NUMBERS)
    elif attribute.type == onnx.AttributeProto.INTS and attribute.ints and rng.random() < 0.7:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(INTEGERS)
    else:
        del node.attribute[:]
    return case._replace(model=model)


def _damaged_array(a, rng):
    if a.dtype.kind in "iu" and a.size and rng.random() < 0.7:
        result = a.copy()
        result.reshape(-1)[rng.randrange(a.size)] = np.array(rng.choice(INTEGERS)).astype(a.dtype)
        return result
    return rng.choice([a.reshape(-1), a[..., None], a[None], np.zeros((0, *a.shape[1:]), a.dtype)])


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[long] * (kind == "node")) for kind in KINDS])
def test_a_damaged_node_is_an_error_or_has_a_value(kind):
    rng = random.Random(1)
    for case in cases(kind):
        if not in_scope(case) or any(a.size > SMALL for a in case.inputs):
            continue
        hurt = damaged(case, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = with_known(hurt, "float64")
                evaluate(found.graph, at(found.values))
        except InputError:
            continue
        except Exception as error:
            error.add_note(f"{case.name}: {hurt.model.graph.node} of {[a.shape for a in hurt.inputs]}")
            raise
