"""The Dask engine, on a real scheduler with real workers: a data set comes out whole, or nothing does."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import GRADCLI, HANG, Outcome, environment, interruptible, long

from gradcli.batch import cluster as engine

pytestmark = pytest.mark.usefixtures("own_folder")

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")
Client = pytest.importorskip("distributed").Client

SYSTEM = ("h=sin(a*b)", "y=h*exp(-a**2)/(1+b**2)")
PARTS = 12
ROWS = 100_000  # in each part: as long as it takes to see a worker in the middle of one


class Processes:
    """Processes that end with the tests, whatever happens."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []

    def start(self, *command, **options):
        process = subprocess.Popen(command, env=environment(), **options)
        self.started.append(process)
        return process

    def dask(self, role, *arguments):
        """Start a scheduler or a worker."""
        file = str(self.folder / "scheduler.json")
        options = ["--scheduler-file", file, "--no-dashboard", "--dashboard-address", "127.0.0.1:0", *arguments]
        with open(self.folder / f"{role}.log", "ab") as log:
            return self.start(sys.executable, "-m", "dask", role, *options, cwd=self.folder, stdout=log, stderr=log)

    def scheduler(self):
        """Start a scheduler, and wait for its address."""
        self.dask("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.address = wait_until(lambda: address(self.folder / "scheduler.json"))

    def worker(self):
        return self.dask("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")

    def stop(self):
        for process in self.started:
            process.kill()
        for process in self.started:
            process.communicate(timeout=HANG)


@pytest.fixture
def processes(tmp_path_factory):
    found = Processes(tmp_path_factory.mktemp("processes"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with two workers, and their address."""
    found = Processes(tmp_path_factory.mktemp("cluster"))
    try:
        found.scheduler()
        found.workers = [found.worker(), found.worker()]
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A data set whose parts take a while, each."""
    folder = tmp_path_factory.mktemp("large") / "points.parquet"
    return data_set(ROWS, PARTS, folder)


def address(path):
    with contextlib.suppress(FileNotFoundError, ValueError):  # it is not there yet, or being written
        return json.loads(path.read_text())["address"]


def wait_until(true):
    """Return what is true at last."""
    end = time.monotonic() + HANG
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


def on(cluster):
    return ("--engine", "dask", "--scheduler", cluster.address)


def start(processes, *options, **more):
    command = [*GRADCLI, "backward", *SYSTEM, "--output", "result.parquet", *options]
    return processes.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def in_the_middle():
    """Return the hidden folder of a run, once some parts of the result are in it."""
    (folder,) = wait_until(lambda: sorted(Path().glob(".gradcli-*.tmp")))
    wait_until(lambda: len(list(folder.glob("part.*.parquet"))) >= 2)
    return folder


def data_set(rows, count, path="points.parquet", more=None):
    """Write a data set whose parts are in the order of their numbers, not of their names."""
    rng = np.random.default_rng(0)
    os.mkdir(path)
    for k in range(count):
        table = {"a": rng.standard_normal(rows), "b": rng.standard_normal(rows)} | (more or {}).get(k, {})
        pq.write_table(pa.table(table), f"{path}/part.{k}.parquet")
    return "--points", str(path)


def columns(path):
    """Return the numbers in a data set, its parts in the order of their numbers."""
    names = sorted(os.listdir(path), key=lambda name: (len(name), name))
    tables = [pq.read_table(f"{path}/{name}") for name in names if name.endswith(".parquet")]
    return names, {c: np.concatenate([t[c].to_numpy() for t in tables]) for c in tables[0].column_names}


def writes_there(worker, folder):
    """Tell whether a process has a file open in a folder."""
    for descriptor in os.listdir(f"/proc/{worker.pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{worker.pid}/fd/{descriptor}").startswith(f"{folder.absolute()}/"):
                return True
    return False


@long
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs to see which files a process has open")
def test_a_worker_that_is_killed_is_no_matter(cli, cluster, processes, large):
    cli.done("backward", *SYSTEM, *large, "--output", "alone.parquet")
    run = start(processes, *large, *on(cluster))
    folder = in_the_middle()
    for victim in itertools.cycle(cluster.workers):
        victim.send_signal(signal.SIGSTOP)  # it cannot end its part before it is killed
        if writes_there(victim, folder):
            break
        victim.send_signal(signal.SIGCONT)
        assert run.poll() is None
        time.sleep(0.002)
    assert not os.path.exists("result.parquet")
    victim.kill()
    out, err = run.communicate(timeout=HANG)
    assert (run.returncode, out) == (0, b"")
    assert not folder.exists()
    names, found = columns("result.parquet")
    assert names == [f"part.{k}.parquet" for k in range(PARTS)]
    table = pq.read_table("alone.parquet")
    assert list(found) == table.column_names == ["a.grad", "b.grad"]
    for name, values in found.items():
        np.testing.assert_array_equal(values, table[name].to_numpy())
    assert err.startswith(b"wrote result.parquet: ")


def test_a_cluster_computes_what_numpy_does(cli, cluster):
    poles = {"a": np.array([1.0, 0, 2]), "b": np.array([1.0, 1, np.nan])}
    given = data_set(rows=3, count=11, more={2: poles, 10: poles})
    alone = cli.done("backward", "y=b/a", *given, "--output", "alone.parquet")
    outcome = cli("backward", "y=b/a", *given, "--output", "result.parquet", *on(cluster))
    assert outcome.err == alone.err.replace("alone", "result")
    assert "4 of 33 points are not finite;\n  at the first, point 8, " in outcome.err
    _, found = columns("result.parquet")
    table = pq.read_table("alone.parquet")
    assert list(found) == table.column_names
    np.testing.assert_equal(found, {name: table[name].to_numpy() for name in found})
    assert sorted(os.listdir()) == ["alone.parquet", "points.parquet", "result.parquet"]


@long
def test_two_runs_at_once(cli, cluster, processes):
    """Both have parts under the same numbers, in the same scheduler, which must not take one's for the other's."""
    given = data_set(rows=3, count=PARTS)
    systems = {"one": "y=a*b", "two": "y=a-b"}

    def wanted(dask_scheduler):  # the results that all clients wait for
        return sum(len(client.wants_what) for client in dask_scheduler.clients.values())

    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(cluster.address))
        client.wait_for_workers(1, HANG)
        for worker in cluster.workers:
            worker.send_signal(signal.SIGSTOP)
            stack.callback(worker.send_signal, signal.SIGCONT)
        command = [*GRADCLI, "backward"]
        runs = [
            processes.start(*command, system, *given, "--output", f"{name}.parquet", *on(cluster))
            for name, system in systems.items()
        ]
        wait_until(lambda: client.run_on_scheduler(wanted) == len(runs) * PARTS)
    assert [run.wait(HANG) for run in runs] == [0, 0]
    for name, system in systems.items():
        cli.done("backward", system, *given, "--output", "alone.parquet")
        table = pq.read_table("alone.parquet")
        names, found = columns(f"{name}.parquet")
        assert len(names) == PARTS
        np.testing.assert_equal(found, {c: table[c].to_numpy() for c in table.column_names})


@long
def test_a_local_cluster(process):
    given = data_set(rows=3, count=3)
    options = ("--engine", "dask", "--threads", "2")
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # it is taken already
            taken.bind(("127.0.0.1", 8787))  # the port of Dask's dashboard
            taken.listen()
        outcome = process("jacobian", "y=a*b", *given, "--output", "result.parquet", *options)
    assert (outcome.status, outcome.out, outcome.notes) == (0, "", "")
    _, points = columns("points.parquet")
    names, found = columns("result.parquet")
    assert names == [f"part.{k}.parquet" for k in range(3)]
    np.testing.assert_equal(found, {"dy/da": points["b"], "dy/db": points["a"]})


@long
@pytest.mark.parametrize(
    ("where", "signum", "status", "says"),
    [
        ("there", signal.SIGTERM, 143, ""),
        ("local", signal.SIGINT, 130, "interrupted"),
        ("local", signal.SIGHUP, 129, ""),
    ],
)
def test_a_signal_leaves_nothing_behind(processes, cluster, large, where, signum, status, says):
    options = on(cluster) if where == "there" else ("--engine", "dask", "--threads", "1")
    run = start(processes, *large, *options, start_new_session=True, preexec_fn=interruptible)
    folder = in_the_middle()
    os.killpg(run.pid, signum)  # as a terminal does: the processes of a local cluster get it too
    out, err = run.communicate(timeout=HANG)
    assert (run.returncode, out, err.decode().strip()) == (status, b"", says)
    assert not folder.exists()
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tcp://127.0.0.1:1", "there is no scheduler at `tcp://127.0.0.1:1`"),
        ("nowhere", "there is no scheduler at `nowhere`"),
        ("nowhere://127.0.0.1:1", "there is no scheduler at `nowhere://127.0.0.1:1`"),
        ("tcp://127.0.0.1:port", "there is no scheduler at `tcp://127.0.0.1:port`"),
        ("", "there is no scheduler at ``"),
    ],
)
def test_no_scheduler(cli, monkeypatch, address, says):
    monkeypatch.setattr(engine, "_PATIENCE", 0.2)
    given = data_set(rows=3, count=2)
    engine_options = ("--engine", "dask", "--scheduler", address)
    assert says in cli.refused("backward", "y=a*b", *given, "--output", "result.parquet", *engine_options)
    assert os.listdir() == ["points.parquet"]


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_a_data_set_is_not_replaced(cli, there):
    given = data_set(rows=3, count=2)
    if there == "folder":
        os.mkdir("result.parquet")
    elif there == "file":
        Path("result.parquet").write_bytes(b"the old file")
    else:
        Path("result.parquet").symlink_to("nowhere")
    before = os.lstat("result.parquet")
    err = cli.refused("backward", "y=a*b", *given, "--output", "result.parquet", "--engine", "dask")
    said = "error: `result.parquet` cannot be written: it exists already, and a data set is not replaced\n"
    assert err.startswith(said)
    assert err.endswith("^^^^^^^^^^^^^^\n")  # below its name, as it was typed
    assert os.lstat("result.parquet").st_ino == before.st_ino
    assert sorted(os.listdir()) == ["points.parquet", "result.parquet"]


@long
def test_a_scheduler_that_goes_is_told(processes, cluster, large):
    """This is the last of the tests that have a cluster."""
    run = start(processes, *large, *on(cluster))
    in_the_middle()
    cluster.started[0].kill()
    out, err = run.communicate(timeout=HANG)
    refused = Outcome(run.returncode, out.decode(), err.decode()).refused()
    assert refused.startswith("error: the cluster does not answer any more: ")
    assert os.listdir() == []
