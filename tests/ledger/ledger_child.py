"""A process that uses a ledger: shares it with others, or writes until it is killed."""

from __future__ import annotations

import os
import sys

from lance_memory.ledger import open_ledger


def tell(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def share(ledger):
    """A hundred times: append, count, lengthen a value, and tell what it was the first to take."""
    for number in range(100):
        ledger.append("said", b"%d %d" % (os.getpid(), number))
        ledger.add("sums", "all", 1)
        while not lengthened(ledger):
            pass
        if ledger.swap("claims", f"{number}", old=None, new=b"mine"):
            tell(number)


def lengthened(ledger):
    old = ledger.get("values", "shared")
    return ledger.swap("values", "shared", old=old, new=(old or b"") + b"x")


def write(ledger):
    """Tells each number once it is put; for ever."""
    number = 0
    while True:
        ledger.put("written", f"{number:06d}", b"%d" % number)
        tell(number)
        number += 1


if __name__ == "__main__":
    globals()[sys.argv[1]](open_ledger(sys.argv[2]))
