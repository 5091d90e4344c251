"""The commands of documents and samples are quick to start."""

from __future__ import annotations

import pytest
from documents import QUICK


@pytest.fixture(scope="package", autouse=True)
def _quick(forked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(QUICK, str(forked))
        yield
