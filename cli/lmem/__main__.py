"""`python -m lmem` is `lmem`."""

from __future__ import annotations

from lmem.main import main

raise SystemExit(main())
