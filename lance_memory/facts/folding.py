"""Words as they are compared."""

from __future__ import annotations

import unicodedata

__all__ = ["CJK", "plain", "strip_accents"]

CJK = r"\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af"
"""Scripts whose characters count as words: Chinese, Japanese, Korean; inside of brackets."""


def plain(text: str) -> str:
    """Casefolded, without accents, apostrophes straight."""
    return strip_accents(text.casefold()).replace("’", "'")


def strip_accents(text: str) -> str:
    """The text without combining marks: `ação` → `acao`."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c))
