"""Processes that write, read and tend one store, killed and stopped at random: what was lost?

The same as tests/proof/test_soak.py, for its figures. Run it from the repository root:

    .venv/bin/python bench/soak.py [--seconds 420] [--seed 20250202]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import emit
from bench.origin import ROOT

sys.path[:0] = [str(ROOT / "tests" / name) for name in ("proof", "children")]

from test_soak import Soak  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> None:
    """One line, with every complaint of the judge in it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--seed", type=int, default=20250202)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lance-memory-soak-") as folder:
        one = Soak(Path(folder), given.seed)
        try:
            one.run(given.seconds)
        finally:
            for process in one.alive.values():
                process.kill()
                process.wait()
        figures, complaints = one.judge()
    emit(bench="soak", seconds=given.seconds, **figures, complaints=[str(x) for x in complaints])


if __name__ == "__main__":
    main()
