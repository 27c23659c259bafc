"""The report: what a store's history and contents look like, as one page."""

from lance_memory.reporting.verb import Reporting, ReportResult

__all__ = ["ReportResult", "Reporting"]
