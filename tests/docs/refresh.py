"""Write what the commands print today into the README and into `expected/`: `python tests/docs/refresh.py`.

Read the difference (`git diff`) before you keep it: the tests compare with what is written here.  An output is kept
as it was where it differs in the last digits of long numbers only, where the command ends as it should not, and where a
package is not installed that the command needs.
"""

from __future__ import annotations

import sys

from documents import README, SCRIPTS, blocks, console_session, execute_all, execute_sessions, same, typed


def current(name: str, shown: str, text: str, ended_well: bool) -> str:
    """Return the output to be shown from now on."""
    if not ended_well or "gradcli failed" in text or "Traceback" in text:
        print(f"not taken over: {name}\n{text}", file=sys.stderr)
        return shown
    return shown if same(text, shown) else text


def refreshed(readme: str) -> str:
    """Return the README with the output of every console command as it is now."""
    found = [(block, console_session(block)) for block in blocks(readme, "console")]
    found = [(block, session) for block, session in found if not session.missing]
    bodies = []
    for (_, session), printed in zip(found, execute_sessions([session for _, session in found]), strict=True):
        body = ""
        for example, now in zip(session.examples, printed, strict=True):
            body += typed(example.command)
            body += current(example.command, example.shown, now.text, now.status in (0, 2))
        bodies.append(body)
    for (block, _), body in reversed(list(zip(found, bodies, strict=True))):
        readme = readme[: block.start("body")] + body + readme[block.end("body") :]
    return readme


def main() -> None:
    """Rewrite the README's console blocks and the expected outputs of the scripts."""
    README.write_text(refreshed(README.read_text("utf-8")), "utf-8")
    for run, now in zip(SCRIPTS, execute_all([run.command for run in SCRIPTS]), strict=True):
        shown = run.expected.read_text("utf-8") if run.expected.exists() else ""
        run.expected.write_text(current(run.name, shown, now.text, now.status == run.status), "utf-8")


if __name__ == "__main__":
    main()
