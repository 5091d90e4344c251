"""What takes longer than two seconds says so on a terminal; nothing is said on a pipe."""

from __future__ import annotations

import io
import os
import sys
import time

import pytest
from conftest import new_terminal

from gradcli.process import streams


@pytest.mark.parametrize(("lasts", "shown"), [(0.5, b"still computing; Ctrl-C ends it\r\n"), (0.0, b"")])
def test_only_what_lasts_says_so(monkeypatch, lasts, shown):
    reader, writer = new_terminal()
    monkeypatch.setattr(streams, "_PATIENCE", 0.05)
    with open(writer, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with streams.announced():
            time.sleep(lasts)
        print("done", file=terminal, flush=True)
        assert os.read(reader, 100).startswith(shown or b"done")
    os.close(reader)


def test_nothing_is_said_on_a_pipe(monkeypatch):
    monkeypatch.setattr(streams, "_PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with streams.announced():
        time.sleep(0.1)
    assert sys.stderr.getvalue() == ""
