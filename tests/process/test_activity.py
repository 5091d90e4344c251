"""What takes longer than two seconds says so on a terminal, in a line that disappears; nothing is said on a pipe."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import ExitStack, suppress

import pytest
from conftest import new_terminal

from gradcli.process import activity
from gradcli.process.streams import print_error


@pytest.fixture
def terminal(monkeypatch):
    """Return what opens a terminal as standard error, on which lines show soon, and returns the side to read it."""
    with ExitStack() as opened:

        def new(patience=0.05):
            reader, writer = new_terminal()
            opened.callback(os.close, reader)
            # In the test itself: pytest sets standard error anew behind its fixtures.
            monkeypatch.setattr(sys, "stderr", opened.enter_context(open(writer, "w", encoding="utf-8")))
            monkeypatch.setattr(activity, "PATIENCE", patience)
            return reader

        yield new


def shown(reader):
    os.set_blocking(reader, False)
    text = b""
    with suppress(BlockingIOError):
        time.sleep(0.05)  # a terminal hands on what is written a moment later
        while True:
            text += os.read(reader, 10_000)
    return text.decode()


def test_a_line_shows_what_lasts_and_disappears(terminal):
    reader = terminal()
    with activity.lasting("reading points"):
        time.sleep(0.3)
        assert shown(reader) == "\rreading points …"
        activity.doing("proving")
        assert shown(reader) == "\rproving …" + " " * 7
    assert shown(reader) == "\r" + " " * 9 + "\r"


def test_a_message_takes_the_place_of_the_line(terminal):
    reader = terminal(patience=0.2)
    with activity.lasting("drawing"):
        time.sleep(0.3)
        shown(reader)
        print_error("note: this")
        assert shown(reader).replace("\r\n", "\n") == "\r" + " " * 9 + "\rnote: this\n"
        time.sleep(0.3)
        assert shown(reader) == "\rdrawing …"
        activity.doing("proving")
    assert shown(reader) == "\rproving …" + "\r" + " " * 9 + "\r"


def test_it_does_not_come_back_beside_a_program_that_reads_the_result(terminal, monkeypatch):
    reader = terminal()
    read, write = os.pipe()
    with open(write, "w") as pipe, activity.lasting("drawing"):
        time.sleep(0.3)
        assert shown(reader) == "\rdrawing …"
        monkeypatch.setattr(sys, "stdout", pipe)
        activity.before_output()
        shown(reader)
        time.sleep(0.3)
        assert shown(reader) == ""
    os.close(read)


def test_what_is_quick_shows_nothing(terminal):
    reader = terminal()
    with activity.lasting("drawing"):
        pass
    time.sleep(0.2)
    assert shown(reader) == ""


def test_a_pipe_gets_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(activity, "PATIENCE", 0.0)
    with activity.lasting("drawing"):
        time.sleep(0.1)
    assert sys.stderr.getvalue() == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_the_line_to_its_parent(terminal):
    reader = terminal()
    with activity.lasting("proving"):
        time.sleep(0.3)
        assert shown(reader) == "\rproving …"
        if (child := os.fork()) == 0:
            activity.doing("in a child")
            activity.before_output()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert shown(reader) == ""
