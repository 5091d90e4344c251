"""Every command where Python lacks what Windows, or macOS, lacks: the same results as here, file by file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import EVERYTHING, HANG, environment, long
from every_option import REFUSED, every_option, without_example

import gradcli
from gradcli.cli.main import gradcli as group

ROOT = Path(gradcli.__file__).parent
SAMPLES = ROOT.parent / "samples"

HIDDEN = """\
import builtins, io, os, sys

def without(module, names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def outside(call):
    def checked(path, *args, **options):
        if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return call(path, *args, **options)
    return checked

builtins.open = io.open = outside(io.open)
os.open, os.stat, os.listdir, os.scandir = map(outside, (os.open, os.stat, os.listdir, os.scandir))
LINUX = (
    "sched_getaffinity sched_setaffinity posix_fallocate posix_fadvise memfd_create eventfd copy_file_range splice "
    "getrandom pidfd_open getxattr setxattr listxattr removexattr fdatasync pipe2 O_DIRECT O_TMPFILE O_PATH"
).split()
without(os, LINUX)
"""
WINDOWS = """\
import signal
for module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses"):
    sys.modules[module] = None
kept = {"ABRT", "FPE", "ILL", "INT", "SEGV", "TERM", "_DFL", "_IGN"}
without(signal, [name for name in dir(signal) if name.startswith("SIG") and name[3:] not in kept])
without(signal, [name for name in dir(signal) if "itimer" in name.lower() or "pthread" in name or "sigwait" in name])
without(signal, ["alarm", "pause", "siginterrupt", "sigpending"])
without(os, (
    "fork forkpty register_at_fork geteuid getuid getgid getegid getresuid getresgid getgroups setuid setgid seteuid "
    "setegid setsid getsid getpgid setpgid getpgrp killpg nice getpriority setpriority sysconf sysconf_names pathconf "
    "mkfifo mknod chown fchown lchown chroot wait wait3 wait4 waitid pread pwrite readv writev sendfile lockf sync "
    "statvfs fstatvfs ttyname ctermid openpty login_tty getloadavg O_NOFOLLOW O_DIRECTORY O_SYNC O_DSYNC O_NOCTTY"
).split())
"""
LACKING = {"windows": HIDDEN + WINDOWS, "macos": HIDDEN}

DRIVER = """\
import io, json, sys
from gradcli.cli.main import gradcli
from gradcli.cli.main import run
from gradcli.process.ending import tidily

ended = []
for arguments, stdin in json.load(sys.stdin):
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    keep = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, (sys.stdout, sys.stderr) = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"), streams
    try:
        status = tidily(lambda: run(gradcli, arguments))
    finally:
        sys.stdin, sys.stdout, sys.stderr = keep
    ended.append([status, *(stream.buffer.getvalue().decode() for stream in streams)])
json.dump(ended, sys.stdout)
"""

RAISES = ("run", "-c", "import torch; torch.ones(2, requires_grad=True).backward()")  # which Python tells
X = ("y=x**2*sin(z)", "--at", "x=3,z=1")
MANY = ("y=a*b", "--points", "p.csv", "--output")
COMMANDS = [
    *(("backward", *X, "-f", style) for style in ("table", "json", "csv", "latex", "markdown")),
    ("backward", "y=a*b", "--points", "-", "--engine", "llvm"),
    ("backward", "y=x**2", "--at", "x=@x.npy", "--v", "ones"),
    ("backward", "y=exp(a)", "--at", "a=1000"),
    ("backward", "y=)"),
    ("backward", "y=a*b", "--points", "nowhere.csv"),
    ("backward", *MANY, "nowhere/r.csv"),
    ("check", "y=tanh(x)", "dy/dx = 1 - y**2"),
    ("check", "y=tanh(x)", "dy/dx = 1 - x**2"),
    ("check", "F=m*a", "dF/da = m", "--points", "mass.csv"),
    ("explain",),
    ("explain", "accumulation"),
    ("explain", "element 0 of tensors does not require grad and does not have a grad_fn"),
    *(("export", *X, "--to", to) for to in ("numpy", "torch", "jax", "c", "javascript")),
    ("export", *X, "--output", "made.py"),
    ("graph", *X),
    *(("graph", *X, "--output", f"y.{ending}") for ending in ("svg", "dot", "mmd", "tex", "txt")),
    ("hessian", *X),
    ("hessian", "y=a*b**2", "--points", "p.csv", "--output", "hessian.csv"),
    ("jacobian", *X),
    ("jacobian", "-F", "s.grad", "-f", "json"),
    ("jvp", *X, "--u", "x=1"),
    ("jvp", "y=a*b", "--points", "p.npz", "--u", "a=1,b=0", "--output", "jvp.npz"),
    ("run", "script.py"),
    ("run", "script.py", "-f", "json", "--output", "pages.json"),
    ("run", "--check", "own.py"),
    RAISES,
    ("samples", "new"),
    *(("backward", *MANY, f"r.{ending}") for ending in ("csv", "npz")),
    *(("jacobian", *MANY, f"j.{ending}") for ending in ("csv", "npz")),
    ("--version",),
    ("--help",),
]
if EVERYTHING:
    COMMANDS += [*dict.fromkeys(every_option())]
    COMMANDS += [("jacobian", "-F", "made.onnx", "--at", "x=3,z=1")]  # which `export --dtype` has written

POINTS = "a,b\n1,2\n3,4\n5,6\n"


def commands():
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return COMMANDS
    return [*COMMANDS, ("backward", *MANY, "r.parquet"), ("jacobian", *MANY, "j.parquet")]


def prepare(folder):
    folder.mkdir()
    (folder / "p.csv").write_text(POINTS)
    (folder / "holes.csv").write_text("a,b\n1,2\n3,\n")
    (folder / "mass.csv").write_text("m,a\n1,2\n3,4\n")
    (folder / "s.grad").write_bytes(b"\xef\xbb\xbfinput x = 2\r\ny = x**2 + \\\r\n  sin(x)  # two lines\r\n")
    np.save(folder / "x.npy", np.arange(3.0))
    np.savez(folder / "p.npz", a=np.arange(3.0), b=np.ones(3))
    copies = {"script.py": "doubled.py", "own.py": "own_function.py", "functions.py": "functions/pendulum.py"}
    for name, sample in copies.items():
        (folder / name).write_bytes((SAMPLES / sample).read_bytes())


def run_all(folder, lacking=""):
    """Run all commands in one process, in a folder of their own; return how each ended, and all files."""
    prepare(folder)
    own = folder.with_name(f"{folder.name}_site")
    own.mkdir()
    (own / "sitecustomize.py").write_text(lacking)
    asked = [(list(arguments), POINTS) for arguments in commands()]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(PYTHONPATH=os.pathsep.join([str(own), str(ROOT.parent)])),
        timeout=4 * HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return json.loads(done.stdout), files


@long
def test_every_command_is_among_them():
    assert {arguments[0] for arguments in COMMANDS} >= {*group.list_commands(None)}


def test_every_option_has_an_example():
    assert not without_example()


@long
def test_what_is_tried_of_every_option_works(here):
    refused = {arguments for arguments, (status, _, _) in zip(commands(), here[0], strict=True) if status}
    assert not [a for a in refused & {*every_option()} if not any(words <= {*a} for words in REFUSED)]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return run_all(tmp_path_factory.mktemp("here") / "here")


@pytest.mark.parametrize("system", [pytest.param(name, marks=long if name == "macos" else ()) for name in LACKING])
def test_every_command_does_the_same_where_the_system_lacks_something(system, here, tmp_path):
    ended, files = run_all(tmp_path / system, LACKING[system])
    for arguments, there, expected in zip(commands(), ended, here[0], strict=True):
        assert ("Traceback" in there[2]) == (arguments == RAISES), arguments
        assert "gradcli failed" not in there[2], arguments
        assert there == expected, arguments
    assert files.keys() == here[1].keys()
    for name, data in files.items():
        assert data == here[1][name], name


ELSEWHERE = re.compile(
    r"\bos\.(fork|get[e]?[ug]id|sched_\w+|posix_\w+|register_at_fork|sysconf|killpg|set[s]id|O_NOFOLLOW|mkfifo|nice|uname)\b"
    r"|signal\.(SIG(?!INT\b|TERM\b|ABRT\b|SEGV\b|FPE\b|ILL\b|_DFL|_IGN)\w+|setitimer|pthread_\w+|alarm|pause)"
    r"|^\s*(import|from) (fcntl|resource|pwd|grp|termios|tty|pty|msvcrt|winreg|platform)\b"
    r"|[\"']/(proc|sys|dev)/"
)


def test_one_module_names_what_not_every_system_has():
    assert ELSEWHERE.search((ROOT / "process" / "platform.py").read_text("utf-8"))
    named = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in ROOT.rglob("*.py")
        if path != ROOT / "process" / "platform.py"
        for line in path.read_text("utf-8").splitlines()
        if ELSEWHERE.search(line) and ">>>" not in line
    }
    assert not named
