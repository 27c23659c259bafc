"""How much an interaction matters: the protocol, and the default that needs no model.

    importance = base + Σ weight · signal, cut to 0..1

Each signal is 0..1, and found by English patterns; a text in another language has only those of
numbers, names and length, and the marks of questions. The weights are chosen by hand so that small
talk stays below 0.2, a plain statement lies near 0.3, and what is asked to be remembered above 0.6;
they were not fitted to anything. An assessor of your own takes the place of all of it.

Small talk is less than what matters little: an exchange in which nothing is said that anybody could
want to know again. See `Heuristic.is_small_talk`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Protocol

from lance_memory.facts import STOP, plain, sentences, tokens
from lance_memory.ingest import Message, Role
from lance_memory.record.arguments import real

__all__ = ["Heuristic", "ImportanceAssessor", "Signals", "says_nothing"]

_MANY_SPECIFICS: Final = 4
_MANY_WORDS: Final = 60


class ImportanceAssessor(Protocol):
    """Says how much an interaction matters."""

    def __call__(self, messages: Sequence[Message], /) -> float:
        """0..1 for the messages of one interaction, in order; the same for the same messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What was found in one interaction, each 0..1.

    `decided` and `failed` are about every message; the others about what people say, or, where no
    people speak, about every message too.

    Attributes:
        asked: a statement says "remember", "important", "always", "never", "make sure", ...
        decided: something was decided, agreed, promised or planned, or has a deadline.
        failed: an error, a failure, a bug, something broken.
        personal: a statement in the first person: "I am", "I live", "my ... is", ...
        specific: different numbers, dates and names, up to four.
        length: words, up to sixty.
        question: the share of sentences that ask.
        idle: nothing but greetings, thanks and assent, in what people say.
    """

    asked: float = 0.0
    decided: float = 0.0
    failed: float = 0.0
    personal: float = 0.0
    specific: float = 0.0
    length: float = 0.0
    question: float = 0.0
    idle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heuristic:
    """The default assessor; see the formula in `agent.importance`.

    Attributes:
        base: of an interaction without any signal, 0..1.
        asked: weight of that signal, -1..1, and so are the others; see `Signals`.
    """

    base: float = 0.25
    asked: float = 0.4
    decided: float = 0.2
    failed: float = 0.15
    personal: float = 0.2
    specific: float = 0.2
    length: float = 0.1
    question: float = -0.1
    idle: float = -0.2

    def __post_init__(self) -> None:
        real("base", self.base, least=0, most=1)
        for signal in fields(Signals):
            real(signal.name, getattr(self, signal.name), least=-1, most=1)

    def __call__(self, messages: Sequence[Message], /) -> float:
        """The importance, 0..1; of nothing said, 0."""
        if not any(message.content.strip() for message in messages):
            return 0.0
        found = self.signals(messages)
        parts: list[float] = [
            getattr(self, f.name) * getattr(found, f.name) for f in fields(Signals)
        ]
        return min(1.0, max(0.0, self.base + sum(parts)))

    def is_small_talk(self, messages: Sequence[Message], *, before: str = "") -> bool:
        """Whether nothing is said in an exchange, such as thanks and "you are welcome" alone.

        Every message is nothing but greetings, thanks and "ok", whoever says it. It is something
        where a message asks, follows a question, says yes, no or please, or has a sign that stands
        for a word; and so is all that is said in words that are not known here, in any language.

        Args:
            messages: of the exchange, in order.
            before: what was said before it.
        """
        last = before
        for message in messages:
            if _asks(last) or not _says_nothing(message.content):
                return False
            last = message.content
        return bool(messages)

    def signals(self, messages: Sequence[Message]) -> Signals:
        """What the importance is made from."""
        people = [message.content for message in messages if message.role == Role.USER]
        told = people or [message.content for message in messages]
        said = [sentence for text in told for sentence in sentences(text)]
        statements = "\n".join(sentence for sentence in said if not _asks(sentence))
        everything = "\n".join(message.content for message in messages)
        words = [word for text in told for word in tokens(text)]
        return Signals(
            asked=_found(_ASKED, statements),
            decided=_found(_DECIDED, everything),
            failed=_found(_FAILED, everything),
            personal=_found(_PERSONAL, statements),
            specific=min(1.0, len(_specifics(said)) / _MANY_SPECIFICS),
            length=min(1.0, len(words) / _MANY_WORDS),
            question=sum(map(_asks, said)) / len(said) if said else 0.0,
            idle=float(bool(words) and all(plain(word) in _IDLE for word in words)),
        )


def says_nothing(text: str) -> bool:
    """Whether a text tells nothing by itself, as "Noted.", "Sure!" and "I will." do not.

    It has greetings, thanks and assent alone, or, but for assent and thanks, no content word.
    """
    words = [plain(word) for word in tokens(text)]
    return all(word in _IDLE for word in words) or all(word in _EMPTY for word in words)


def _found(pattern: re.Pattern[str], text: str) -> float:
    return float(pattern.search(text.replace("’", "'")) is not None)


def _says_nothing(text: str) -> bool:
    words = {plain(word) for word in tokens(text)}
    if any(unicodedata.category(character) in _SIGNS for character in text) or _asks(text):
        return False
    return bool(words) and words <= _COURTESY


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"')]}*_~ ").endswith(("?", "？"))


def _specifics(said: Sequence[str]) -> set[str]:
    """Different numbers, and words with a capital that do not begin a sentence."""
    return {
        word.casefold()
        for sentence in said
        for place, word in enumerate(tokens(sentence))
        if word[0].isdigit() or word[-1].isdigit() or (place and _is_name(word))
    }


def _is_name(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and plain(word) not in STOP


def _any_of(*forms: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(forms)})\b", re.IGNORECASE)


_ASKED: Final = _any_of(
    *("remember", "don't forget", "do not forget", "important(?:ly)?", "always", "never", "must"),
    *("make sure", "keep in mind", "note that", "take note", "from now on", "in future"),
    *("in the future", "be careful", "critical", "crucial", "essential"),
)
_DECIDED: Final = _any_of(
    *("decid(?:e|ed|es|ing)", "decision", "agreed", "we agree", "(?:we|i)'?ll go with"),
    *("going with", "settled on", "chose", "chosen", "approved", "signed off", "promise[ds]?"),
    *("commit(?:ted)? to", "plan(?:ning)? to", "planned to", "deadline", "due (?:on|by|date)"),
    "scheduled",
)
_FAILED: Final = _any_of(
    *("errors?", "fail(?:s|ed|ing|ures?)?", "exceptions?", "traceback", "crash(?:es|ed|ing)?"),
    *("bugs?", "broken", "broke", "timed out", "time-?outs?", "denied", "rejected", "outage"),
    *("incident", "(?:does|did)(?:n't| not) work", "regressions?"),
)
_PERSONAL: Final = _any_of(
    *("i am", "i'm", "i was", "i've", "i have", "i had", "i live", "i work", "i study", "i moved"),
    "i (?:(?:really|don't|do not) )?(?:like|love|hate|enjoy|prefer|need|want|use|own|eat|drink)",
    *("i can't", "i cannot", r"my (?:[\w'-]+ ){1,4}(?:is|are|was|were|has|have)", "call me"),
    *("we live", "we moved", "we are", "we're", "we have", "we use", "we need", "we want"),
)
_IDLE: Final = frozenset(
    """
    hi hello hey hiya yo morning afternoon evening good night bye goodbye later thanks thank thx
    cheers you ok okay k sure yes yeah yep yup no nope nah please great nice cool perfect awesome
    lovely fine alright right noted understood got it lol haha hm hmm welcome wow so much very and
    well there see ya
    """.split()  # noqa: SIM905 (a list of words reads better as text)
)
_ASSENT: Final = frozenset(
    "ok okay k yeah yep yup thanks thank thx cheers noted understood".split()  # noqa: SIM905
)
_EMPTY: Final = STOP | _ASSENT
"""No content words, or, beside others, as good as none."""

_COURTESY: Final = (_IDLE | {"you're", "welcome", "lot", "a"}) - {
    *("yes", "yeah", "yep", "yup", "no", "nope", "nah", "sure", "please", "right", "alright"),
    *("fine", "later", "perfect"),
}
"""Words of which nothing is said; those of them that may answer something are left out."""

_SIGNS: Final = ("So", "Sm", "Sc", "Sk")
"""Categories of characters such as emoji and currencies, which no token has."""
