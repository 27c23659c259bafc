"""A process that appends to a journal when the others do: `journal_child.py PATH NAME COUNT KEEP`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa

from lance_memory.storage.journal import Journal

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("user", pa.string()),
    ]
)


def main(path, name, count, keep):
    journal = Journal(path, "notes", schema=SCHEMA)
    Path(path, f"ready-{name}").touch()
    while not Path(path, "go").exists():
        time.sleep(0.001)
    for n in range(int(count)):
        row = {"id": [f"{n:06d}-{name}"], "text": [f"said {n}"], "user": [name]}
        journal.append(pa.table(row))
        journal.upkeep(keep=int(keep))
        print(n, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
