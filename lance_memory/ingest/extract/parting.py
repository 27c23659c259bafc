"""A message as statements of its speaker: what is quoted, coded or greeted is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lance_memory.facts import sentences

__all__ = ["clauses", "parted"]

LONGEST: Final = 1_000
"""Characters; what is longer is no sentence, and would not be kept."""

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_SHORT: Final = re.compile(r"(?:^|[\s(])(?:[A-Z]|Dr|Mr|Mrs|Ms|St|Jr|Sr|Prof|vs|No|approx|Mt|Ft)\.$")
_OPENING: Final = re.compile(
    r"(?:(?:[-*•–—]|\d{1,2}[.)])\s+)?"
    r"(?:(?:hey|hi|hello|yeah|yep|yes|yup|yea|no|nope|nah|oh|ooh|ah|aw+|wow|well|so|sure|ok(?:ay)?"
    r"|thanks|thank you|haha|by the way|btw|also|plus|and|but|actually|honestly|anyway|anyways"
    r"|lately|absolutely|definitely|totally|right|true|cool|great|nice|awesome|hmm|man|true)"
    r"(?:,? (?:again|so much|a lot|then|(?-i:[A-Z])\w+))?(?:[,!.…]+|\s[-–—]+)\s*){1,3}",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"(?:,?\s+(?:and|but|so)|[,;]|\s[-–—]+)\s+(?=(?:I|I'm|I've|I'd|my|we|we're|we've)\s)",
    re.IGNORECASE,
)

_LEAST: Final = 6

_VERB: Final = r"(?:live|work|study|play|speak|own|teach|love|like|enjoy|hate)"
_PLAIN: Final = re.compile(rf"I (?:really |also |currently |now )?{_VERB}\b")
_ELLIPSIS: Final = re.compile(rf",?\s+and\s+(?={_VERB}\s)")


def parted(text: str) -> Iterator[str]:
    """The sentences that may state something, as they were said, without "Yeah, " and the like.

    Code, and lines that quote with ">", are left out.
    """
    if "```" in text or ">" in text:
        text = _CODE.sub("\n", text)
    for sentence in _whole(sentences(text)):
        if len(sentence) <= LONGEST:
            opening = _OPENING.match(sentence)
            yield sentence[opening.end() :] if opening else sentence


def clauses(sentence: str) -> list[str]:
    """The parts of a sentence that say something each: "I ski, and my wife skates" is two.

    So is "I live in Rome and work as a vet": the second gets the "I" that it leaves out. Else what
    changes one of the facts would hide the other.
    """
    parts = [part.strip(" ,;") for part in _CLAUSE.split(sentence)]
    told = [one for part in parts for one in _of_one_subject(part)]
    return told if len(told) > 1 and all(len(part) >= _LEAST for part in told) else [sentence]


def _of_one_subject(part: str) -> list[str]:
    """Two statements of one that says "I live in Rome and work as a vet"."""
    if not _PLAIN.match(part) or " to " in part:
        return [part]
    first, *rest = _ELLIPSIS.split(part)
    return [first, *(f"I {one}" for one in rest)]


def _whole(parts: list[str]) -> Iterator[str]:
    """Sentences that were parted after "Dr." put together again."""
    held = ""
    for part in parts:
        joined = f"{held} {part}" if held else part
        if joined.endswith(".") and len(joined) <= LONGEST and _SHORT.search(joined[-8:]):
            held = joined
            continue
        held = ""
        yield joined
    if held:
        yield held
