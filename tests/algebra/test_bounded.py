"""Work in a child process: one child for all questions, another where it had to be stopped or ended by itself."""

import os
import sys
import time
from pathlib import Path

import pytest
from conftest import long

from gradcli.algebra.bounded import Bounded
from gradcli.process import platform


def test_one_child_answers_all_questions():
    with Bounded(lambda n, report: report((n, os.getpid())), 5) as bounded:
        (first, child), (second, same) = bounded.ask(1), bounded.ask(2)
    assert (first, second) == (1, 2)
    assert child == same != os.getpid()


@long
def test_a_child_that_is_late_is_stopped_and_the_next_question_has_another():
    def work(n, report):
        report(os.getpid())
        if n == 1:
            time.sleep(60)

    with Bounded(work, 0.5) as bounded:
        late, second, third = (bounded.ask(n) for n in (1, 2, 3))
    assert late != second == third
    with pytest.raises(ProcessLookupError):
        os.kill(late, 0)


def test_computing_has_its_time():
    def work(n, report):
        report(n)
        while n:
            pass

    with Bounded(work, 0.5) as bounded:
        start = os.times()
        assert [bounded.ask(n) for n in (0, 1, 2, 0)] == [0, 1, 2, 0]
        end = os.times()
    assert end.children_user - start.children_user < 1.5  # of two questions, where five times that is the limit


def test_what_ends_its_own_child_has_the_answer_so_far():
    def work(n, report):
        report(n)
        if n:
            os._exit(1)

    with Bounded(work, 1) as bounded:
        assert [bounded.ask(n) for n in (0, 1, 2, 0)] == [0, 1, 2, 0]


def test_the_child_has_a_bound_of_memory():
    def work(n, report):
        report(0)
        report(len(bytearray(n)))

    with Bounded(work, 1) as bounded:
        assert [bounded.ask(n) for n in (10, 2**32, 20)] == [10, 0, 20]


# Where processes do not fork


def in_another_python(n, report):
    """Know nothing of the program that asks: it is not run once more."""
    report((os.getpid(), hasattr(sys.modules["__main__"], "__file__")))
    if n == 1:
        time.sleep(60)
    if n == 2:
        os._exit(1)


def test_a_new_python_answers_where_there_is_no_fork(monkeypatch, tmp_path):
    (tmp_path / "numpy.py").write_text("raise SystemExit")
    (tmp_path / "pickle.py").write_text("raise SystemExit")
    monkeypatch.setattr(platform, "FORKS", False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, Path(__file__).parents[:2])))  # and conftest
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as a script's folder is
    with Bounded(in_another_python, 0.2) as bounded:
        (first, knows), second, late, ended, last = (bounded.ask(n) for n in (0, 0, 1, 2, 0))
    assert not knows
    assert first == second[0] == late[0] != os.getpid()
    assert len({first, ended[0], last[0]}) == 3
    with pytest.raises(ProcessLookupError):
        os.kill(last[0], 0)


@pytest.mark.parametrize("python", ["", sys.executable + "-nowhere"])
def test_where_no_process_can_start_there_are_no_answers(monkeypatch, python):
    monkeypatch.setattr(platform, "FORKS", False)
    monkeypatch.setattr(sys, "executable", python)
    with Bounded(in_another_python, 1) as bounded:
        assert [bounded.ask(0), bounded.ask(0)] == [None, None]
