"""What is kept between runs is read again whole or not at all, and only where nobody but the user can have put it."""

import os
import resource
import stat
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from gradcli.engine.kernel_cache import keep, place, read

DATA = bytes(range(256)) * 20


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Return the folder that holds `gradcli`."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def only_file(home):
    (path,) = (home / "gradcli").iterdir()
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("data", [b"", b"x", DATA])
def test_what_is_kept_is_read(home, data):
    keep("key", b"earlier")
    keep("other", b"other")
    keep("key", data)
    assert read("key") == data
    assert read("other") == b"other"
    assert len(list((home / "gradcli").iterdir())) == 2


def test_nothing_is_kept(home):
    with pytest.raises(FileNotFoundError):
        read("key")


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_others_have_no_access(home, mask):
    before = os.umask(mask)
    try:
        keep("key", DATA)
    finally:
        os.umask(before)
    assert [mode(path) for path in (home, home / "gradcli", only_file(home))] == [0o700, 0o700, 0o600]


# Damage


def test_every_damage_is_seen(home):
    keep("key", DATA)
    path = only_file(home)
    whole = path.read_bytes()
    flipped = [whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :] for k in range(0, len(whole), 37)]
    cut = [whole[:k] for k in (0, 1, 31, 32, 33, len(whole) - 1)]
    for damaged in [*flipped, *cut, whole + b"\0", bytes(len(whole))]:
        path.write_bytes(damaged)
        with pytest.raises(OSError, match="is damaged"):
            read("key")
    path.write_bytes(whole)
    assert read("key") == DATA


def test_a_file_under_another_name_is_none(home):
    keep("key", DATA)
    first = only_file(home)
    keep("other", b"other")
    (second,) = set((home / "gradcli").iterdir()) - {first}
    os.replace(first, second)
    with pytest.raises(OSError, match="is damaged"):
        read("other")


# Others


def give_away(monkeypatch, given):
    """Let a path belong to another user."""
    lstat = Path.lstat

    def changed(path):
        facts = lstat(path)
        return os.stat_result([*facts[:4], facts.st_uid + 1, *facts[5:]]) if path == given else facts

    monkeypatch.setattr(Path, "lstat", changed)


def open_to_all(mode):
    return lambda monkeypatch, path: path.chmod(mode)


UNSAFE = {
    "another user's": give_away,
    "writable by the group": open_to_all(0o770),
    "writable by all": open_to_all(0o707),
}


def refused(call, *args):
    try:
        call(*args)
    except OSError as error:
        return str(error)
    return pytest.fail("it is not refused")


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize("depth", ["gradcli", "the folder above", "its parent"])
def test_a_folder_that_others_may_change(home, monkeypatch, depth, what):
    keep("key", DATA)
    file = only_file(home)
    before = file.read_bytes()
    path = {"gradcli": home / "gradcli", "the folder above": home, "its parent": home.parent}[depth]
    UNSAFE[what](monkeypatch, path)
    says = f"`{path}` belongs to another user" if UNSAFE[what] is give_away else f"others may write to `{path}`"
    assert refused(read, "key") == says
    assert refused(keep, "key", b"new") == says
    assert file.read_bytes() == before
    assert only_file(home) == file


@pytest.mark.parametrize("what", UNSAFE)
def test_a_file_that_others_may_change(home, monkeypatch, what):
    keep("key", DATA)
    UNSAFE[what](monkeypatch, only_file(home))
    assert str(only_file(home)) in refused(read, "key")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    keep("key", b"new")
    assert read("key") == b"new"
    assert mode(only_file(home)) == 0o600


def test_a_sticky_folder_on_the_way_is_safe(home):
    """As /tmp is; but in a sticky folder `gradcli` anybody could add files."""
    home.parent.chmod(0o1777)
    home.mkdir(mode=0o700)
    home.chmod(0o1777)
    keep("key", DATA)
    assert read("key") == DATA
    (home / "gradcli").chmod(0o1777)
    assert refused(read, "key") == f"others may write to `{home / 'gradcli'}`"


def test_what_is_roots_is_safe_on_the_way_only(home, monkeypatch):
    keep("key", DATA)
    own = {home / "gradcli", only_file(home)}
    lstat = Path.lstat

    def changed(path):
        facts = lstat(path)
        return os.stat_result([*facts[:4], 4321 if path in own else 0, *facts[5:]])

    monkeypatch.setattr(Path, "lstat", changed)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert read("key") == DATA
    for path in list(own):
        own.remove(path)
        assert refused(read, "key") == f"`{path}` belongs to another user"
        own.add(path)


def test_nothing_is_made_where_others_may_write(home, monkeypatch):
    """For instance by root in the home of a user."""
    home.mkdir(mode=0o700)
    give_away(monkeypatch, home)
    refused(keep, "key", DATA)
    assert list(home.iterdir()) == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "deeper"))
    refused(keep, "key", DATA)
    assert list(home.iterdir()) == []


# Links


@pytest.fixture
def elsewhere(tmp_path):
    """Return a folder that is safe, and one into which others may write."""
    for name in ("safe", "unsafe"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "cache").mkdir(mode=0o700)
    (tmp_path / "unsafe").chmod(0o777)
    return tmp_path / "safe", tmp_path / "unsafe"


def test_a_link_on_the_way_leads_to_what_must_be_safe(home, monkeypatch, elsewhere):
    safe, unsafe = elsewhere
    home.symlink_to(safe / "cache")
    keep("key", DATA)
    assert read("key") == DATA
    assert (safe / "cache" / "gradcli").is_dir()
    home.unlink()
    home.symlink_to(unsafe / "cache")
    assert refused(keep, "key", DATA) == f"others may write to `{unsafe}`"
    assert list((unsafe / "cache").iterdir()) == []
    # And the link itself must be where nobody else can put one.
    (unsafe / "link").symlink_to(safe)
    monkeypatch.setenv("XDG_CACHE_HOME", str(unsafe / "link" / "cache"))
    assert refused(read, "key") == f"others may write to `{unsafe}`"


@pytest.mark.parametrize("below", ["", "cache"])
def test_a_link_of_another_user_is_not_followed(home, monkeypatch, elsewhere, below):
    safe, _ = elsewhere
    home.symlink_to(safe / "cache" if not below else safe)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / below))
    keep("key", DATA)
    give_away(monkeypatch, home)
    assert refused(read, "key") == f"`{home}` belongs to another user"


def test_the_folder_itself_may_be_no_link(home, elsewhere):
    home.mkdir(mode=0o700)
    (home / "gradcli").symlink_to(elsewhere[0])
    for call, args in ((read, ()), (keep, (DATA,))):
        assert refused(call, "key", *args) == f"`{home / 'gradcli'}` is no folder"
    assert [path.name for path in elsewhere[0].iterdir()] == ["cache"]


def test_a_file_may_be_no_link(home, tmp_path):
    keep("key", DATA)
    path = only_file(home)
    moved = tmp_path / "moved"
    os.replace(path, moved)
    path.symlink_to(moved)
    before = moved.read_bytes()
    assert refused(read, "key") == f"`{path}` is no file"
    keep("key", b"new")
    assert read("key") == b"new"
    assert not path.is_symlink()
    assert moved.read_bytes() == before


# Where there is no such folder


@pytest.mark.parametrize("named", [None, "", "relative/folder"])
def test_the_folder_in_the_home(monkeypatch, tmp_path, named):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    if named is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert place() == tmp_path / ".cache" / "gradcli"
    keep("key", DATA)
    assert read("key") == DATA
    assert [path.name for path in tmp_path.iterdir()] == [".cache"]


def test_a_home_that_is_not_there_is_not_made(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert "No such file" in refused(keep, "key", DATA)
    assert list(tmp_path.iterdir()) == []


def test_no_home(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it does when it knows of no home
    for call, args in ((read, ()), (keep, (DATA,))):
        assert refused(call, "key", *args) == "there is no home folder"


@pytest.mark.parametrize("depth", ["gradcli", "the folder above", "its parent"])
def test_a_file_in_the_place_of_a_folder(monkeypatch, tmp_path, depth):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "parent" / "cache"))
    path = tmp_path / "parent"
    for name in {"gradcli": ("cache", "gradcli"), "the folder above": ("cache",), "its parent": ()}[depth]:
        path.mkdir(mode=0o700)
        path /= name
    path.write_text("a file")
    for call, args in ((read, ()), (keep, (DATA,))):
        refused(call, "key", *args)
    assert path.read_text() == "a file"


def test_a_folder_in_the_place_of_a_file(home):
    keep("key", DATA)
    path = only_file(home)
    path.unlink()
    path.mkdir()
    refused(read, "key")
    refused(keep, "key", DATA)
    assert only_file(home) == path


def test_where_there_are_no_owners(home, monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "geteuid")
    keep("key", DATA)
    (home / "gradcli").chmod(0o777)
    assert read("key") == DATA


# Writing that does not come to its end


@contextmanager
def short_files(size):
    """Let no file grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_half_written_leaves_the_old_one(home):
    keep("key", b"old")
    with short_files(1000):
        assert "too large" in refused(keep, "key", DATA)
    assert read("key") == b"old"
    only_file(home)


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt(), SystemExit()])
def test_cut_off_before_the_end(home, monkeypatch, error):
    def failing(*_):
        raise error

    keep("key", b"old")
    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(type(error)):
        keep("key", DATA)
    assert read("key") == b"old"
    only_file(home)


def test_what_a_killed_process_left_is_removed(home):
    keep("key", DATA)
    for name, age in (("old.tmp", 3700), ("new.tmp", 0)):  # another process may be writing the second
        path = home / "gradcli" / name
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    keep("other", DATA)
    assert [path.name for path in (home / "gradcli").glob("*.tmp")] == ["new.tmp"]
    assert read("key") == read("other") == DATA


def test_several_write_at_once(home):
    """Each reads what one of them has written whole."""
    contents = [bytes([k]) * 300_000 for k in range(3)]
    keep("key", contents[0])
    failed = []

    def work(content):
        for _ in range(50):
            try:
                keep("key", content)
                if read("key") not in contents:
                    failed.append("mixed")
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    only_file(home)
