"""Which scripts need PyTorch itself, by their imports."""

from __future__ import annotations

import sys

import pytest

from gradcli.process.pytorch import is_new_enough, needing


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Installed packages: one that requires torch, one that does with an extra, one that does not, one with a part."""
    requirements = {
        "vision": "torch>=2",
        "pure": "numpy",
        "models": 'torch ; extra == "all"',
        "layers": "numpy",
        "torchy": "torch-scatter",
    }
    for name, required in requirements.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        info = tmp_path / f"{name}_package-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1.0\nRequires-Dist: {required}\n"
        )
        (info / "top_level.txt").write_text(f"{name}\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in requirements:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\nimport vision", "vision"),
        ("def f():\n    from vision.models import net", "vision.models.net"),
        ("import models as m", "models"),
        ("import layers, pure, os, numpy", ""),
        ("from layers.torch import Rearrange", "layers.torch.Rearrange"),
        ("import torchy", ""),
        ("from . import vision\nfrom torch.nn import vision", ""),
        ("import vision(", ""),
        ("import not_installed", ""),
    ],
)
def test_a_script_needs_pytorch_where_a_package_that_it_imports_does(packages, source, name):
    assert needing(source, None) == name


def test_a_module_of_the_scripts_own_is_no_package(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    (folder / "vision.py").touch()
    assert needing("import vision", str(folder)) == ""


def test_versions_are_compared_as_numbers():
    assert is_new_enough("2.10.1")
    assert not is_new_enough("1.99")
