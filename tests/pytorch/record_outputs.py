"""Record what PyTorch prints for the scripts: `python tests/pytorch/record_outputs.py`, with a Python that has it.

Each script runs in a process of its own, that was forked after PyTorch was imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
import warnings
from functools import partial

import torch
import torch.func
import torch.nn
from collection import RECORDED, first_lines, forked, scripts, without_addresses

import samples

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


def main() -> None:
    """Record all scripts and the samples; or the scripts whose names contain a word, and new ones."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    before = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    new = {name: partial(outcome, name, source) for name, source in scripts().items()}
    found = {n: forked(run) if word in n else before.get(n) or forked(run) for n, run in new.items()}
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(len(found), "scripts")
    if word:
        return
    own = {name: forked(partial(outcome, name, source)) for name, source in samples.samples().items()}
    samples.RECORDED.write_text(json.dumps(own, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
