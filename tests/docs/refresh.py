"""Write what the commands print today into README, guide and `expected/`: `python -m tests.docs.refresh [FILE]...`.

Read the difference (`git diff`) before you keep it: the tests compare with what is written here.  An output is kept
as it was where it differs in the last digits of long numbers only, where the command ends as it should not, and where a
package is not installed that the command needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conftest import Command
from tests.docs.documents import (
    GUIDE,
    HELP,
    INDEX,
    LIVE,
    MOVING,
    PICTURE,
    PICTURED,
    PINNED,
    README,
    SCRIPTS,
    blocks,
    console_session,
    ended_well,
    execute_all,
    executed_session,
    index,
    same,
    typed,
)
from tests.docs.moving_picture import moving


def current(name: str, shown: str, text: str, well: bool) -> str:
    """Return the output to be shown from now on."""
    if not well or "gradcli failed" in text:
        print(f"not taken over: {name}\n{text}", file=sys.stderr)
        return shown
    return shown if same(text, shown) else text


def refreshed(text: str) -> str:
    """Return a document with the output of every console command as it is now."""
    cli = Command()
    for block in reversed(list(blocks(text, "console"))):
        session = console_session(block)
        if session.missing:
            continue
        body = ""
        for example, now in zip(session.examples, executed_session(cli, session), strict=True):
            body += typed(example.command)
            body += current(example.command, example.shown, now.text, ended_well(example, now))
        text = text[: block.start("body")] + body + text[block.end("body") :]
    return text


def main(files: list[str]) -> None:
    """Rewrite the console blocks of the files, and the index; without files, of all documents, and scripts' outputs."""
    for path in [Path(name) for name in files] or [README, *GUIDE, HELP, *PINNED]:
        path.write_text(refreshed(path.read_text("utf-8")), "utf-8")
    INDEX.write_text(index(), "utf-8")
    if files:
        return
    picture = Command().done(*PICTURED).out
    PICTURE.write_text(picture, "utf-8")
    MOVING.write_text(moving(picture), "utf-8")
    for path, command in LIVE.items():
        shown, now = path.read_text("utf-8") if path.exists() else "", Command().done(*command).out
        path.write_text(shown if same(now, shown) else now, "utf-8")
    for run, now in zip(SCRIPTS, execute_all([run.command for run in SCRIPTS]), strict=True):
        shown = run.expected.read_text("utf-8") if run.expected.exists() else ""
        run.expected.write_text(current(run.name, shown, now.text, now.status == run.status), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
