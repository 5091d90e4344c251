"""Run broken scripts, and the fixes that gradcli shows, under PyTorch: `python tests/script/record_fixes.py [WORD]`.

PyTorch's errors are recorded in `broken.json`, and the lines of the fixes in `fixes.json`.  It prints the fixes that do
not fix their scripts, which are not recorded.  It runs new scripts, those whose fixes have changed, and those whose
names contain a WORD.  Scripts without an error are those of `silent.txt`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "pytorch"))
from broken import BROKEN, DETACHED, ERRORS, FIXES, IN_WORDS, SILENT, SLIPS, Silent, shown
from causes import CAUSES
from causes import told as said_of
from collection import forked

from gradcli.process.script import Script
from gradcli.pytorch.record import Recorder
from gradcli.pytorch.session import run
from gradcli.script.errors.source import changed
from gradcli.script.errors.why import answer
from gradcli.script.explainer import knows


def fix(text: str, in_words: str = "") -> tuple[str, list[str]]:
    """Return a script with the fix that gradcli shows for its error, and the lines of the fix.

    What its pages show is added to the script with the fixes that are said `in_words`.
    """
    if in_words:
        result = said_of(text)
        return result.fixed(in_words), shown(result.changes)
    Recorder.explains = True
    script = Script(text, "script.py", None)
    told = answer(run(script).error, script, knows)
    changes = [] if told is None else told.changes
    return changed(text, changes), shown(changes)


def error(text: str) -> str:
    """Return PyTorch's error of a script."""
    from record_outputs import outcome

    return outcome("script.py", text)["error"]


def tried(name: str, text: str, lines: list[str]) -> str:
    """Return what is wrong with a fixed script under PyTorch; "" for nothing, and for a fix that is a sentence."""
    if name in DETACHED:
        text += f"assert {DETACHED[name][1]} is not None\n"
    if name in CAUSES:  # whose fix may be said in words
        cause = CAUSES[name]
        return forked(lambda: error(cause.checked(text))) if cause.right else ""
    return forked(lambda: error(text)) if lines else ""


def unlike(silent: Silent) -> str:
    """Return what PyTorch says of a script without an error, and of its fixed form, where that is not what is meant."""
    broken, fixed = (forked(lambda text=text: error(text)) for text in silent.checked())
    return (
        "" if broken.startswith("AssertionError") and not fixed else f"{broken or 'right'}, fixed: {fixed or 'right'}"
    )


def main() -> int:
    """Record the errors and the fixes; return how many fixes do not fix."""
    scripts = {**BROKEN, **IN_WORDS, **SLIPS, **{name: text for name, (text, _) in DETACHED.items()}}
    again = {name for name in scripts if any(word in name for word in sys.argv[1:])}
    errors, fixes = (json.loads(path.read_text("utf-8")) if path.exists() else {} for path in (ERRORS, FIXES))
    fixed = {n: forked(lambda text=text: fix(text)) for n, text in scripts.items() if n not in IN_WORDS}
    fixed |= {n: forked(lambda cause=c: fix(cause.text, cause.fixed())) for n, c in CAUSES.items()}
    chosen = [name for name, (_, lines) in fixed.items() if name in again or fixes.get(name) != lines]

    import record_outputs  # noqa: F401  PyTorch is imported once, after gradcli's torch has run in other processes

    wrong = {name: said for name in chosen if (said := tried(name, *fixed[name]))}
    wrong |= {name: said for name, silent in SILENT.items() if (said := unlike(silent))}
    fixes = {name: lines for name, (_, lines) in fixed.items() if name not in wrong}
    errors = {
        name: errors[name] if name in errors and name not in again else forked(lambda text=text: error(text))
        for name, text in scripts.items()
    }
    for path, result in ((ERRORS, errors), (FIXES, fixes)):
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name, said in wrong.items():
        print(f"{name}: {said}")
    print(f"{len(chosen)} fixes and {len(SILENT)} silent scripts were tried; {len(wrong)} are wrong")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main()))
