"""Write RESULTS.md and its pictures from the recorded lines.

python -m bench.report                       # bench/results/*.jsonl -> bench/RESULTS.md
python -m bench.report --folder DIRECTORY    # DIRECTORY/results/*.jsonl -> DIRECTORY/RESULTS.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.report.lines import recorded
from bench.report.page import page
from bench.report.pictures import draw

HERE = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 where the pictures could not be drawn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--no-pictures", action="store_true")
    parser.add_argument("--small", action="store_true", help="say that they are of a quick run")
    given = parser.parse_args(arguments)
    folder = given.folder
    made = page(recorded(folder / "results"), small=given.small)
    (folder / "RESULTS.md").write_text(made.text, encoding="utf-8")
    print(f"wrote {folder / 'RESULTS.md'}")
    if given.no_pictures:
        return 0
    try:
        for picture in made.pictures:
            draw(picture, folder / "results")
    except ModuleNotFoundError as error:
        print(f"no picture was drawn: {error}; pip install '.[bench]'", file=sys.stderr)
        return 1
    print(f"drew {len(made.pictures)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
