"""What a recording keeps of a network with many parameters: summaries, and the page that whole numbers give."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
