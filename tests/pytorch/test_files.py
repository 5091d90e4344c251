"""What `torch.load` makes of a file that was written to do harm: tensors and modules, and never anything else."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
from conftest import long
from hypothesis import given
from hypothesis import strategies as st

from gradcli.pytorch import dtypes
from gradcli.pytorch.archives import Damaged
from gradcli.pytorch.messages import MissingError
from gradcli.pytorch.nn.module import rebuilt_parameter
from gradcli.pytorch.saving import load, save

BEFORE = []
RECORDED = Path(__file__).with_name("recorded.pt")  # which PyTorch 2.13 has saved


class Spy:
    def __init__(self):
        BEFORE.append("made")

    def __del__(self):
        BEFORE.append("gone")


@pytest.mark.parametrize(
    "name", [f"{__name__}.Spy", "tempfile._TemporaryFileCloser", "torch.nn.Linear.forward", "os.system"]
)
def test_a_class_that_is_no_module_is_never_made(name):
    file = pickled(Call(name, state={"name": "m.pt"}))
    with pytest.raises(pickle.UnpicklingError, match="Weights only"):
        load(archive(file))
    with pytest.raises(MissingError, match=name):
        load(archive(file), weights_only=False)
    assert BEFORE == []


def test_a_class_of_the_script_that_is_not_there():
    with pytest.raises(AttributeError, match="no class of modules"):
        load(archive(pickled(Call("__main__.Net", state={}))), weights_only=False)


def numbers(tensor):
    return tensor._a[..., 0]


def test_what_pytorch_has_saved_is_read():
    found = load(RECORDED)
    state = found.pop("state")
    assert type(state) is OrderedDict
    assert state._metadata == {"": {"version": 1}}
    assert {name: numbers(x).tolist() for name, x in state.items()} == {"weight": [[0.5, -2]], "bias": [3]}
    tensors = {name: found.pop(name) for name in ("turned", "column", "expanded", "parameter", "whole", "truth")}
    assert [numbers(x).tolist() for x in tensors.values()] == [
        *([[0, 3], [1, 4], [2, 5]], [1, 4], [[1, 1, 1], [1, 1, 1]], [3], [1, 2], True)
    ]
    assert [type(x).__name__ for x in tensors.values()].index("Parameter") == 3
    assert found == {
        **{"dtype": dtypes.float64, "size": (2, 3), "device": dtypes.device("cpu"), "set": {1, 2}, "bytes": b"ab"},
        **{"counter": Counter("aab"), "number": 10**20, "list": [1.5, None, True, ("a",)], 1: 2},
    }


class Named:
    """What pickle writes as a global name, and nothing else."""

    def __init__(self, name):
        self.name = name


class Storage:
    def __init__(self, kind, length):
        self.kind, self.length = kind, length


class Call:
    def __init__(self, name, *arguments, state=None):
        self.name, self.arguments, self.state = name, arguments, state


class Pickled(pickle._Pickler):
    """Writes calls and names that this process has not."""

    def persistent_id(self, obj):
        return ("storage", Named(f"torch.{obj.kind}"), "0", "cpu", obj.length) if isinstance(obj, Storage) else None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Named):
            self.write(b"c%s\n%s\n" % tuple(part.encode() for part in obj.name.rsplit(".", 1)))
        elif isinstance(obj, Call):
            self.save(Named(obj.name))
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
            if obj.state is not None:
                self.save(obj.state)
                self.write(pickle.BUILD)
        else:
            super().save(obj, save_persistent_id)


def archive(index, data=bytes(16), compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        target.writestr("m/data.pkl", index)
        target.writestr("m/data/0", data)
    return io.BytesIO(file.getvalue())


def pickled(obj):
    file = io.BytesIO()
    Pickled(file, 2).dump(obj)
    return file.getvalue()


def tensor(size, stride, offset=0, kind="FloatStorage", length=4):
    return Call("torch._utils._rebuild_tensor_v2", Storage(kind, length), offset, size, stride, False, OrderedDict)


sizes = st.lists(st.integers(-1, 4), max_size=3).map(tuple)


@given(sizes, st.lists(st.integers(-2, 5), max_size=3).map(tuple), st.integers(-1, 12))
def test_a_tensor_has_elements_of_its_storage_or_is_refused(size, stride, offset):
    storage = np.arange(12, dtype=np.float32)
    call = Call("torch._utils._rebuild_tensor_v2", Storage("FloatStorage", 12), offset, size, stride, False, None)
    fits = len(size) == len(stride) and min((*size, *stride, offset, 0)) >= 0
    if fits:
        places = offset + sum(np.indices(size)[k] * stride[k] for k in range(len(size))) + np.zeros(size, int)
        fits = places.max(initial=0) < 12
    if fits:
        found = load(archive(pickled(call), storage.tobytes()))
        assert numbers(found).tolist() == storage[places].tolist()
    else:
        with pytest.raises(Damaged):
            load(archive(pickled(call), storage.tobytes()))


HOSTILE = {
    "a size beyond the storage": tensor((100_000,), (1,)),
    "a stride beyond the address space": tensor((2,), (2**62,)),
    "a stride that overflows": tensor((2, 2), (2**70, 1)),
    "an offset beyond the address space": tensor((1,), (1,), 2**63),
    "a negative storage": tensor((1,), (1,), length=-4),
    "a storage of another length": tensor((1,), (1,), length=400),
    "a storage of another type": tensor((4,), (1,), kind="DoubleStorage"),
    "an expanded tensor of 4 TB": tensor((10**6, 10**6), (0, 0)),
    "an empty tensor of 4 TB": tensor((10**6, 0, 10**6), (0, 0, 0)),
    "sixty axes": tensor((1,) * 60, (1,) * 60),
    "a size that is text": tensor("ab", "ab"),
    "a size of booleans": tensor((True,), (True,)),
    "a tensor for a storage": Call("torch._utils._rebuild_tensor_v2", 1, 0, (1,), (1,), False),
    "a parameter of text": Call("torch._utils._rebuild_parameter", "text", True, None),
    "too many arguments": Call("torch._utils._rebuild_parameter", 1, 2, 3, 4, 5),
    "attributes of a container": Call("collections.OrderedDict", state={"items": 1}),
    "attributes of a tensor": Call("torch.Size", (1,), state={"a": 1}),
    "a function as data": Named("torch._utils._rebuild_tensor_v2"),
    "a function in a list": [Named("collections.OrderedDict")],
    "a function in a dictionary": {"a": (1, (2, Named("torch.FloatStorage")))},
    "a storage as data": [Storage("FloatStorage", 4)],
    "a device of no name": Call("torch.device", ("cpu",)),
}


@pytest.mark.parametrize("what", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_damaged_file_is_refused(what, weights_only):
    with pytest.raises(Damaged):
        load(archive(pickled(what)), weights_only=weights_only)


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "torch.load", "gradcli.pytorch.saving.save"])
def test_no_other_name_is_looked_up(name):
    with pytest.raises(pickle.UnpicklingError, match="Weights only"):
        load(archive(pickled(Call(name, "true"))))
    with pytest.raises(MissingError):
        load(archive(pickled(Call(name, "true"))), weights_only=False)


def nested(depth):
    """Return a pickle of a tuple whose hash, and whose text, takes 2**depth steps."""
    return (
        pickle.MARK
        + pickle.EMPTY_TUPLE * 2
        + pickle.TUPLE
        + (pickle.BINPUT + b"\0" + pickle.BINGET + b"\0\x86") * depth
    )


@pytest.mark.parametrize(
    "index",
    [
        pickle.EMPTY_DICT + nested(100) + pickle.NONE + pickle.SETITEM,
        pickle.GLOBAL + b"collections\nOrderedDict\n" + pickle.EMPTY_LIST + nested(100) + b"N\x86a\x85R",
        pickle.GLOBAL + b"torch\ndevice\n" + nested(100) + b"\x85R",
        pickle.NONE + b"\x82\x01",
        pickle.LONG_BINGET + struct.pack("<I", 5),
        b"",
        b"\xff",
    ],
)
def test_no_index_takes_long(index):
    with pytest.raises(Damaged):
        load(archive(index + pickle.STOP))


@long
def test_memory_is_bounded_by_the_file():
    memo = b"N" + b"".join(pickle.LONG_BINPUT + struct.pack("<I", n) for n in (2**31, 2**32 - 1)) + pickle.STOP
    bomb = archive(pickled(tensor((1,), (1,))), bytes(2**26), zipfile.ZIP_DEFLATED)
    many = [tensor((2**22,), (0,)) for _ in range(100)]
    tracemalloc.start()
    try:
        assert load(archive(memo)) is None
        with pytest.raises(Damaged, match="compressed"):
            load(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        with pytest.raises(Damaged, match="many times longer"):
            load(archive(pickled(many)))
        assert tracemalloc.get_traced_memory()[1] < 2**29
    finally:
        tracemalloc.stop()


@given(st.data())
def test_a_file_with_other_bytes_is_read_or_refused(data):
    whole = RECORDED.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    with contextlib.suppress(RuntimeError, pickle.UnpicklingError):
        load(io.BytesIO(whole))


def test_a_file_is_saved_whole_or_not_at_all(tmp_path):
    path = tmp_path / "m.pt"
    save([1, 2], path)
    path.chmod(0o600)
    with pytest.raises(MissingError):
        save([1, Spy], path)
    assert load(path) == [1, 2]
    loop = rebuilt_parameter(np.ones(3), False)
    loop._a = type("Broken", (), {"tobytes": lambda self: 1 / 0})()
    with pytest.raises(ZeroDivisionError):
        save([loop], path)
    assert load(path) == [1, 2]
    save({"a": (3,)}, path)
    assert load(path) == {"a": (3,)}
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["m.pt"]
    save([4], os.devnull)
    assert not os.path.isfile(os.devnull)
