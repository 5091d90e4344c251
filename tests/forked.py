"""`gradcli` as a process of its own without the half second of its imports: they are done once, in a server that forks.

Beside the imports all is as it is for any process: arguments, environment, folder, streams, status. Tests of how the
command starts, of signals and of limits have no use for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn

CLIENT = """\
#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [b"%16d" % len(said)], [0, 1, 2])
    server.sendall(said)
    os._exit(server.recv(1)[0])
"""


@contextmanager
def server(folder: Path) -> Iterator[Path]:
    """Start a server, and give the command `gradcli` that it serves, which is alone in its folder."""
    address = folder / "server"
    command = folder / "bin" / "gradcli"
    command.parent.mkdir()
    command.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    command.chmod(0o755)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, __file__, str(address)], **pipes) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield command
        process.stdin.close()  # at which it ends, as it does where tests are killed


def serve(address: str) -> None:
    """Serve until standard input ends."""
    for module in ("gradcli.cli.main", "numpy", "sympy", "rich.console"):
        import_module(module)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
        print("ready", flush=True)
        while listener in select.select([listener, 0], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                wait(connection)
            connection.close()


def wait(connection: socket.socket) -> NoReturn:
    """Run a command in a process of its own, and tell its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(connection, 16, 3)
    arguments, folder, environ = json.loads(connection.recv(int(head), socket.MSG_WAITALL))
    if child := os.fork():
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(bytes([os.waitstatus_to_exitcode(status) % 256]))
        os._exit(0)
    connection.close()
    run(arguments, folder, environ, streams)


def run(arguments: list[str], folder: str, environ: dict[str, str], streams: list[int]) -> NoReturn:
    """Be the command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["gradcli", *arguments]
    from gradcli.__main__ import main

    main()
    raise AssertionError("the command ends its process")


if __name__ == "__main__":
    serve(sys.argv[1])
