"""The Dask engine: a Parquet data set, part by part, on the processes of a cluster."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli.batch.job import Job, Tally
from gradcli.data.formats import create_result, open_points
from gradcli.data.parquet import parts
from gradcli.data.replacement import cannot_write, replaced_folder, writing
from gradcli.errors import InputError, Notes, option_error
from gradcli.files import reason
from gradcli.process.platform import cores, hangups_blocked

if TYPE_CHECKING:
    from distributed import Client, Future

_PATIENCE = 10  # seconds to wait for a scheduler


def run_on_cluster(
    job: Job,
    points: str,
    output: str,
    scheduler: str | None,
    report: Callable[[int, float], None] = lambda count, share: None,
) -> Tally:
    """Compute the outputs at all points of a Parquet data set, and write a data set of the same parts.

    The parts are computed by the workers of the cluster at `scheduler`, or of a local one.  The workers read the points
    and write the results themselves: all hosts see the same folders.  A part whose worker dies is given to another.

    Errors: `InputError` for parts that cannot be read, results that cannot be written, no answer from the scheduler.
    """
    sources = parts(points)
    with _folder(output) as folder, _client(scheduler, job.threads) as client:
        run = secrets.token_hex(8)  # a key names its result on the whole cluster
        futures = [
            client.submit(_part, job, str(source.absolute()), str(folder / source.name), key=f"gradcli-{run}-{number}")
            for number, source in enumerate(sources)
        ]
        tallies = _gathered(futures, report)
        for stray in set(folder.iterdir()) - {folder / source.name for source in sources}:
            stray.unlink(missing_ok=True)  # of a worker that died
    total = Tally()
    for tally in tallies:
        total.join(tally)
    return total


def _part(job: Job, source: str, target: str) -> Tally:
    """Compute one part; this runs on a worker, once more on another one if the first dies."""
    points = open_points(source, job.reading)
    try:
        with create_result(target, job.shapes, job.columns) as write:
            return replace(job, engine="numpy", threads=1).run(points, write, Notes())
    finally:
        points.close()


def _gathered(futures: list[Future], report: Callable[[int, float], None]) -> list[Tally]:
    """Return the tallies of the parts in their order, when all are done; the first error ends the run."""
    from distributed import KilledWorker, as_completed
    from distributed.client import FutureCancelledError

    count = 0
    try:
        for number, future in enumerate(as_completed(futures), 1):
            count += future.result().points
            report(count, number / len(futures))
        return [future.result() for future in futures]
    except KilledWorker:
        hint = "the memory of a worker may be too small for a row group of the data set"
        raise InputError("some points were not computed: each worker that had them ended", hint=hint) from None
    except (FutureCancelledError, OSError) as error:
        raise InputError(f"the cluster does not answer any more: {reason(error)}") from None


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Client]:
    """Yield a client of the cluster at that address, or of a local cluster, which ends with the block."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        hint = "pip install 'gradcli[dask]' installs it; --engine numpy is always available"
        raise option_error("--engine", "--engine dask needs Dask", hint, "dask") from None
    # Its log reports workers that come and go; users need not see it.
    for name in ("distributed", "distributed.client", "distributed.gc", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if scheduler is None:
            _start_tracker()
            local = LocalCluster(
                n_workers=workers or cores(),
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                preload="import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(local)
        client = _connected(lambda: Client(local if scheduler is None else scheduler, timeout=_PATIENCE), scheduler)
        stack.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            hint = f"`dask worker {scheduler}` starts one, on each host that is to compute"
            raise InputError(f"the scheduler at `{scheduler}` has no workers", hint=hint, text=scheduler) from None
        yield client


def _start_tracker() -> None:
    """Start the process that keeps track of what the local processes share, so that SIGHUP does not end it.

    A terminal that closes sends it to all of them, and this one would leave tracebacks if it did not end last.
    """
    with hangups_blocked() as blocked:  # which it inherits
        if blocked:
            from multiprocessing import resource_tracker

            resource_tracker.ensure_running()


def _connected(connect: Callable[[], Client], scheduler: str | None) -> Client:
    """Return the client; its own time limit does not hold for a server of another kind, such as a dashboard."""
    thread = ThreadPoolExecutor(1)
    try:
        return thread.submit(connect).result(2 * _PATIENCE)
    except (OSError, ValueError) as error:
        message = f"there is no scheduler at `{scheduler}`: {reason(error) if str(error) else 'no answer'}"
        hint = "`dask scheduler` starts one and prints its address, such as tcp://10.0.0.1:8786"
        raise InputError(message, hint=hint, text=scheduler) from None
    finally:
        thread.shutdown(wait=False)


@contextmanager
def _folder(output: str) -> Iterator[Path]:
    """Yield a folder that is renamed to `output` at the end, unless there is an exception.

    Errors: `InputError` where a folder cannot be put there.
    """
    target = Path(os.path.abspath(output))
    if os.path.lexists(target):
        raise cannot_write(output, "it exists already, and a data set is not replaced")
    with ExitStack() as stack:
        with writing(output):
            folder = stack.enter_context(replaced_folder(target))
        yield folder
        with writing(output):
            stack.close()
