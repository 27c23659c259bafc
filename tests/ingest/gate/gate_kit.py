"""The gate as a job goes through it that is stored at once."""

from __future__ import annotations

from lance_memory.ingest.gate import Gate as Asked


class Gate(Asked):
    """Every call is a job that is safe when the call returns."""

    def __call__(self, items, around):
        passed = super().__call__(items, around)
        self.settled(around.job, safe=True)
        return passed
