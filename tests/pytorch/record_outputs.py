"""Record what PyTorch prints for the scripts: `python tests/pytorch/record_outputs.py`, with a Python that has it.

Each script runs in a process of its own, that was forked after PyTorch was imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch.func
import torch.nn
from collection import RECORDED, first_lines, scripts, without_addresses

import samples

sys.path.append(str(Path(__file__).parents[1] / "script"))
from broken import BROKEN, ERRORS, IN_WORDS
from detached import DETACHED, SLIPS

torch.set_num_threads(1)


def outcome(name: str, source: str) -> dict[str, str]:
    """Run a script here; return what it printed, and the last line of the error that it ended with."""
    out, error = io.StringIO(), ""
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})
        except SystemExit:
            pass
        except BaseException as problem:
            error = "".join(traceback.format_exception_only(problem)).strip()
    return {
        "out": without_addresses(out.getvalue()),
        "error": error,
        "warnings": first_lines([str(w.message) for w in caught]),
    }


def forked(name: str, source: str) -> dict[str, str]:
    """Run a script in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            json.dump(outcome(name, source), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def main() -> None:
    """Record all scripts, the samples and the errors; or the scripts whose names contain a word, and new ones."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    before = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    found = {n: forked(n, s) if word in n else before.get(n) or forked(n, s) for n, s in scripts().items()}
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(len(found), "scripts")
    if word:
        return
    own = {name: forked(name, source) for name, source in samples.samples().items()}
    samples.RECORDED.write_text(json.dumps(own, indent=1, ensure_ascii=False) + "\n", "utf-8")
    record_errors()


def record_errors() -> None:
    """Record what PyTorch says to the scripts that are to be fixed."""
    texts = {**BROKEN, **IN_WORDS, **SLIPS, **{name: text for name, (text, _) in DETACHED.items()}}
    found = {name: forked(name, text)["error"] for name, text in texts.items()}
    ERRORS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
