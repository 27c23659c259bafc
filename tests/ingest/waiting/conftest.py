"""The store and the candidates are those of resolving."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "resolve"))

from resolve_kit import Talk


@pytest.fixture
def talk(reopen, tmp_path):
    return Talk(reopen(tmp_path / "store"))
