"""Files and streams that are endless, pipes, damaged or nested without end: an error at once, in the user's words."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from conftest import HANG, environment, long, said


def damaged_header(text: str) -> bytes:
    """Return the start of a .npy file with any text for a header."""
    header = text.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def test_explain_reads_no_more_than_a_message_of_an_endless_input():
    source = "import sys\nwhile True: sys.stdout.write('y\\n' * 10000)"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as endless:
        done = subprocess.run(
            [sys.executable, "-m", "gradcli", "explain", "-"],
            stdin=endless.stdout, capture_output=True, timeout=HANG, env=environment(), check=False,
        )  # fmt: skip
        endless.kill()
    assert done.returncode == 2
    assert b"is longer than 1 MiB" in done.stderr


def test_an_unknown_text_of_any_length_is_shown_short(cli):
    err = cli.refused("explain", "-", stdin="qqq `xyzzy` qqq " * 50_000)
    assert "qqq 'xyzzy' qqq qqq 'xyzzy' qqq" in said(err)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes do not exist here")
@pytest.mark.parametrize("name", ["pipe.npy", "pipe.csv"])
def test_a_pipe_without_a_writer_is_no_file_of_values(cli, tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    assert "is a pipe or a device, not a file" in cli.refused("backward", "y=x", "--at", f"x=@{pipe}")


@pytest.mark.usefixtures("own_folder")
def test_a_header_that_python_cannot_parse_is_damaged_and_no_lack_of_memory(cli):
    """Python's parser raises a MemoryError for an expression that is nested too deeply."""
    for header in ("-" * 9000, "(" * 5000, "{'descr': ", "\x00"):
        data = damaged_header(header) + bytes(100)
        with open("x.npy", "wb") as file:
            file.write(data)
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("x.npy", data)
        assert "its header is damaged" in cli.refused("backward", "y=x", "--at", "x=@x.npy")
        assert "its header is damaged" in cli.refused("backward", "y=x", "--points", "x.npz")


@long
@pytest.mark.usefixtures("own_folder")
def test_a_small_archive_takes_no_large_disk(cli):
    """Arrays in Fortran order are unpacked to disk, and a thousand to one is what zeros are compressed to."""
    for megabytes, status in ((8, 0), (136, 2)):
        count = megabytes * 2**20 // 16
        header = f"{{'descr': '<f8', 'fortran_order': True, 'shape': ({count}, 2), }}".ljust(117) + "\n"
        with (
            zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("x.npy", "w", force_zip64=True) as file,
        ):
            file.write(damaged_header(header))
            for _ in range(megabytes):
                file.write(bytes(2**20))
        outcome = cli("backward", "y=sum(x)", "--points", "x.npz", "--output", "y.npz")
        assert outcome.status == status, outcome.err
    assert "is in Fortran order and takes 136 MiB of disk unpacked" in outcome.err
    np.savez_compressed("x.npz", x=np.asfortranarray(np.random.default_rng(0).normal(size=(1000, 2))))
    cli.done("backward", "y=sum(x)", "--points", "x.npz", "--output", "y.npz")
