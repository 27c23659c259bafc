"""Every read, at one version and within one scope."""

from lance_memory.view.embedded import embedded_by
from lance_memory.view.view import MemoryView

__all__ = ["MemoryView", "embedded_by"]
