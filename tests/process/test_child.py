"""A child process and its parent: messages both ways, and how a child ends."""

import os
import signal

import pytest

from gradcli.process import platform
from gradcli.process.child import Parent, started

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def answer(parent: Parent) -> None:
    """Send each message back with the number of the process."""
    for message in parent.messages():
        parent.send((message, os.getpid()))


@pytest.mark.parametrize("forks", [True, False])
def test_messages_go_both_ways_until_the_child_is_killed(monkeypatch, forks):
    monkeypatch.setattr(platform, "FORKS", forks)
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    child = started(answer)
    received = child.messages()
    for message in ("a", "b" * 10**6):
        child.send(message)
        assert next(received) == (message, child.number)
    child.kill()
    assert child.wait() in (-signal.SIGKILL, -signal.SIGTERM)
    assert list(received) == []
    child.send("nobody reads this")
    child.close()
