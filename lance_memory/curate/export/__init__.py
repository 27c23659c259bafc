"""Training data: select → cluster → transform → files with a manifest."""

from lance_memory.curate.export.candidates import Source
from lance_memory.curate.export.evaluation import Evaluation
from lance_memory.curate.export.manifest import (
    Contamination,
    ExportCounts,
    ExportedFile,
    ExportManifest,
)
from lance_memory.curate.export.options import ExportFileType, ExportFormat, ExportOptions
from lance_memory.curate.export.run import export

__all__ = [
    "Contamination",
    "Evaluation",
    "ExportCounts",
    "ExportFileType",
    "ExportFormat",
    "ExportManifest",
    "ExportOptions",
    "ExportedFile",
    "Source",
    "export",
]
