"""gradcli samples writes what stands in the checkout, whole or not at all; a wheel carries it."""

from __future__ import annotations

import tomllib
from filecmp import dircmp
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@pytest.mark.parametrize("arguments", [(), ("here",)])
def test_the_samples_are_written(cli, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    outcome = cli("samples", *arguments)
    folder = tmp_path / (arguments[0] if arguments else "samples")
    assert outcome.status == 0
    assert outcome.out == ""
    assert names(folder) == names(SAMPLES)
    assert dircmp(SAMPLES, folder, ignore=["__pycache__"]).diff_files == []
    assert outcome.told.startswith(f"wrote {folder.name}: {len(names(folder))} files")
    assert cli.done("run", "--quiet", f"{folder.name}/vector_to_vector.py").out


def test_an_empty_folder_is_filled_and_any_other_kept(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").mkdir()
    assert cli("samples").status == 0
    (tmp_path / "samples" / "mine.py").write_text("mine")
    assert "it is there already" in cli.refused("samples")
    assert (tmp_path / "samples" / "mine.py").read_text() == "mine"
    (tmp_path / "file").write_text("a file")
    assert "it is there already" in cli.refused("samples", "file")
    assert "its folder does not exist" in cli.refused("samples", "no/where")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "samples"]


def test_a_wheel_carries_them():
    files = tomllib.loads((SAMPLES.parent / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["data-files"]
    carried = {path for patterns in files.values() for pattern in patterns for path in SAMPLES.parent.glob(pattern)}
    assert {str(path.relative_to(SAMPLES)) for path in carried if path.is_file()} - {"__pycache__"} == names(SAMPLES)
    for folder, patterns in files.items():
        assert {f"samples{folder.partition('/samples')[2]}"} == {pattern.rpartition("/")[0] for pattern in patterns}
