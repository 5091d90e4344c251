"""Values in `.npy` files, however they lie there."""

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_array_equal

from gradcli.data.arrays import load


@each("order", ["C", "F"])
@each("shape", [(), (6,), (2, 3), (3, 2), (1, 6), (2, 3, 4)])
@each("kind", ["<f8", ">f8", "<f4", "<i4", ">i2", "u1", "?"])
def test_every_element_stands_in_its_place(tmp_path, kind, shape, order):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind, order=order)
    np.save(tmp_path / "x.npy", values)
    found = load(tmp_path / "x.npy")
    assert_array_equal(found, values.astype(float))
    assert found.dtype == float


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(tmp_path, version):
    values = np.asfortranarray([[1.0, 2, 3], [4, 5, 6]])
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, values, version)
    assert_array_equal(load(tmp_path / "x.npy"), values)
