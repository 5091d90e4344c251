"""Runs of scripts under PyTorch: as they are, and recorded, in this process."""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from gradcli.process.script import Script
from gradcli.process.tracebacks import traceback_text
from gradcli.pytorch.session import run
from gradcli.record.record import Record

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))


@dataclass
class Run:
    """What a script printed, how it ended, and the records of its backwards."""

    out: str
    err: str
    status: int
    records: list[Record] = field(default_factory=list)


def run_script(path: Path, recorded: bool, lines: bool = False) -> Run:
    """Run a script; `lines` ends the recording once each line has its page."""
    import torch

    from gradcli.realtorch.driver import Session
    from gradcli.realtorch.sites import Lines

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    records: list[Record] = []
    script = Script(path.read_text("utf-8"), str(path), str(path.parent), (), path.read_bytes())
    session = Session(lambda *_: True, lambda record, *_: records.append(record), Lines(str(path)) if lines else None)
    out, err = io.StringIO(), io.StringIO()
    before = {*sys.modules}
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        warnings.simplefilter("default")
        with session.running() if recorded else nullcontext():
            ending = run(script, emulates=False)
        if ending.error is not None:
            err.write(traceback_text(ending.error))
    for name in {*sys.modules} - before:
        if not name.startswith(("torch", "numpy", "gradcli", "sympy")):
            del sys.modules[name]
    assert not session.recording.faults, session.recording.faults
    return Run(out.getvalue(), err.getvalue(), ending.status, records)


def records_of(folder: Path, text: str) -> list[Record]:
    """Return the records of a script that is written into a folder."""
    path = folder / "script.py"
    path.write_text(text, "utf-8")
    return run_script(path, True).records
