"""What a statement is beside another one: by rules, without a model."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from lance_memory.errors import InvalidInputError, LanceMemoryError
from lance_memory.facts import content_words, dropped
from lance_memory.facts.distinct import conflict, facts
from lance_memory.ingest.candidate import Resolution
from lance_memory.ingest.resolve.statement import Statement

__all__ = ["STANDARD", "Careful", "Classifier", "Judgement", "Standard"]

_LOG: Final = logging.getLogger(__name__)

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a statement is beside an earlier one.

    Attributes:
        resolution: NEW where the two have nothing to do with each other.
        reason: a name that can be counted, such as "changed".
        clash: of UPDATE: nothing says that something changed, so which of the two is true is open,
            and `Routing` says who decides.
        timeless: it holds whichever of the two was said first.
    """

    resolution: Resolution
    reason: str
    clash: bool = False
    timeless: bool = False


class Classifier(Protocol):
    """Compares two statements of one tenant, user, agent and kind. Pure; safe to share.

    It is asked about statements with claims about one topic, with the same content (of whatever
    kinds), or that are near: by cosine, or by their words where one has no vector.

    One that has a method `may_repeat(earlier, later)` spares itself the pairs for which that is
    False: it would not give them REJECT with `timeless`. One that inherits it, and is called in its
    own way, is asked about all pairs.

    Where it fails, `STANDARD` is asked instead, and `degraded` says so. It may raise our own errors
    on purpose, such as an ExtractionError that passes: nothing is written then.
    """

    def __call__(self, earlier: Statement, later: Statement, *, cosine: float | None) -> Judgement:
        """What `later` is beside `earlier`.

        REJECT: it says nothing that `earlier` does not; UPDATE: it takes its place; MERGE: both
        say the same, each with details of its own; KEEP_BOTH: both are true; NEW: unrelated.

        Args:
            earlier: what was said first.
            later: what was said after it.
            cosine: of their vectors, -1..1; None where one has none.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """By claims where both have one about the same topic; else by likeness, and by facts.

    The bands are measured on `tests/facts/paraphrases.json` with MiniLM-L6-v2; see
    design/024-resolution.md. Numbers, names, negations and opposites that differ keep two texts
    apart, however near they are (`facts/distinct.py`).

    Attributes:
        same: from this cosine on, two texts without a conflict of facts say the same.
        near: from this cosine on, a text that announces a change replaces one it conflicts with.
        same_words: the share of common words that stands for `same` where there is no vector.
        near_words: the one that stands for `near`.

    Raises:
        InvalidInputError: a band is not within 0..1, or `near` is above `same`.
    """

    same: float = 0.84
    near: float = 0.70
    same_words: float = 0.80
    near_words: float = 0.50

    def __post_init__(self) -> None:
        for near, same in ((self.near, self.same), (self.near_words, self.same_words)):
            if not 0 <= near <= same <= 1:
                raise InvalidInputError(
                    f"bands from {near} and {same}; they are within 0..1, near not above same"
                )

    def __call__(self, earlier: Statement, later: Statement, *, cosine: float | None) -> Judgement:
        """See `Classifier`."""
        if _disjoint(earlier, later):
            return Judgement(resolution=Resolution.KEEP_BOTH, reason="another_time", timeless=True)
        if earlier.topic is not None and later.topic is not None:
            if earlier.topic != later.topic:
                return Judgement(resolution=Resolution.NEW, reason="unrelated", timeless=True)
            return _of_claims(earlier, later)
        return self._of_texts(earlier, later, cosine)

    def may_repeat(self, earlier: Statement, later: Statement) -> bool:
        """Whether `later` may say nothing new at all; asked before the two are compared."""
        same_topic = earlier.topic is not None and earlier.topic == later.topic
        return not same_topic or earlier.folded == later.folded

    def _of_texts(self, earlier: Statement, later: Statement, cosine: float | None) -> Judgement:
        if earlier.content == later.content:
            return _SAID
        likeness = _common(earlier.content, later.content) if cosine is None else cosine
        same, near = (
            (self.same_words, self.near_words) if cosine is None else (self.same, self.near)
        )
        if likeness < near:
            return Judgement(resolution=Resolution.NEW, reason="unrelated", timeless=True)
        apart = conflict(*facts([earlier.content, later.content]))
        if apart is not None:
            if later.announced:
                return Judgement(resolution=Resolution.UPDATE, reason="changed")
            return Judgement(resolution=Resolution.KEEP_BOTH, reason="distinct")
        if likeness < same:
            return Judgement(resolution=Resolution.NEW, reason="unlike", timeless=True)
        return _of_details(earlier.content, later.content)


STANDARD = Standard()


class Careful:
    """A classifier, and the standard one where that fails: it is anybody's code."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._may_repeat = _quick_no(classifier)
        self.failed: Counter[str] = Counter()

    def __call__(self, earlier: Statement, later: Statement, *, cosine: float | None) -> Judgement:
        """See `Classifier`.

        Raises:
            LanceMemoryError: the classifier raises one.
        """
        try:
            judged: object = self._classifier(earlier, later, cosine=cosine)
        except LanceMemoryError:  # raised on purpose
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is; its words may quote
            return self._instead(type(error).__name__, earlier, later, cosine)
        if isinstance(judged, Judgement):
            return judged
        return self._instead(f"gave {type(judged).__name__}", earlier, later, cosine)

    def may_repeat(self, earlier: Statement, later: Statement) -> bool:
        """Whether `later` may say nothing new; True, where the classifier cannot tell."""
        if self._may_repeat is None:
            return True
        try:
            return bool(self._may_repeat(earlier, later))
        except Exception:  # noqa: BLE001 - it is asked in full, and fails there
            return True

    @property
    def lacking(self) -> tuple[str, ...]:
        """What was done without, for `degraded`."""
        if not self.failed:
            return ()
        kinds = ", ".join(sorted(self.failed))
        return (f"resolve: the classifier failed ({kinds}); the standard rules judged instead",)

    def _instead(
        self, kind: str, earlier: Statement, later: Statement, cosine: float | None
    ) -> Judgement:
        if not self.failed[kind]:
            _LOG.warning("the classifier failed (%s); the standard rules judge instead", kind)
        self.failed[kind] += 1
        return STANDARD(earlier, later, cosine=cosine)


def _quick_no(classifier: Classifier) -> Callable[[Statement, Statement], bool] | None:
    """Its `may_repeat`, where it is of the class that also says how it is called, or of a later."""
    kinds = [vars(kind) for kind in type(classifier).__mro__]
    asked, called = (
        next((place for place, own in enumerate(kinds) if name in own), len(kinds))
        for name in ("may_repeat", "__call__")
    )
    found: Callable[[Statement, Statement], bool] | None
    found = getattr(classifier, "may_repeat", None) if asked <= called else None
    return found


_SAID = Judgement(resolution=Resolution.REJECT, reason="duplicate", timeless=True)


def _of_claims(earlier: Statement, later: Statement) -> Judgement:
    """Two claims about one topic: the first of these that holds."""
    same = later.folded == earlier.folded
    if same and earlier.denies == later.denies:
        return _of_details(earlier.content, later.content)
    update, reject = Resolution.UPDATE, Resolution.REJECT
    if same:
        return Judgement(resolution=update, reason="denied" if later.denies else "affirmed")
    mine, theirs = later.words, earlier.words
    rules = (
        (earlier.denies, update, "affirmed"),
        (later.denies, reject, "implied"),
        (bool(mine) and mine < theirs, reject, "less_detail"),
        (bool(theirs) and theirs < mine, update, "more_detail"),
        (later.announced, update, "changed"),
        (later.authority > earlier.authority, update, "more_authority"),
        (later.authority < earlier.authority, reject, "less_authority"),
    )
    for holds, resolution, reason in rules:
        if holds:
            return Judgement(resolution=resolution, reason=reason)
    return Judgement(resolution=update, reason="another_value", clash=True)


def _of_details(earlier: str, later: str) -> Judgement:
    """Two texts that say the same: which has numbers, names or dates that the other lacks."""
    more = bool(dropped([later], earlier).missing)
    less = bool(dropped([earlier], later).missing)
    if not more:
        return _SAID
    if less:
        return Judgement(resolution=Resolution.MERGE, reason="details_of_both", timeless=True)
    return Judgement(resolution=Resolution.UPDATE, reason="more_detail", timeless=True)


def _common(one: str, other: str) -> float:
    """The share of common words of all words of the two, 0..1."""
    a, b = content_words(one), content_words(other)
    return len(a & b) / len(a | b) if a | b else 0.0


def _disjoint(one: Statement, other: Statement) -> bool:
    """Whether one's validity ends before the other's begins, as was said of them."""
    spans = [(s.valid_from or _EARLIEST, s.valid_to or _LATEST) for s in (one, other)]
    (start, end), (begin, finish) = spans
    return end <= begin or finish <= start
