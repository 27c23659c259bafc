"""Runs the program of `test_power` in a store, and tells after each operation what is in it.

Arguments: the store's directory, and a file that gets one line of JSON for each operation.
"""

from __future__ import annotations

import json
import os
import sys

from power_program import program
from proof_kit import TickingClock, open_store


def main(path, told):
    handle = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def done(rows, tags):
        line = {"rows": {i: repr(row) for i, row in rows.items()}, "tags": tags}
        os.write(handle, f"{json.dumps(line)}\n".encode())

    program(open_store(path, TickingClock(), durability="power", upkeep=None), done)


if __name__ == "__main__":
    main(*sys.argv[1:])
