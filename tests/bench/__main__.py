"""Benchmarks, as ratios against peers in the same run: `python -m tests.bench --help`.  Not part of the test run."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.bench import (
    exported,
    files,
    functions,
    growth,
    mixture,
    models,
    points,
    processes,
    race,
    scripts,
    starts,
    symbolic,
)
from tests.bench.machine import limit_memory, print_machine
from tests.bench.plot import COLOURS, plot
from tests.bench.session import Session
from tests.bench.tables import print_markdown

BENCHMARKS = {
    "bundle": points.bundle,
    "rosenbrock": points.rosenbrock_gradient,
    "network": points.tanh_network,
    "broyden": points.broyden_jacobian,
    "mixture": mixture.gradient,
    "length": growth.length,
    "threads": growth.threads,
    "csv": files.csv_files,
    "file": processes.file_to_file,
    "exported": exported.calls,
    "models": models.gradients,
    "functions": functions.calls,
    "symbolic": symbolic.jacobian,
    "start": starts.start_up,
    "chains": starts.chains,
    "training": scripts.training,
    "recorded": scripts.recorded,
    "deep": scripts.deep,
    "small": scripts.small,
    "script": scripts.script,
}

LEGEND = f"""\
Each competitor has a process of its own.  median, fastest: of several turns, in which a run of under {race.COLD:g} s
follows one that warms up.  first run: from the formulas to the first results, with all that is compiled on the way.
ratio: time ÷ time of gradcli's NumPy engine, or how many times that is as fast.
–: predicted to take over {race.SLOWEST:g} seconds a run or {race.LONGEST:g} until the first result, or more memory
than there is."""


def main() -> int:
    """Run the benchmarks that were named, or all; 1 when a result does not agree with gradcli's."""
    options = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"what to run: {', '.join(BENCHMARKS)}")
    options.add_argument("--quick", action="store_true", help="ten times fewer points")
    options.add_argument("--most", metavar="POINTS", type=int, default=10**6, help="no race of more points (10**6)")
    options.add_argument("--busy", action="store_true", help="count time of the processor, by all threads together")
    options.add_argument("--plot", metavar="FILE.svg", type=Path, help="draw nanoseconds a point against points")
    asked = options.parse_args()
    if unknown := set(asked.names) - set(BENCHMARKS):
        options.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    if asked.busy:
        race.clock = time.process_time
    session = Session(asked.quick, asked.most)
    limit_memory()
    print(LEGEND)
    for name, run in BENCHMARKS.items():
        if name in asked.names or not asked.names:
            run(session)
    print_machine()
    if session.growth:
        print_markdown(session.growth, COLOURS)
    if asked.plot:
        plot(session.growth, asked.plot)
    if session.failed:
        print("*** RESULTS DO NOT AGREE: see above", file=sys.stderr)
    return int(session.failed)


if __name__ == "__main__":
    sys.exit(main())
