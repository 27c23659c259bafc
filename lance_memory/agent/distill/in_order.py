"""The transform of snapshots: what was said, in the order of the session, and by whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lance_memory.agent.importance import Heuristic
from lance_memory.curate import Derived, extractive
from lance_memory.facts import said, sentences, tokens
from lance_memory.ingest import Message
from lance_memory.record.memory import Kind, Memory

__all__ = ["gathered", "in_order", "speakers"]

_SIGNALS: Final = Heuristic().signals
_UNTOLD: Final = re.compile(r"[\s:.!?。！？]+")
"""What would end a name, or a sentence in it."""

_CLOSING: Final = "\"'”’»)]}*_"
_ENDS: Final = (*".!?…。！？:：;；,，",)


def in_order(cluster: Sequence[Memory]) -> Derived:
    """What memories say, oldest first: each sentence that no other one says as well.

    Where several speak, each sentence begins with the name of who said it, or the role. Sentences
    without an end get one. What says nothing ("Ok.", "Noted.", see `Signals.idle`) is left out,
    unless it answers a question. Facts come in where they say more than the messages.
    """
    named = speakers(cluster)
    kept: dict[tuple[int, int], str] = {}
    known: list[_Said] = []
    before = ""
    for place in sorted(range(len(cluster)), key=lambda n: cluster[n].kind is not Kind.EPISODIC):
        memory = cluster[place]
        name = _speaker(memory) if named else ""
        answers = memory.kind is Kind.EPISODIC and _asks(before)
        before = memory.content
        for number, sentence in enumerate(sentences(memory.content)):
            one = _Said.of(sentence)
            if one.idle and not (answers and not number):
                continue
            if one.idle or not any(one.is_in(other, memory.kind) for other in known):
                kept[place, number] = f"{name}: {_ended(sentence)}" if name else _ended(sentence)
                known.append(one)
    if not kept:
        return extractive(cluster)
    return Derived(content="\n".join(kept[key] for key in sorted(kept)))


def speakers(cluster: Sequence[Memory]) -> tuple[str, ...]:
    """Who speaks, by name or role; nobody, where it is one alone."""
    found = tuple(dict.fromkeys(name for memory in cluster if (name := _speaker(memory))))
    return found if len(found) > 1 else ()


def gathered(text: str, names: Sequence[str]) -> str:
    """The text as lines; what one of the names says without a break is one line, named once."""
    lines: list[tuple[str, list[str]]] = []
    for part in sentences(text):
        name = next((name for name in names if part.startswith(f"{name}: ")), "")
        words = part.removeprefix(f"{name}: ") if name else part
        if lines and lines[-1][0] == name:
            lines[-1][1].append(words)
        else:
            lines.append((name, [words]))
    return "\n".join(f"{name}: {' '.join(of)}" if name else " ".join(of) for name, of in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A sentence: every word, those that tell something, whether it denies, or says nothing."""

    every: frozenset[str]
    words: frozenset[str]
    negated: bool
    idle: bool

    @classmethod
    def of(cls, sentence: str) -> _Said:
        words, negated = said(sentence)
        empty = not (words or negated)
        return cls(
            every=frozenset(map(str.casefold, tokens(sentence))),
            words=words,
            negated=negated,
            idle=empty or bool(_SIGNALS([Message(content=sentence)]).idle),
        )

    def is_in(self, other: _Said, kind: Kind) -> bool:
        """Whether another one says it too: a message in its words, a fact in what they tell."""
        told = self.every <= other.every if kind is Kind.EPISODIC else self.words <= other.words
        return told and self.negated is other.negated


def _asks(text: str) -> bool:
    return text.rstrip(f" \n{_CLOSING}").endswith(("?", "？"))


def _ended(sentence: str) -> str:
    bare = sentence.rstrip(_CLOSING)
    return sentence if bare.endswith(_ENDS) else f"{sentence}."


def _speaker(memory: Memory) -> str:
    return _UNTOLD.sub(" ", memory.actor or memory.role).strip()
