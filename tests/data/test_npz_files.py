"""Points in .npz: headers of all versions, compressed or not, in Fortran order, damaged, encrypted."""

import zipfile

import numpy as np
import pytest
from conftest import each
from point_files import npz, read, refused

pytestmark = pytest.mark.usefixtures("own_folder")


@each("kind", ["?", "i1", ">i2", "<u8", "f2", ">f4", "<f8", "longdouble"])
@each("order", ["C", "F"])
@each("count", [2, 3])
def test_npz_of_any_numbers(kind, order, count):
    values = np.resize([0, 1, 1, 1, 0, 1, 1], (count, 5 - count)).astype(kind, order=order)
    found, _ = read(npz(x=values), size=1)
    np.testing.assert_array_equal(found["x"], values.T.astype(float))


@each("count", [1, 2, 5, 23, 24, 25, 100])
@each("size", [1, 3, 1000])
def test_fortran_order_of_any_number_of_points(count, size):
    arrays = {f"x{k}": np.random.default_rng(k).standard_normal((count, *s)) for k, s in enumerate([(2, 3, 4), (24,)])}
    found, _ = read(npz(**{name: np.asfortranarray(a) for name, a in arrays.items()}), size=size)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], np.moveaxis(array, 0, -1))


def test_a_wide_float_beyond_float64_is_infinite():
    wide = np.array([1, 2], dtype=np.longdouble) * np.longdouble(10) ** 300
    assert read(npz(x=wide * wide))[0]["x"].tolist() == [np.inf] * 2


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(1.0), "`x` is a single number\n  points run along the first axis"),
        (np.array([1j]), "`x` holds complex128, not real numbers"),
        (np.array(["a"]), "`x` holds <U1, not real numbers"),
        (np.array([{}], dtype=object), "`x` holds object, not real numbers"),
        (np.array([1], dtype="M8[s]"), "`x` holds datetime64[s], not real numbers"),
        (np.zeros(1, dtype=[("é", float)]), "not real numbers"),
        (np.zeros((3, 0)), "`x` has no elements"),
        (np.zeros((0, 0)), "`x` has no elements"),
    ],
)
def test_npz_of_something_else(array, message):
    assert message in refused(npz(x=array))
    # What is not used can be anything.
    assert read(npz(**{"x": array, "b": np.ones(2), "a note": array}), ["b"])[0]["b"].tolist() == [1, 1]


def npy(shape, values=b"", version=(2, 0), descr="<f8", fortran=False):
    """Return a member of an archive, as its header wants it to be."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2 if version == (1, 0) else 4, "little") + text + values


def archive(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_headers_of_all_versions(tmp_path, version):
    member = npy((2,), np.array([1.0, 2.0]).tobytes(), version)
    path = archive(tmp_path / "p.npz", [("x.npy", member), ("README", b"hello"), ("y", b""), ("sub/x.npy", b"")])
    assert read(path)[0]["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"", "array `x` cannot be read: it is not an array of NumPy's"),
        (b"\x93NUM", "array `x` cannot be read: it is not an array of NumPy's"),
        (b"nothing of NumPy's", "array `x` cannot be read: it is not an array of NumPy's"),
        (npy((2,), bytes(15)), "array `x` is truncated"),
        (npy((2, 2), bytes(15), fortran=True), "array `x` is truncated"),
        (npy((10**15,)), "array `x` is truncated"),
        (npy((2, 10**15)), "array `x`: an array of shape 1e+15 is too large"),
        (npy((2, *[1] * 40), bytes(16)), "array `x`: an array of 40 dimensions has too many"),
        (npy((-2,)), "its shape is negative"),
        (npy((2,), version=(9, 0)), "cannot be read: version 9 of its format is not known"),
        (npy((2,))[:9], "cannot be read: its header is damaged"),
        (npy((2,))[:20], "cannot be read: its header is damaged"),
        (npy((2,), descr="what"), "cannot be read: its header is damaged"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"(" * 10**5, "cannot be read: its header is damaged"),
        (b"\x93NUMPY\x02\x00\x10\x27\x00\x00" + b"(" * 10**5, "cannot be read: its header is damaged"),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_broken_members(tmp_path, member, message, method):
    assert message in refused(archive(tmp_path / "p.npz", [("x.npy", member)], compression=method))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice(tmp_path):
    path = archive(tmp_path / "p.npz", [(name, npy((1,), bytes(8))) for name in ("x.npy", "x.npy", "y.npy")])
    assert "has the array `x` twice" in refused(path)
    assert read(path, ["y"])[0]["y"] == [0]


@pytest.mark.parametrize("shape", [(2000, 2), (2, 2000)])
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_archives(tmp_path, fortran, method, shape):
    values = np.random.default_rng(0).standard_normal(shape).tobytes()
    path = archive(tmp_path / "p.npz", [("x.npy", npy(shape, values, fortran=fortran))], compression=method)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(b ^ 0x55 for b in whole[middle : middle + 50]) + whole[middle + 50 :])
    assert refused(path).endswith("array `x` cannot be read: it is damaged")
    for cut in (0, 1, middle, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert refused(path).endswith("p.npz` cannot be read: it is not an .npz file, or it is damaged")


def test_encrypted_and_unusually_compressed_members(tmp_path):
    path = archive(tmp_path / "p.npz", [("x.npy", npy((1,), bytes(8)))])
    whole = bytearray(path.read_bytes())
    whole[6] |= 1  # the flag of encryption, in front of the member and in the directory
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)
    assert refused(path).endswith("array `x` cannot be read: it is encrypted")
    path = archive(tmp_path / "q.npz", [("x.npy", npy((1,), bytes(8)))], compression=zipfile.ZIP_LZMA)
    assert "np.savez_compressed" in refused(path)
