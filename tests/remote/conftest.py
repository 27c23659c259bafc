"""A bucket of its own for each test, and the modules of the proofs."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in (str(HERE), str(HERE.parent / "proof")):
    if folder not in sys.path:
        sys.path.append(folder)


@pytest.fixture
def bucket(s3):
    """The URI of an empty bucket."""
    return s3.bucket(f"b{uuid.uuid4().hex}")
