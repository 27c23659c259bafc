"""What may become a memory, found in what was said: by rules, or by a model."""

from lance_memory.ingest.extract.model import ModelExtractor
from lance_memory.ingest.extract.protocol import Extractor, Reading
from lance_memory.ingest.extract.provider import Provider
from lance_memory.ingest.extract.rules import Rules
from lance_memory.ingest.extract.step import Extract

__all__ = ["Extract", "Extractor", "ModelExtractor", "Provider", "Reading", "Rules"]
