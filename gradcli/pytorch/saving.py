"""`torch.save` and `torch.load`: a zip archive of the bytes of tensors, and of an index as `pickled` has it."""

from __future__ import annotations

import os
import pickle
import struct
import zipfile
from typing import Any

from gradcli.data.replacement import replaced_file
from gradcli.pytorch.archives import Archive, Damaged
from gradcli.pytorch.messages import facts_of, raise_if, torch_error
from gradcli.pytorch.pickled import Reader, Writer, checked_data


def save(obj: Any, f: Any, **_: Any) -> None:
    """Write tensors, what holds them, or modules to a file.

    A file that is there already is replaced whole, or not at all.

    Errors: `MissingError` for anything else; `RuntimeError` where the folder is not there; `OSError`.
    """
    folder = os.path.dirname(f) if isinstance(f, str | os.PathLike) else ""
    raise_if(folder and not os.path.isdir(folder), "no folder", folder)
    writer = Writer()
    writer.dump(obj)
    if not isinstance(f, str | os.PathLike):
        _write(f, writer)
        return
    if os.path.exists(f) and not os.path.isfile(f):  # a device, or a pipe, cannot be replaced
        with open(f, "wb") as file:
            _write(file, writer)
        return
    with replaced_file(os.fspath(f)) as file:
        _write(file, writer)


def _write(file: Any, writer: Writer) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", writer.index.getvalue())
        archive.writestr("archive/byteorder", "little")
        for i, data in enumerate(writer.storages):
            archive.writestr(f"archive/data/{i}", data)
        archive.writestr("archive/version", "3\n")


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what was saved.

    Errors: `RuntimeError` for a file that is not an archive of tensors, or is damaged; `UnpicklingError` for more than
    weights.
    """
    try:
        with zipfile.ZipFile(f) as file:
            archive = Archive(file)
            index = next((name for name in archive.names if name.endswith("/data.pkl")), None)
            if index is None:
                raise torch_error("not an archive")
            return checked_data(Reader(archive, index.removesuffix("/data.pkl"), weights_only).load())
    except zipfile.BadZipFile:
        raise torch_error("not an archive") from None
    except _UNREADABLE as error:
        if facts_of(error) is not None:
            raise
        raise Damaged("what it says cannot be read") from error


_UNREADABLE = (
    *(AttributeError, LookupError, TypeError, ValueError, RecursionError, NotImplementedError, EOFError),
    *(AssertionError, struct.error, pickle.UnpicklingError),
)
