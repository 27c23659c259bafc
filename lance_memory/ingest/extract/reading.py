"""Which parts of a conversation are somebody's own words, and may be remembered."""

from __future__ import annotations

import re
from typing import Final

from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.extract.patterns import Book
from lance_memory.ingest.message import Conversation

__all__ = ["MARKED", "readable"]

MARKED: Final = re.compile(
    r"<(?P<mark>(?:recalled[-_ ])?(?:memory|memories|recalled)[\w-]{0,20})\b[^<>]{0,400}>",
    re.IGNORECASE,
)
"""How recalled text begins, where it is delimited as data."""

_SUSPECT: Final = re.compile(
    r"memory|memories|recalled|what (?:i|we) (?:know|remember)", re.IGNORECASE
)


def readable(
    conversation: Conversation, *, book: Book, job: str
) -> tuple[Conversation, list[Decision]]:
    """The conversation without what was recalled from the store, and what was said off the record.

    What stands between recall delimiters, and after a heading such as "Relevant memories:" up to
    an empty line, goes (C07). A message that asks not to be remembered becomes empty. Each message
    that lost something has a decision.
    """
    contents: list[str] = []
    decisions: list[Decision] = []
    for place, message in enumerate(conversation.messages):
        text, reason = _own(message.content, book)
        contents.append(text)
        if reason:
            event = conversation.event(place, job=job)
            decisions.append(
                Decision(step="extract", verdict="discarded", reason=reason, event=event)
            )
    if not decisions:
        return conversation, []
    return conversation.with_contents(tuple(contents)), decisions


def _own(text: str, book: Book) -> tuple[str, str]:
    """What is left of a text, and why the rest went."""
    if book.keep["off_record"].search(text):
        return "", "never_store"
    if not _SUSPECT.search(text):
        return text, ""
    left = _without_headed(_without_marked(text), book)
    return left, "recalled" if left != text else ""


def _without_marked(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for opening in MARKED.finditer(text):
        if opening.start() < done:
            continue
        closing = text.find(f"</{opening['mark']}", opening.end())
        end = text.find(">", closing) + 1 if closing >= 0 else 0
        pieces.append(text[done : opening.start()])
        done = end or len(text)  # never closed: all that follows may be recalled
        if done == len(text):
            break
    return "".join([*pieces, text[done:]])


def _without_headed(text: str, book: Book) -> str:
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        heading = len(line) < 200 and book.refuse["recalled"].search(line) is not None
        inside = heading or (inside and bool(line.strip()))
        if not inside:
            kept.append(line)
    return "\n".join(kept)
