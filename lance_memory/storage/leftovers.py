"""Files that a look into the future left behind, and that no version has."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["remove"]


def remove(home: str, name: str) -> None:
    """Remove what is the table's own, on a local disk; elsewhere it stays until clean-up."""
    if "://" in home:
        return
    path = Path(home) / name
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
