"""An evaluation set: the texts that training must not have seen."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import real, several, whole

__all__ = ["Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Texts to keep out of a training set, and what counts as giving one away.

    Attributes:
        texts: questions, answers, whole items.
        ngram: an example with as many words in a row of one text leaves; None: words are not
            compared. 13 is what GPT-3 used (Brown et al. 2020, appendix C), 8 what GPT-2 did
            (Radford et al. 2019, section 4). A text of fewer words counts as one run of words; of
            fewer than 8, GPT-3's least, only where a memory says just that and no more.
        similarity: a memory whose cosine with one text is at least this, -1..1, makes its example
            leave; None: vectors are not compared.

    Raises:
        InvalidInputError: no texts, or neither way to compare.
    """

    texts: Sequence[str]
    ngram: int | None = 13
    similarity: float | None = None

    def __post_init__(self) -> None:
        if not any(text.strip() for text in several("texts", self.texts)):
            raise InvalidInputError(
                "texts has no text that is not blank; an evaluation set needs one"
            )
        if self.ngram is None and self.similarity is None:
            raise InvalidInputError("give the evaluation set ngram, similarity or both")
        if self.ngram is not None:
            whole("ngram", self.ngram, least=1)
        if self.similarity is not None:
            real("similarity", self.similarity, least=-1, most=1)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        ngram: int | None = 13,
        similarity: float | None = None,
    ) -> Evaluation:
        """The texts of a file: every text value of JSON and JSON lines, each line of others.

        Raises:
            InvalidInputError: not UTF-8, not JSON, or without a text.
            OSError: it cannot be read.
        """
        file = Path(path)
        try:
            texts = [*_texts(file.read_bytes().decode("utf-8-sig"), file.suffix)]
        except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, no file name
            raise InvalidInputError(
                f"{file.name!r} holds no texts that can be read: {error}"
            ) from error
        return cls(texts=texts, ngram=ngram, similarity=similarity)

    def to_json(self) -> dict[str, Any]:
        """How it is compared, and which texts it was, by hash; where they lay does not matter."""
        listed = json.dumps([*self.texts], ensure_ascii=False)
        return {
            "texts": len(self.texts),
            "sha256": hashlib.sha256(listed.encode(errors="surrogatepass")).hexdigest(),
            "ngram": self.ngram,
            "similarity": self.similarity,
        }


def _texts(text: str, suffix: str) -> Iterator[str]:
    if suffix.lower() == ".json":
        yield from _strings(json.loads(text))
        return
    lines = (line for line in text.split("\n") if line.strip())
    for line in lines:
        if suffix.lower() in (".jsonl", ".ndjson"):
            yield from _strings(json.loads(line))
        else:
            yield line.strip()


def _strings(value: Any) -> Iterator[str]:
    """Every text value, in order; names of members are none."""
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
