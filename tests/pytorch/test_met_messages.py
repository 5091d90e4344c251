"""Messages that people meet are PyTorch's own: each mistake of `met.txt` has below it what PyTorch 2.13 said to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.process.script import Script
from gradcli.pytorch.session import run

HEAD = "import torch\nimport torch.utils.data\nimport torch.distributions\nfrom torch import nn\nF = nn.functional\n"
MET = [p.partition("\n")[::2] for p in Path(__file__).with_name("met.txt").read_text("utf-8").strip().split("\n\n")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mistake", "message"), MET, ids=[mistake for mistake, _ in MET])
def test_a_mistake_has_the_message_of_pytorch(mistake, message):
    error = run(Script(HEAD + mistake, "mistake.py", None)).error
    assert f"{type(error).__name__}: {error}".strip() == message
