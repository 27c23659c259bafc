"""HTTP services that take JSON and give JSON; importing this loads no client."""

from __future__ import annotations

from lance_memory.service.checks import OPENAI, base_of, form_of, key_of
from lance_memory.service.post import JsonService, ServiceError
from lance_memory.service.retry import Retry

__all__ = [
    "OPENAI",
    "JsonService",
    "Retry",
    "ServiceError",
    "base_of",
    "form_of",
    "key_of",
]
