"""What a training set is to look like, and what is to be kept out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lance_memory.curate.export.evaluation import Evaluation
from lance_memory.record.arguments import flag, instance, one_of, real, several, whole
from lance_memory.record.memory import SCOPE_LEVELS

__all__ = ["ExportFileType", "ExportFormat", "ExportOptions"]


class ExportFormat(StrEnum):
    """What one example is: a text, a conversation, or a better and a worse answer."""

    PLAIN = "plain"
    CHAT = "chat"
    PREFERENCE = "preference"


class ExportFileType(StrEnum):
    """How the examples are written: a JSON object on each line, or columns."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How memories become examples, and which examples stay out.

    Attributes:
        format: "plain": `{"text"}`, one for each memory. "chat": `{"messages"}`, one for each
            session. "preference": `{"prompt", "chosen", "rejected"}`, one for each correction and
            each pair of rated answers. Every example has `id` and `metadata` besides.
        file_type: by default what the path's suffix says, else JSONL.
        group_by: scope level whose groups stand as one: a group is never on both sides of the
            split. A memory with no name at that level is a group of its own.
        min_similarity: cosine floor, -1..1, from which two memories are near-duplicates, unless
            they differ in kind, actor, a number, a name or a negation; the same text always is
            one. None keeps all.
        across: scope levels over which near-duplicates are looked for; by default all, so that a
            text of two users is one. () looks within one scope only.
        evaluation: texts that no example may give away; None: there are none.
        validation: share of the groups, 0..1 (1 excluded), that goes into a file of its own.
        seed: another number draws other groups.
        max_turns: messages of one conversation at most; a longer one becomes several.
        margin: by how much the chosen answer must be rated above the rejected one, above 0.
        overwrite: replace an export that is there already.
    """

    format: ExportFormat | str = ExportFormat.PLAIN
    file_type: ExportFileType | str | None = None
    group_by: str = "session"
    min_similarity: float | None = 0.95
    across: tuple[str, ...] = SCOPE_LEVELS
    evaluation: Evaluation | None = None
    validation: float = 0.0
    seed: int = 0
    max_turns: int | None = None
    margin: float = 0.1
    overwrite: bool = False

    def __post_init__(self) -> None:
        one_of("format", self.format, ExportFormat)
        if self.file_type is not None:
            one_of("file_type", self.file_type, ExportFileType)
        one_of("group_by", self.group_by, SCOPE_LEVELS)
        several("across", self.across, SCOPE_LEVELS)
        if self.min_similarity is not None:
            real("min_similarity", self.min_similarity, least=-1, most=1)
        if self.evaluation is not None:
            instance("evaluation", self.evaluation, Evaluation, "an Evaluation")
        real("validation", self.validation, least=0, most=1, without=1)
        whole("seed", self.seed)
        real("margin", self.margin, least=0, most=1, without=0)
        if self.max_turns is not None:
            whole("max_turns", self.max_turns, least=2)
        flag("overwrite", self.overwrite)

    def levels(self) -> tuple[str, ...]:
        """The scope levels that name a group: `group_by` and those above it."""
        return SCOPE_LEVELS[: SCOPE_LEVELS.index(self.group_by) + 1]

    def to_json(self) -> Mapping[str, Any]:
        """What decides the examples and their files, as JSON values."""
        told = self.evaluation.to_json() if self.evaluation else None
        return {
            "format": str(self.format),
            "group_by": self.group_by,
            "min_similarity": self.min_similarity,
            "across": list(self.across),
            "evaluation": told,
            "validation": self.validation,
            "seed": self.seed,
            "max_turns": self.max_turns,
            "margin": self.margin,
        }
