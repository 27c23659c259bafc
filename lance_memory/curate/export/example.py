"""One example as it is written: the members that trainers read, an id, and where it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from lance_memory.curate.export.draft import CHOSEN, PROMPT, REJECTED, TEXT, Draft
from lance_memory.curate.export.options import ExportFormat
from lance_memory.record.memory import SCOPE_LEVELS

__all__ = ["example", "schema"]

_TEXT = pa.string()
_MESSAGE = pa.struct([("role", _TEXT), ("content", _TEXT)])
_BODIES: Mapping[ExportFormat, list[tuple[str, pa.DataType]]] = {
    ExportFormat.PLAIN: [(TEXT, _TEXT)],
    ExportFormat.CHAT: [("messages", pa.list_(_MESSAGE))],
    ExportFormat.PREFERENCE: [(PROMPT, _TEXT), (CHOSEN, _TEXT), (REJECTED, _TEXT)],
}


def schema(form: ExportFormat) -> pa.Schema:
    """The columns of such examples; each member of a JSON line is one."""
    metadata = [
        ("sources", pa.list_(_TEXT)),
        *((level, _TEXT) for level in SCOPE_LEVELS),
        ("at", _TEXT),
        ("quality", pa.float64()),
        *([("origin", _TEXT)] if form == ExportFormat.PREFERENCE else []),
    ]
    return pa.schema([("id", _TEXT), *_BODIES[form], ("metadata", pa.struct(metadata))])


def example(draft: Draft, texts: Sequence[str], form: ExportFormat) -> dict[str, Any]:
    """The draft with its texts, one for each part.

    `metadata` has the ids of the memories (`sources`), the scope levels in which they agree, the
    time of the first (`at`, ISO 8601) and the rating. `messages` follow the format that OpenAI and
    TRL take, `prompt`, `chosen` and `rejected` that of TRL.
    """
    if form == ExportFormat.CHAT:
        body: dict[str, Any] = {"messages": _messages(draft.parts, texts)}
    elif form == ExportFormat.PREFERENCE:
        body = {PROMPT: draft.prompt, **dict(zip(draft.parts, texts, strict=True))}
    else:
        body = {TEXT: texts[0]}
    return {"id": _name(draft), **body, "metadata": _metadata(draft, form)}


def _messages(said: Sequence[str], texts: Sequence[str]) -> list[dict[str, str]]:
    """One message for each run of one role, a line for each turn.

    The chat templates of many models (Llama 2, Mistral, Gemma) refuse two messages of one role
    in a row, so such turns are one message.
    """
    runs = groupby(zip(said, texts, strict=True), key=itemgetter(0))
    return [{"role": r, "content": "\n".join(text for _, text in run)} for r, run in runs]


def _metadata(draft: Draft, form: ExportFormat) -> dict[str, Any]:
    turns = draft.turns
    levels = {level: {getattr(turn, level) for turn in turns} for level in SCOPE_LEVELS}
    return {
        "sources": [turn.id for turn in turns],
        **{level: found.pop() if len(found) == 1 else "" for level, found in levels.items()},
        "at": min(turn.at for turn in turns).isoformat(),
        "quality": draft.quality,
        **({"origin": draft.origin} if form == ExportFormat.PREFERENCE else {}),
    }


def _name(draft: Draft) -> str:
    """The id of its one memory, or a hash over the ids of several."""
    ids = [turn.id for turn in draft.turns]
    if len(ids) == 1:
        return ids[0]
    return hashlib.blake2b(json.dumps(ids).encode(), digest_size=16).hexdigest()
