"""Files that no version has: of a commit or an index that was only tried, or was refused."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["remove"]


def remove(home: str, name: str) -> None:
    """Remove a file or a directory under `home`, on a local disk; elsewhere clean-up does."""
    if "://" in home:
        return
    path = Path(home) / name
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
