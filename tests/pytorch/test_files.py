"""What `torch.load` makes of a file that was written to do harm: tensors and modules, and never anything else."""

from __future__ import annotations

import json
import pickle
import zipfile

import pytest

from gradcli.pytorch.saving import load

BEFORE = []


class Spy:
    def __init__(self):
        BEFORE.append("made")

    def __del__(self):
        BEFORE.append("gone")


@pytest.mark.parametrize(
    "name", [f"{__name__}.Spy", "tempfile._TemporaryFileCloser", "torch.nn.Linear.forward", "os.system"]
)
def test_a_class_that_is_no_module_is_never_made(tmp_path, name):
    path = tmp_path / "m.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gradcli.json", json.dumps({"module": name, "holds": [["name", "m.pt"]]}))
    with pytest.raises(pickle.UnpicklingError, match="Weights only"):
        load(path)
    with pytest.raises(AttributeError, match="no class of modules"):
        load(path, weights_only=False)
    assert BEFORE == []
