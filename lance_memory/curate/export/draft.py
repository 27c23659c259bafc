"""Examples before their texts are read: which memories make which part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from lance_memory.curate.export.frame import Turn
from lance_memory.curate.export.roles import ASSISTANT, USER, roles
from lance_memory.record.memory import State

__all__ = ["CHOSEN", "PROMPT", "REJECTED", "TEXT", "Draft", "chats", "pairs", "plain"]

TEXT, PROMPT, CHOSEN, REJECTED = "text", "prompt", "chosen", "rejected"
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One example.

    Attributes:
        turns: its memories, in the order of its text.
        parts: what each of them is: a chat role, or "text", "prompt", "chosen", "rejected".
        quality: the rating to go by, or None.
        prompt: a prompt that is no memory.
        origin: of a pair: "correction" or "rating".
    """

    turns: tuple[Turn, ...]
    parts: tuple[str, ...]
    quality: float | None
    prompt: str = ""
    origin: str = ""

    @property
    def group(self) -> int:
        """The number of its group: of a pair, that of the chosen answer."""
        owner = self.parts.index(CHOSEN) if CHOSEN in self.parts else 0
        return self.turns[owner].group

    @property
    def rank(self) -> tuple[bool, float, datetime]:
        """What makes it better than its near-duplicates: a higher rating, then being newer."""
        return (
            self.quality is not None,
            self.quality or 0.0,
            max(turn.at for turn in self.turns),
        )


def plain(turns: Iterable[Turn]) -> Iterator[Draft]:
    """One draft for each memory."""
    return (Draft(turns=(t,), parts=(TEXT,), quality=t.quality) for t in turns)


def chats(turns: Sequence[Turn], *, max_turns: int | None) -> Iterator[Draft]:
    """One draft for each conversation of a group, more where it is longer than `max_turns`.

    A conversation without an answer teaches nothing, and is left out. Its rating is that of its
    worst rated turn.
    """
    for conversation in _conversations(turns):
        said = roles(conversation)
        for start, end in _pieces(said, max_turns):
            part = tuple(conversation[start:end])
            if ASSISTANT in said[start:end]:
                rated = [t.quality for t in part if t.quality is not None]
                lowest = min(rated, default=None)
                yield Draft(turns=part, parts=tuple(said[start:end]), quality=lowest)


def pairs(
    turns: Sequence[Turn], corrected: Mapping[str, Sequence[Turn]], *, margin: float
) -> Iterator[Draft]:
    """The pairs whose chosen answer is in this group, in the order of the chosen ones.

    Args:
        turns: of one group.
        corrected: id of a memory → the hidden ones that it corrects, at whatever remove.
        margin: between the ratings of two answers.
    """
    found: dict[tuple[str, str], Draft] = {}
    for conversation in _conversations(turns, also_alone=True):
        asked = _prompts(conversation)
        for draft in (
            *_corrections(conversation, asked, corrected),
            *_rated(conversation, asked, margin),
        ):
            chosen, rejected = draft.turns[-2:]
            found.setdefault((chosen.id, rejected.id), draft)
    ordered = sorted(found.values(), key=lambda d: tuple(t.place for t in d.turns[-2:]))
    yield from ordered


def _conversations(turns: Sequence[Turn], *, also_alone: bool = False) -> Iterator[list[Turn]]:
    """The sessions of a group in order; of a group that is named, also what has no session."""
    found: dict[tuple[str, ...], list[Turn]] = {}
    for turn in turns:
        if also_alone or not turn.alone:
            found.setdefault((turn.user, turn.agent, turn.session, turn.alone), []).append(turn)
    return iter(found.values())


def _pieces(said: Sequence[str], most: int | None) -> Iterator[tuple[int, int]]:
    """Where a conversation is cut: each piece has at most as many messages.

    A message is a run of turns of one role. A cut is made before the last question that fits, so
    that answers stay with what they answer; before any message only where no question fits.
    """
    starts = [i for i, role in enumerate(said) if i == 0 or role != said[i - 1]]
    if most is None or len(starts) <= most:
        yield 0, len(said)
        return
    begin = 0
    while begin < len(starts):
        end = min(begin + most, len(starts))
        if end < len(starts):
            questions = [i for i in range(begin + 1, end + 1) if said[starts[i]] == USER]
            end = questions[-1] if questions else end
        yield starts[begin], starts[end] if end < len(starts) else len(said)
        begin = end


def _prompts(conversation: Sequence[Turn]) -> dict[str, Turn]:
    """Id → the nearest earlier turn of another role, for the turns that have one."""
    found: dict[str, Turn] = {}
    said = roles(conversation)
    runs = groupby(zip(conversation, said, strict=True), key=itemgetter(1))
    before: Turn | None = None
    for _, run in runs:
        members = [turn for turn, _ in run]
        if before is not None:
            found.update({turn.id: before for turn in members})
        before = next((t for t in reversed(members) if not t.hidden), before)
    return found


def _corrections(
    conversation: Sequence[Turn],
    asked: Mapping[str, Turn],
    corrected: Mapping[str, Sequence[Turn]],
) -> Iterator[Draft]:
    for chosen in conversation:
        for old in corrected.get(chosen.id, ()):
            if old.content_hash != chosen.content_hash:
                first = min(old, chosen, key=lambda t: t.place)
                yield _pair(asked.get(first.id), chosen, old, origin="correction")


def _rated(
    conversation: Sequence[Turn], asked: Mapping[str, Turn], margin: float
) -> Iterator[Draft]:
    said = dict(zip((t.id for t in conversation), roles(conversation), strict=True))
    answers: dict[str, list[Turn]] = {}
    for turn in conversation:
        rated = turn.quality is not None and turn.state == State.ACTIVE
        if rated and said[turn.id] == ASSISTANT and turn.id in asked:
            answers.setdefault(asked[turn.id].content_hash, []).append(turn)
    for group in answers.values():
        best = max(group, key=lambda t: (t.quality or 0.0, t.at, t.id))
        for worse in group:
            ahead = round((best.quality or 0.0) - (worse.quality or 0.0), _DIGITS)
            if ahead >= margin and worse.content_hash != best.content_hash:
                yield _pair(asked[worse.id], best, worse, origin="rating")


def _pair(prompt: Turn | None, chosen: Turn, rejected: Turn, *, origin: str) -> Draft:
    draft = Draft(
        turns=(chosen, rejected),
        parts=(CHOSEN, REJECTED),
        quality=chosen.quality,
        prompt=chosen.key or "",
        origin=origin,
    )
    if prompt is None or prompt.id in (chosen.id, rejected.id):
        return draft
    return replace(draft, turns=(prompt, *draft.turns), parts=(PROMPT, *draft.parts), prompt="")
