"""Lets the tests of extraction import what they share, and the server of the tests of services."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
for place in (str(HERE), str(HERE.parents[1] / "service")):
    if place not in sys.path:
        sys.path.append(place)
