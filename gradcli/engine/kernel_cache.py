"""Compiled code, kept between runs where only the user can have put it: what is read here is run.

Another user who may write to the folder, or to one on the way to it, could put a program of theirs in its place.  So
the folders and the files are refused unless they are as safe as `ssh` demands of its keys.  What is damaged fails its
checksum.  A file is whole or not there: it is written under another name, and several processes may write the same.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_DIGEST = hashlib.sha256().digest_size
_LEFT_OVER = 3600  # seconds after which a file that is being written was given up


def place() -> Path:
    """Return the folder in which code is kept; it need not be there, nor safe."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # By the rules for that variable a relative path does not count.
    return Path(named if os.path.isabs(named) else os.path.expanduser("~/.cache")) / "gradcli"


def read(key: str) -> bytes:
    """Return what was kept under a key.

    Errors: `OSError` where there is nothing, where it is damaged, and where another user may have put it.
    """
    digest = hashlib.sha256(key.encode()).digest()
    path = _folder() / _name(digest)
    _check(path, "file")
    kept = path.read_bytes()
    data = kept[_DIGEST:]
    if kept[:_DIGEST] != _checksum(digest, data):
        raise OSError(f"`{path}` is damaged")
    return data


def keep(key: str, data: bytes) -> None:
    """Keep data under a key, in the place of what is kept there.

    Errors: `OSError` where it cannot be written, or another user could change it; then all is as it was before.
    """
    digest = hashlib.sha256(key.encode()).digest()
    folder = _folder()
    _remove_left_over(folder)
    handle, temporary = tempfile.mkstemp(".tmp", dir=folder)
    try:
        with open(handle, "wb") as file:
            file.write(_checksum(digest, data) + data)
        os.replace(temporary, folder / _name(digest))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _name(digest: bytes) -> str:
    return f"kernel_{digest.hex()}"


def _checksum(digest: bytes, data: bytes) -> bytes:
    """Return the checksum of a file, which belongs to its name too: one kernel cannot take another's place."""
    return hashlib.sha256(digest + data).digest()


def _folder() -> Path:
    """Return the folder in which code is kept, which is made if it is not there.

    Errors: `OSError` where it cannot be made, or another user could change what is in it.
    """
    named = place().parent
    if not named.is_absolute():
        raise FileNotFoundError("there is no home folder")
    real = Path(os.path.realpath(named))
    for path in (*named.parents, *real.parents):
        _check(path)
    folder = real / "gradcli"
    for path in (real, named, folder):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        _check(path, "folder" if path == folder else "")
    return folder


def _check(path: Path, ours: str = "") -> None:
    """Refuse a path that belongs to another user, or to which others may write; `ours` must be a "file" or "folder".

    One on the way to ours may be root's, and it may be a link, or sticky as /tmp is: there nobody but its owner
    replaces a file.
    """
    facts = path.lstat()
    if ours and not (stat.S_ISDIR if ours == "folder" else stat.S_ISREG)(facts.st_mode):
        raise OSError(f"`{path}` is no {ours}")
    if not hasattr(os, "geteuid"):  # Windows, where users' folders are their own and modes say nothing
        return
    if facts.st_uid not in ({os.geteuid()} if ours else {0, os.geteuid()}):
        raise PermissionError(f"`{path}` belongs to another user")
    passed = not ours and (stat.S_ISLNK(facts.st_mode) or facts.st_mode & stat.S_ISVTX)
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not passed:
        raise PermissionError(f"others may write to `{path}`")


def _remove_left_over(folder: Path) -> None:
    """Remove what processes that were killed left there unfinished."""
    for path in folder.glob("*.tmp"):
        with suppress(OSError):  # another process may be quicker
            if path.lstat().st_mtime < time.time() - _LEFT_OVER:
                path.unlink()
