"""How a run over many points ends when it does not go well: the output is the old file or the whole new one."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import struct
import subprocess
import time

import numpy as np
import pytest
from conftest import HANG, interruptible, long, needs, new_terminal, some, start

fcntl, pty, resource, termios = map(pytest.importorskip, ("fcntl", "pty", "resource", "termios"))

pytestmark = pytest.mark.usefixtures("own_folder")

OLD = b"the old file"
ROWS = 20_000
HEAD = b"a,b\n" + b"1,2\n" * ROWS  # more than a pipe holds, and than gradcli reads at first


@contextlib.contextmanager
def in_the_middle(*arguments, preexec_fn=interruptible, **options):
    """Run gradcli on a pipe p.csv that stays open; give the process and the pipe once HEAD has been read.

    gradcli reads more only when the results of what it has read are written.
    """
    os.mkfifo("p.csv")
    with start(*arguments, "--points", "p.csv", preexec_fn=preexec_fn, **options) as process:
        try:
            with feed(process) as pipe:
                pipe.write(HEAD)
                wait_until(lambda: waiting(pipe) == 0, process)
                time.sleep(0.1)  # it waits for more: Python hears a signal just before that only when more comes
                yield process, pipe
        finally:
            process.kill()


def feed(process):
    """Open the pipe for writing, once gradcli reads it."""

    def opened():
        with contextlib.suppress(OSError):
            return os.open("p.csv", os.O_WRONLY | os.O_NONBLOCK)

    descriptor = wait_until(opened, process)
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb", buffering=0)


def waiting(pipe):
    """Return how many bytes are in a pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def wait_until(true, process):
    """Return what is true at last, of a process that runs."""
    end = time.monotonic() + HANG
    while not (found := true()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def put(path):
    with open(path, "wb") as file:
        file.write(OLD)
    return {path}


def contents(path):
    with open(path, "rb") as file:
        return file.read()


# A signal


@pytest.mark.parametrize(
    ("signum", "status", "says", "ending", "old"),
    some(
        [
            (signal.SIGINT, 130, "interrupted", "parquet", True),
            (signal.SIGTERM, 143, "", "csv", True),
            (signal.SIGHUP, 129, "", "npz", False),
            (signal.SIGKILL, -signal.SIGKILL, "", "csv", True),
        ]
    ),
)
def test_a_signal_leaves_the_old_file(signum, status, says, ending, old):
    needs(ending)
    output = f"r.{ending}"
    before = put(output) if old else {}
    with in_the_middle("backward", "y=a*b", "--output", output) as (process, _):
        during = set(os.listdir())
        process.send_signal(signum)
        out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out, err.decode().strip()) == (status, b"", says)
    (temporary,) = during - {"p.csv", *before}
    assert {*os.listdir()} == {"p.csv", *before, *([temporary] if signum == signal.SIGKILL else [])}
    assert all(contents(name) == OLD for name in before)


def hangup_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_under_nohup_a_run_goes_on():
    with in_the_middle("backward", "y=a*b", "--output", "r.csv", preexec_fn=hangup_ignored) as (process, pipe):
        process.send_signal(signal.SIGHUP)
        pipe.write(b"5,7\n")
        pipe.close()
        out, err = process.communicate(timeout=HANG)
        assert (out, err.partition(b": ")[0]) == (b"", b"wrote r.csv")
    assert process.returncode == 0
    assert contents("r.csv").endswith(b"\n7.0,5.0\n")


# What is left behind


def test_a_run_that_is_alive_is_left_alone(cli, forked):
    with in_the_middle("backward", "y=a*b", "--output", "r.csv", command=[forked]) as (process, pipe):
        during = set(os.listdir())
        points(3)
        cli.done("backward", "y=a*b", "--points", "p.npz", "--output", "r.csv")
        assert {*os.listdir()} == {*during, "p.npz", "r.csv"}
        pipe.close()
        out, err = process.communicate(timeout=HANG)
        assert (out, err.partition(b": ")[0]) == (b"", b"wrote r.csv")
    assert contents("r.csv") == b"a.grad,b.grad\n" + b"2.0,1.0\n" * ROWS
    assert sorted(os.listdir()) == ["p.csv", "p.npz", "r.csv"]


# A disk that is full, and a pipe that nobody reads


def points(count=ROWS):
    """Write points whose results are longer than what pipes and buffers hold."""
    values = np.random.default_rng(0).standard_normal((2, count))
    np.savez("p.npz", a=values[0], b=values[1])
    return "--points", "p.npz"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
@pytest.mark.parametrize(("style", "count"), [("csv", 1), ("json", 5000)])
def test_a_full_disk_behind_standard_output_is_told(forked, style, count):
    given = ("backward", "y=a*b", *points(count), "-f", style)
    with open("/dev/full", "wb") as full, start(*given, command=[forked], stdout=full) as run:
        _, err = run.communicate(timeout=HANG)
        assert run.returncode == 2
    assert err.decode() == "error: the result cannot be written: no space left on device\n"


@long
@pytest.mark.parametrize(("command", "style"), [("backward", "csv"), ("jacobian", "csv"), ("backward", "json")])
def test_a_closed_pipe_ends_quietly(forked, command, style):
    with start(command, "y=a*b", *points(), "-f", style, command=[forked]) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(HANG) == 0


# The progress bar


@long
@pytest.mark.parametrize("tty", [True, False], ids=["terminal", "no terminal"])
def test_a_terminal_sees_the_rate(forked, tty):
    """A run of more than a second, whose second block of points comes at its end."""
    reader, writer = new_terminal()
    shown = b""
    more = b"3,5," + b"x" * 2**20 + b"\n"
    os.mkfifo("p.csv")
    told = writer if tty else subprocess.PIPE
    with start("backward", "y=a*b", "--points", "p.csv", command=[forked], stderr=told) as process:
        os.close(writer)
        with feed(process) as pipe:
            pipe.write(b"a,b,c\n1,2," + b"x" * 2**16 + b"\n")
            wait_until(lambda: waiting(pipe) == 0, process)
            begin = time.monotonic()
            while tty and time.monotonic() - begin < HANG and b"a second" not in shown:
                if time.monotonic() - begin > 1.05:
                    pipe.write(more)
                if select.select([reader], [], [], 0.02)[0]:
                    shown += os.read(reader, 2**16)
            while not tty and time.monotonic() - begin < 1.2:
                time.sleep(0.05)
            pipe.write(more)
        out, err = process.communicate(timeout=HANG)
        assert process.returncode == 0, err
    os.close(reader)
    assert out.startswith(b"a.grad,b.grad\n2.0,1.0\n5.0,3.0\n")
    assert not err
    assert bool(re.search(rb"[\d,]+ points, [\d,]+ a second", shown)) == tty
