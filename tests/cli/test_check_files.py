"""`gradcli check a.txt b.txt`: each file by itself, the worst status, and a suite a file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

RIGHT, WRONG, BROKEN = "df/dx = 2*x*y\n", "df/dx = 2*x\n", "df/dx = 2*x*\n"


@pytest.fixture
def files(tmp_path):
    """Return the names of three files of claims about one system."""
    paths = [tmp_path / f"{name}.txt" for name in ("right", "wrong", "broken")]
    for path, claim in zip(paths, (RIGHT, WRONG, BROKEN), strict=True):
        path.write_text(claim)
    return [str(path) for path in paths]


def test_each_file_has_verdicts_of_its_own(cli, files):
    outcome = cli("check", "f=x**2*y", *files[:2])
    assert outcome.status == 1
    first, second = outcome.out.split(f"{files[1]}:")
    assert first.startswith(f"{files[0]}:")
    assert "df/dx = 2*x*y   right: proved" in first
    assert "df/dx = 2*x   wrong: in ∂f/∂x the factor y is missing" in second


def test_files_that_are_right_end_with_0(cli, files):
    assert cli("check", "f=x**2*y", files[0], files[0]).status == 0
    assert cli.done("check", "f=x**2*y", files[0]).out.startswith("df/dx = 2*x*y   right")


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_it(cli, files, tmp_path):
    junit = tmp_path / "verdicts.xml"
    outcome = cli("check", "f=x**2*y", files[2], files[0], files[1], "-f", "json", "--junit", str(junit))
    assert outcome.status == 2
    records = list(map(json.loads, outcome.out.splitlines()))
    assert [(r["file"], r["verdict"]) for r in records] == [(files[0], "right"), (files[1], "wrong")]
    assert f"error in {files[2]}: this cannot be read" in " ".join(outcome.err.split())
    suites = ET.parse(junit).getroot()
    counts = [(s.get("name"), s.get("failures"), s.get("errors", "0")) for s in suites]
    assert counts == [(files[2], "0", "1"), (files[0], "0", "0"), (files[1], "1", "0")]


def test_a_statement_is_not_taken_for_a_file(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("nothing")
    assert cli.done("check", "f=x**2", "x.grad=v*2*x").out.startswith("x.grad = v*2*x   right")


def test_a_whole_model_behind_f_is_one_of_several_files(cli, tmp_path):
    models = [tmp_path / "a.grad", tmp_path / "b.grad"]
    for k, model in enumerate(models, 2):
        model.write_text(f"input x = 1\nf = x**{k}\ndf/dx = {k}*x**{k - 1}\n")
    outcome = cli.done("check", "-F", *map(str, models), "-f", "json")
    assert [(r["file"], r["verdict"]) for r in outcome.objects] == [(str(m), "right") for m in models]


def test_a_system_behind_f_belongs_to_each_file(cli, files, tmp_path):
    system = tmp_path / "system.grad"
    system.write_text("f = x**2*y\n")
    outcome = cli("check", "-F", str(system), *files[:2], "-f", "json")
    assert [(r["file"], r["verdict"]) for r in outcome.objects] == [(files[0], "right"), (files[1], "wrong")]
