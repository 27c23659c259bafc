"""The extractor that needs no model: patterns over sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_memory.facts import plain
from lance_memory.ingest.candidate import Candidate, Category, Claim
from lance_memory.ingest.extract.parting import clauses, parted
from lance_memory.ingest.extract.patterns import Book, Rule, book_of
from lance_memory.ingest.extract.periods import validity
from lance_memory.ingest.extract.protocol import Reading, speaks
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Passed

__all__ = ["Rules"]

_WORD: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_VAGUE: Final = frozenset(
    """
    it that this these those them they him her he she you your yours yourself there here one ones
    some something anything everything nothing someone everyone what how when why where whatever
    being so such same myself me us mine ours both all each nobody thing things stuff way
    """.split()  # noqa: SIM905 (a list of words reads better as text)
)
_HOLLOW: Final = frozenset("few lot bit couple little while change setback issue".split())  # noqa: SIM905
_POINTING: Final = frozenset("this that these those his her their its your such".split())  # noqa: SIM905
_LEADING: Final = re.compile(r"^(?:(?:the|a|an|my|our|some|to|very|really|just)\s+)+")
_TRAILING: Final = re.compile(
    r"(?:\s+(?:now|too|any ?more|any longer|again|also|though|lately|a lot|so much|very much"
    r"|as well|here|there|today|recently|already|myself|most|the most|more|best|and|the|a|to|of"
    r"|[-–—]))+$"
)
_EDGES: Final = " \t.,;:!?\"'()[]*_~“”…"
_POINTS: Final = -0.3
_OF_ONESELF: Final = re.compile(r"(?:I['’]?m|I am|[Mm]y name)\b")

_STANDS_ALONE: Final = 10
"""Characters; of a shorter clause the whole sentence is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Finds statements sentence by sentence, by patterns; English comes with the package.

    A candidate's content is the sentence as it was said, or the part of it that has a subject of
    its own; `actor` says who said it. Its claim is about "user", or about the actor by name where
    the message has one. What is denied or no longer so has a value that begins with "not ": "I
    stopped drinking coffee" says of the attribute "eats" the value "not coffee".

    Questions, hypotheses, quotes, what somebody else is said to have said, texts to be translated
    and sentences that point to what is not in them ("I love it!") are no statements.

    Takes time in proportion to the text.
    """

    sources: tuple[str | Path, ...] = ("en",)

    @property
    def book(self) -> Book:
        """The patterns; read when they are first used, and once."""
        return book_of(*self.sources)

    @classmethod
    def of(cls, *sources: str | Path) -> Rules:
        """With the patterns of languages of the package ("en") and of files of your own.

        A pattern of your own that backtracks without end takes time without end, in sentences of
        at most 1,000 characters.

        Raises:
            InvalidInputError: no such language, or a file that says what means nothing.
            NotFoundError: there is no such file.
        """
        book_of(*sources)
        return cls(sources=sources)

    def extract(self, conversation: Conversation, *, reading: Reading) -> Passed[Candidate]:
        """The candidates of all messages that are somebody's own word."""
        found: dict[tuple[str, Category, str], Candidate] = {}
        for place, message in enumerate(conversation.messages):
            if not speaks(message, conversation):
                continue
            event = ""
            for stated in self._statements(message.content):
                event = event or conversation.event(place, job=reading.job)
                key = (event, stated.category, stated.content)
                if key not in found:
                    found[key] = _candidate(stated, conversation, place, event, reading)
        return Passed(items=tuple(found.values()))

    def _statements(self, text: str) -> Iterator[_Statement]:
        refuse = self.book.refuse["task"]
        for place, sentence in enumerate(parted(text)):
            if place == 0 and refuse.search(sentence):
                return
            yield from self._of_sentence(" ".join(sentence.split()))

    def _of_sentence(self, sentence: str) -> Iterator[_Statement]:
        looked = sentence.replace("’", "'")
        words = frozenset(_WORD.findall(looked.casefold()))
        if asked := self._asked(sentence, looked, words):
            yield asked
            return
        if self.book.by_word.keys().isdisjoint(words):
            return
        parts = clauses(sentence)
        each = [self._best(part, part.replace("’", "'"), words) for part in parts]
        stated = _with_openings(parts, each)
        if len(stated) < 2:
            whole = each[0] if len(parts) == 1 else self._best(sentence, looked, words)
            stated = [whole] if whole else []
        if stated and not self._is_no_statement(looked):
            for one in stated:
                short = len(one.content) < _STANDS_ALONE
                yield replace(one, content=sentence) if short else one

    def _asked(self, sentence: str, looked: str, words: frozenset[str]) -> _Statement | None:
        """What somebody asks in so many words to be remembered."""
        for remember in self.book.remember:
            if remember.words.isdisjoint(words) or looked.endswith("?"):
                continue
            if found := remember.pattern.search(looked):
                rest = sentence[found.start("rest") :]
                known = self._best(rest, rest.replace("’", "'"), words)
                return _Statement(
                    content=rest,
                    category=known.category if known else Category.FACT,
                    why=known.why if known else "rule:remember",
                    claim=known.claim if known else None,
                    attribute=known.attribute if known else "",
                    importance=max(remember.importance, known.importance if known else 0.0),
                    confidence=remember.confidence,
                )
        return None

    def _best(self, content: str, looked: str, words: frozenset[str]) -> _Statement | None:
        """What the rule says that is surest of the sentence; of equals the first."""
        by_word = self.book.by_word
        places = sorted({place for word in words for place in by_word.get(word, ())})
        best: _Statement | None = None
        for place in places:
            rule = self.book.rules[place]
            if best and rule.confidence <= best.sure:
                continue
            if found := _found(rule, looked):
                stated = self._stated(rule, found, content, looked)
                best = stated or best
        return best

    def _stated(
        self, rule: Rule, found: re.Match[str], content: str, looked: str
    ) -> _Statement | None:
        groups = found.groupdict()
        given = groups.get("value") or ""
        if "value" in groups and _is_vague(given):
            return None
        before = looked[: found.start()]
        if before.count('"') % 2 or before.count("“") > before.count("”"):
            return None
        if before and self.book.refuse["reported"].search(before):
            return None
        confidence = rule.confidence + self._nuance(rule, looked)
        if given.split(" ", 1)[0].casefold() in _POINTING:
            confidence += _POINTS
        attribute = rule.attribute.replace("{what}", plain(groups.get("what") or "").strip())
        return _Statement(
            content=content,
            category=rule.category,
            why=f"rule:{rule.name}",
            claim=_claim(rule, groups, attribute) if rule.claim else None,
            attribute=attribute,
            importance=rule.importance,
            confidence=min(max(round(confidence, 4), 0.0), 1.0),
            sure=rule.confidence,
        )

    def _nuance(self, rule: Rule, looked: str) -> float:
        return sum(
            nuance.confidence
            for nuance in self.book.nuances
            if (not nuance.only or rule.attribute in nuance.only) and nuance.pattern.search(looked)
        )

    def _is_no_statement(self, looked: str) -> bool:
        refuse = self.book.refuse
        return bool(refuse["question"].search(looked) or refuse["hypothetical"].search(looked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """What a sentence states; the claim's subject is empty where it is the speaker.

    `sure` is the confidence of the rule before anything shifted it.
    """

    content: str
    category: Category
    why: str
    claim: Claim | None
    attribute: str
    importance: float
    confidence: float
    sure: float = 1.0


def _found(rule: Rule, looked: str) -> re.Match[str] | None:
    for pattern in rule.patterns:
        if found := pattern.search(looked):
            return found
    return None


def _with_openings(parts: Sequence[str], each: Sequence[_Statement | None]) -> list[_Statement]:
    """The statements of clauses; who says "I'm Mara, I live in Porto" is told with the second."""
    stated, opening = [], ""
    for part, one in zip(parts, each, strict=True):
        if one is not None:
            stated.append(replace(one, content=f"{opening}{one.content}"))
        opening = f"{part}, " if one is None and _OF_ONESELF.match(part) else ""
    return stated


def _is_vague(value: str) -> bool:
    """Whether the sentence does not say what it is about."""
    words = _WORD.findall(value.casefold())
    if not words or value.startswith(("-", "–", "—")):
        return True
    if _folded(value) in _HOLLOW:
        return True
    pointing = words[0] in _POINTING and len(words) > 1 and words[1] not in _VAGUE
    return words[0] in _VAGUE and not pointing


def _claim(rule: Rule, groups: dict[str, str | None], attribute: str) -> Claim | None:
    value = _folded(groups.get("value") or "")
    if not value:
        return None
    denied = rule.negated or bool(groups.get("neg"))
    return Claim(
        subject=plain(groups.get("subject") or ""),
        attribute=attribute,
        value=f"not {value}" if denied else value,
        single=rule.single,
    )


def _folded(value: str) -> str:
    folded = " ".join(plain(value).strip(_EDGES).split())
    folded = _TRAILING.sub("", _LEADING.sub("", folded, count=1) if folded else folded)
    return folded.strip(_EDGES)


def _candidate(
    one: _Statement, conversation: Conversation, place: int, event: str, reading: Reading
) -> Candidate:
    message, at = conversation.messages[place], reading.when(conversation, place)
    start, end = validity(one.content, at=at)
    return Candidate(
        content=one.content,
        category=one.category,
        importance=one.importance,
        confidence=one.confidence,
        scope=conversation.scope,
        event=event,
        event_at=at,
        role=message.role,
        actor=message.actor,
        seq=message.seq,
        claim=_about(one.claim, message.actor),
        tags=(one.attribute,) if one.attribute and one.claim is None else (),
        valid_from=start,
        valid_to=end,
        source=conversation.source,
        domain=conversation.domain,
        why=one.why,
    )


def _about(claim: Claim | None, actor: str) -> Claim | None:
    """The claim with the speaker as its subject, where it has none."""
    if claim is None or claim.subject:
        return claim
    return Claim(
        subject=plain(actor).strip() or "user",
        attribute=claim.attribute,
        value=claim.value,
        single=claim.single,
    )
