"""Secrets and personal data out of a text, before it is logged or sent anywhere.

Importing this loads nothing beyond the standard library; what finds phone numbers and secrets
is loaded by the first text.
"""

from __future__ import annotations

from lance_memory.redact.protocol import Finding, Redacted, Redactor, Sensitive, checked
from lance_memory.redact.standard import REGIONS, STANDARD, StandardRedactor
from lance_memory.redact.veil import Veiled, veiled

__all__ = [
    "REGIONS",
    "STANDARD",
    "Finding",
    "Redacted",
    "Redactor",
    "Sensitive",
    "StandardRedactor",
    "Veiled",
    "checked",
    "veiled",
]
