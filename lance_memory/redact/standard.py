"""The redactor that is used unless another is given."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, TypeAlias

from lance_memory.errors import InvalidInputError
from lance_memory.redact.accounts import cards, ibans
from lance_memory.redact.addresses import addresses
from lance_memory.redact.contact import emails, phones, regions_known
from lance_memory.redact.protocol import Finding, Redacted, Sensitive, replaced
from lance_memory.redact.secrets import secrets
from lance_memory.redact.spans import Span, apart, united

__all__ = ["REGIONS", "STANDARD", "USUAL", "StandardRedactor"]

REGIONS: Final = ("US", "GB", "DE", "BR")
"""Where phone numbers without a country code are looked for."""

USUAL: Final = tuple(kind for kind in Sensitive if kind is not Sensitive.ADDRESS)
"""What is removed unless somebody says otherwise: what needs no extra."""

Find: TypeAlias = Callable[[str], Iterable[Span]]

_PLACEHOLDER: Final = re.compile(rf"\[(?:{'|'.join(Sensitive)})(?:-\d+|:[0-9a-f]{{12}})?\]")
"""Also the numbered ones that `veiled` makes, and the hashed ones of the write path."""


class StandardRedactor:
    """Replaces secrets, IBANs, card numbers, e-mail addresses and phone numbers by `[kind]`.

    What has a check digit is verified by it; tokens are known by their vendors' prefixes, by the
    word before them (`password: ...`) or by how random they look. Hex of any length is left alone
    without such a word: nothing tells a key from a commit or a checksum. IP addresses and names
    are left alone, and so are postal addresses, unless "address" is among the kinds (the United
    States, the United Kingdom and Canada; the extra "addresses").

    Time is linear in the length of the text. Thread-safe.

    Args:
        kinds: what to remove; all but "address" by default.
        regions: ISO 3166 codes of the countries whose phone numbers are known without `+`.

    Raises:
        InvalidInputError: no such kind or region.
    """

    def __init__(
        self,
        *,
        kinds: Iterable[Sensitive | str] = USUAL,
        regions: Sequence[str] = REGIONS,
    ) -> None:
        self._kinds = _kinds(kinds)
        self._regions = tuple(regions)
        if Sensitive.PHONE in self._kinds:
            _refuse_unknown(self._regions)
        finders: dict[Sensitive, Find] = {
            Sensitive.SECRET: secrets,
            Sensitive.IBAN: ibans,
            Sensitive.CARD: cards,
            Sensitive.EMAIL: emails,
            Sensitive.PHONE: partial(phones, regions=self._regions),
            Sensitive.ADDRESS: addresses,
        }
        self._finders = [(kind, finders[kind]) for kind in self._kinds]

    def __repr__(self) -> str:
        kinds = [str(kind) for kind in self._kinds]
        return f"StandardRedactor(kinds={kinds}, regions={list(self._regions)})"

    def redact(self, text: str) -> Redacted:
        """The text with `[kind]` for each finding.

        Looks again until nothing is found, as what was removed may have hidden something.
        """
        found: list[Finding] = []
        shown = text
        while new := list(apart(self._look(shown), _placeholders(shown))):
            found = sorted([*found, *_in_original(new, found)], key=lambda finding: finding.start)
            shown = replaced(text, found, _label)
        return Redacted(text=shown, found=tuple(found))

    def _look(self, text: str) -> list[Finding]:
        return united(
            Finding(kind=kind, start=start, end=end)
            for kind, find in self._finders
            for start, end in find(text)
        )


def _kinds(given: Iterable[Sensitive | str]) -> tuple[Sensitive, ...]:
    asked = {given} if isinstance(given, str) else set(given)
    if unknown := asked - set(Sensitive):
        raise InvalidInputError(
            f"kinds={sorted(map(str, unknown))}; there are: {', '.join(Sensitive)}"
        )
    return tuple(kind for kind in Sensitive if kind in asked)


def _refuse_unknown(regions: Sequence[str]) -> None:
    unusual = [region for region in regions if region not in REGIONS]  # the usual need no library
    if unknown := [region for region in unusual if region not in regions_known()]:
        raise InvalidInputError(f"regions={unknown}; they are ISO 3166 codes, like {REGIONS}")


def _placeholders(text: str) -> list[Span]:
    return [match.span() for match in _PLACEHOLDER.finditer(text)]


def _in_original(new: Iterable[Finding], found: Sequence[Finding]) -> Iterator[Finding]:
    """Positions in the text with placeholders for `found`, as positions in the original."""
    grown = [finding.end - finding.start - len(_label(finding)) for finding in found]
    shift = [0, *accumulate(grown)]
    starts = [finding.start - shift[at] for at, finding in enumerate(found)]
    for finding in new:
        moved = shift[bisect_right(starts, finding.start)]
        yield Finding(kind=finding.kind, start=finding.start + moved, end=finding.end + moved)


def _label(finding: Finding) -> str:
    return f"[{finding.kind}]"


STANDARD: Final = StandardRedactor()
"""Of whoever names no other."""
