"""Writes to a ledger, and tells of each write once it has returned.

Arguments: the ledger's file, a file that gets one line for each write, and "power" or "process".
"""

from __future__ import annotations

import os
import sys

from lance_memory.ledger import open_ledger

WRITES = 12


def main(path, told, durability):
    handle = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = open_ledger(path, durable=durability == "power")
    for number in range(1, WRITES + 1):
        ledger.append("said", b"word %d" % number * 400)  # some pages of the log each
        os.write(handle, b"%d\n" % number)


if __name__ == "__main__":
    main(*sys.argv[1:])
