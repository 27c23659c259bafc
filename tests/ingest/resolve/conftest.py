"""A store of its own, and what is said to it, claim by claim."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # resolve_kit, for tests and their children

from resolve_kit import Talk


@pytest.fixture
def talk(reopen, tmp_path):
    return Talk(reopen(tmp_path / "store"))
