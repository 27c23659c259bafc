"""Education: exams, scores, grades and subjects of students, as typed metadata."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from lance_memory.ingest.overlay.protocol import Additions
from lance_memory.ingest.overlay.reading import read, under
from lance_memory.record.memory import Memory

__all__ = ["Education"]

_EXAMS: Final = (
    r"[LP]?SAT|ACT|GRE|GMAT|MCAT|TOEFL|IELTS|GCSEs?|AP|IB|Abitur|ENEM"
    r"|A-[Ll]evels?|A [Ll]evels|A Level"  # "A level" may go on with "of detail"
)
_SUBJECTS: Final = (
    r"math(?:s|ematics)?|algebra|calculus|geometry|statistics|physics|chemistry|biology|history"
    r"|geography|english|literature|french|german|spanish|latin|music|economics|computer science"
)
_TESTS: Final = r"exams?|tests?|quiz(?:zes)?|finals?|midterms?|essays?|assignments?|papers?"
_LESSONS: Final = (
    rf"{_TESTS}|class(?:es)?|courses?|lessons?|homework|teachers?|tutors?|degree|major"
)
_WHOSE: Final = r"(?:(?:the|my|his|her|their|our|an?|this|that|last)\s+)?"
_REACHED: Final = (
    r"\b(?:scored|received|earned|achieved|got|(?:score|result|mark|grade)s?\s+(?:of|is|was))"
    r"\s+(?:an?\s+|about\s+)?"
)
_STUDIED: Final = (
    r"\b(?:study|studies|studying|learn|learns|learning|teach|teaches|takes|taking|aced|tutored in"
    r"|(?:fail|pass)(?:s|es|ed|ing)?|struggl(?:es?|ing) with|(?:good|bad|best) at|weak in"
    r"|(?:majors?|majoring|degree|grades?|marks?) in|subject is|(?:on|for|in)\s+(?:my|his|her|the))"
)

_EXAM: Final = re.compile(rf"\b({_EXAMS})\b")
_GRADE: Final = re.compile(
    r"\b(?:in|start(?:s|ed|ing)?|enter(?:s|ed|ing)?|into)\s+(?:the\s+)?"
    r"(?:(1[0-3]|[1-9])(?:st|nd|rd|th)\s+grade(?!\s+of\b)|grade\s+(1[0-3]|[1-9])(?=\s*(?:[.,;!?]|$)))",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    rf"\b({_SUBJECTS})\s+(?:{_LESSONS})\b|{_STUDIED}\s+({_SUBJECTS})\b(?!\s+(?:of|to|with)\b)",
    re.IGNORECASE,
)
_SCORE: Final = (
    # 92 %, 18/20, 18 out of 20
    re.compile(
        rf"{_REACHED}(\d{{1,4}}(?:\.\d+)?)\s?(%|(?:/|out\s+of)\s?\d{{1,4}}(?![\d/]))"
        r"(?!\s+(?:off|discount|raise|bonus|refund)\b)",
        re.IGNORECASE,
    ),
    # 1450 on the SAT; 7 points
    re.compile(
        rf"{_REACHED}(\d{{1,4}}(?:\.\d+)?)()(?=\s+(?:points?|marks?)\b|\s+(?:on|in|at|for)\s+{_WHOSE}"
        rf"(?:\w+\s+)?(?:(?-i:{_EXAMS})|{_SUBJECTS}|{_TESTS})\b)",
        re.IGNORECASE,
    ),
    # my SAT score was 1450
    re.compile(
        rf"\b(?:(?-i:{_EXAMS})|{_SUBJECTS}|{_TESTS})\s+(?:score|result|mark|grade)\s+(?:of|is|was)\s+"
        r"(?:an?\s+)?(\d{1,4}(?:\.\d+)?)()(?![\d%/]|\.\d|\s?[-–:]\s?\d|\s+to\s)",
        re.IGNORECASE,
    ),
)
_SCHOOL: Final = re.compile(rf"\b(?:(?-i:{_EXAMS})|{_SUBJECTS}|{_LESSONS})\b", re.IGNORECASE)
_IN_FULL: Final = {"math": "mathematics", "maths": "mathematics"}


class Education:
    """Adds `metadata["education"]`: exam, score, out_of, grade and subject, where they stand.

    Score, out_of and grade are numbers: of "18/20" 18 and 20, of "92 %" 92 and 100.
    """

    name = "education"

    def additions(self, memories: Sequence[Memory], *, now: datetime) -> Additions:  # noqa: ARG002
        """See `Overlay.additions`."""
        return Additions(metadata=under(self.name, memories, [_told(m.content) for m in memories]))


def _told(text: str) -> dict[str, Any]:
    found: dict[str, Any] = read(text, {"exam": _EXAM, "grade": _GRADE, "subject": _SUBJECT})
    if "grade" in found:
        found["grade"] = int(found["grade"])
    if "subject" in found:
        subject = found["subject"].lower()
        found["subject"] = _IN_FULL.get(subject, subject)
    return {**found, **_score(text)}


def _score(text: str) -> dict[str, float]:
    """What was reached, and of how much; only where the text is about lessons or tests."""
    match = next(filter(None, (pattern.search(text) for pattern in _SCORE)), None)
    if match is None or not _SCHOOL.search(text):
        return {}
    whole = match[2].removeprefix("/").split()[-1:]
    out_of = {"out_of": 100 if whole == ["%"] else int(whole[0])} if whole else {}
    return {"score": _number(match[1]), **out_of}


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
