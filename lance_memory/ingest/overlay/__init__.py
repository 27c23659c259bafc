"""What domains add after the commit; which overlays there are, by domain."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from lance_memory.ingest.overlay.education import Education
from lance_memory.ingest.overlay.protocol import Additions, Overlay
from lance_memory.ingest.overlay.support import Support

__all__ = ["OVERLAYS", "Additions", "Education", "Overlay", "Support"]

OVERLAYS: Final[Mapping[str, tuple[Overlay, ...]]] = MappingProxyType(
    {"education": (Education(),), "support": (Support(),)}
)
"""By the domain of a conversation. Others go beside them: `{**OVERLAYS, "mine": (Mine(),)}`."""
