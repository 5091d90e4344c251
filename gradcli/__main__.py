"""`python -m gradcli`, and the command `gradcli`: the first steps, before any import that takes time."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def _leave_out(folder: str) -> None:
    """Remove from the module path the folder that Python puts in front of it, in which anybody may have put files.

    If gradcli itself is in it, it becomes the last one.
    """
    if not sys.flags.safe_path and sys.path[:1] == [folder]:
        del sys.path[0]
        if os.path.dirname(os.path.dirname(os.path.abspath(__file__))) == folder:
            sys.path.append(folder)


if __name__ == "__main__":
    _leave_out(os.getcwd())


def _end(number: int, frame: object = None) -> NoReturn:
    """End at once: there is nothing to clean up yet, and an exception would print a traceback of some import."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(128 + number)


try:
    import signal
except KeyboardInterrupt:  # this takes a moment, too
    _end(2)


def main() -> None:
    """Run the command line and exit."""
    _leave_out(os.path.dirname(os.path.realpath(sys.argv[0])))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as a shell's `&` does
        signal.signal(signal.SIGINT, _end)
    from gradcli.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
