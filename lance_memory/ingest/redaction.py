"""The step that takes secrets and personal data out, before anything is logged or stored."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.message import Conversation, Message
from lance_memory.ingest.steps import Passed, Surroundings
from lance_memory.ingest.treatment import Remedy, Treated, treated
from lance_memory.record.memory import Scope
from lance_memory.redact import STANDARD, Redactor, Sensitive
from lance_memory.redact.protocol import checked

__all__ = ["Redact", "RedactionPolicy", "removed"]

_STEP: Final = "redact"
_LEVELS: Final = ("user", "agent", "session", "run")
_IN_SCOPE: Final = (Remedy.KEEP, Remedy.HASH, Remedy.REFUSE)
_ACCOUNTS: Final = frozenset([Sensitive.CARD, Sensitive.IBAN])
_APART: Final = (Remedy.MASK, Remedy.DROP, Remedy.DROP_MESSAGE)
"""Of a name these become a hash: masked or dropped, all names would be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionPolicy:
    """What becomes of what is found, by kind.

    Attributes:
        default: of kinds that are not named here, a custom redactor's own among them.
        kinds: by kind, such as {"email": "hash", "card": "refuse"}.
        scope: of what is found in the names of user, agent, session and run: "keep", "hash" or
            "refuse". They are kept by default, since they are what the caller asks by; `Users`
            gives names that say nothing. Tenants are never looked at.
    """

    default: Remedy = Remedy.MASK
    kinds: Mapping[str, Remedy] = field(default_factory=dict)
    scope: Remedy = Remedy.KEEP

    def __post_init__(self) -> None:
        named = {str(kind): _remedy(remedy) for kind, remedy in self.kinds.items()}
        object.__setattr__(self, "kinds", named)
        object.__setattr__(self, "default", _remedy(self.default))
        object.__setattr__(self, "scope", _remedy(self.scope))
        if self.scope not in _IN_SCOPE:
            raise InvalidInputError(f"scope={self.scope}; it takes {', '.join(_IN_SCOPE)}")

    def remedy(self, kind: str) -> Remedy:
        """What becomes of a value of that kind."""
        return self.kinds.get(str(kind), self.default)


class Redact:
    """The step "redact". It lets no text through that the redactor has not looked at.

    Contents, actors and refs are looked at; a value that is found in one of them is removed from
    all of them. In an actor or ref a hash stands for what would be masked or dropped, so that
    names stay apart. A redactor that raises, or changes what it does not report, gets the
    conversation refused ("redaction_failed"); nothing that it says is passed on.

    Decisions count by kind what was removed ("redacted", "dropped"), by event; they hold no value.

    Args:
        policy: of tenants that are not named.
        tenants: by tenant.
        redactor: what finds; safe to share between threads.
        key: 16 to 64 bytes for hashes; None: the store's own (`Surroundings.secret`), made from its
            id, so that the same value has the same mark whatever ledger stands beside the store:
            names of events are made from marks. Danger: whoever has the store has that key, and can
            try values; short ones, such as phone numbers, will be found. A key of your own that is
            kept elsewhere hides them, for as long as it is never changed.
    """

    name = _STEP

    def __init__(
        self,
        policy: RedactionPolicy | None = None,
        *,
        tenants: Mapping[str, RedactionPolicy] | None = None,
        redactor: Redactor = STANDARD,
        key: bytes | None = None,
    ) -> None:
        if key is not None and not (isinstance(key, bytes) and 16 <= len(key) <= 64):
            raise InvalidInputError("key takes 16 to 64 bytes, or None: one is made and kept")
        self._policy = policy or RedactionPolicy()
        self._tenants = dict(tenants or {})
        self._redactor = checked(redactor) or STANDARD
        self._key = key

    def __call__(self, items: Sequence[Conversation], around: Surroundings) -> Passed[Conversation]:
        """The conversations without what was found; those that are refused do not pass."""
        passed: list[Conversation] = []
        decisions: list[Decision] = []
        degraded: list[str] = []
        keys = _Keys(self._key or around.secret)
        for number, conversation in enumerate(items, start=1):
            policy = self._tenants.get(conversation.scope.tenant, self._policy)
            try:
                work = _Work(conversation, policy, self._redactor, keys)
                made, decided = work.outcome(around.job)
            except Exception as error:  # noqa: BLE001 (whatever it is: its text goes no further)
                degraded.append(f"{_STEP}: {type(error).__name__}")
                made, decided = None, [_refused("redaction_failed")]
            passed += [made] if made else []
            decisions += decided
            around.progress(_STEP, number, len(items))
        return Passed(
            items=tuple(passed),
            decisions=tuple(decisions),
            degraded=tuple(dict.fromkeys(degraded)),
        )


def removed(decisions: Iterable[Decision]) -> dict[str, int]:
    """How many values of each kind the step took out, or refused a conversation for."""
    counts: Counter[str] = Counter()
    for decision in decisions:
        if decision.step == _STEP:
            counts.update({kind: int(number) for kind, number in decision.figures.items()})
    return dict(sorted(counts.items()))


class _Keys:
    """The key of each tenant, made from that of the store."""

    def __init__(self, given: bytes) -> None:
        self._store = given or secrets.token_bytes(32)  # without a store nobody keeps the marks

    def mark(self, tenant: str, kind: str, value: str) -> str:
        """`[email:1f3a9b2c4d5e]`: 48 bits of a keyed BLAKE2b."""
        own = blake2b(tenant.encode("utf-8", "surrogatepass"), key=self._store).digest()
        told = json.dumps([kind, _same(kind, value)]).encode()
        return f"[{kind}:{blake2b(told, key=own, digest_size=6).hexdigest()}]"


class _Work:
    """One conversation: its texts, then the names in it, then those of its scope, as one list."""

    def __init__(
        self, given: Conversation, policy: RedactionPolicy, redactor: Redactor, keys: _Keys
    ) -> None:
        self._given, self._policy, self._keys = given, policy, keys
        self._contents = [message.content for message in given.messages]
        self._names = sorted({n for m in given.messages for n in (m.actor, m.ref) if n})
        self._levels = {} if policy.scope is Remedy.KEEP else _levels(given.scope)
        texts = [*self._contents, *self._names, *self._levels.values()]
        self._found = treated(texts, redactor, self._label)

    def outcome(self, job: str) -> tuple[Conversation | None, list[Decision]]:
        """What goes on, and what was decided."""
        if refused := self._refused():
            return None, [_refused(f"sensitive_{min(refused, key=_rank)}", refused)]
        texts = [self._text(one) for one in self._found[: len(self._contents)]]
        kept = [at for at, text in enumerate(texts) if text or not self._contents[at]]
        made = replace(
            self._given,
            messages=tuple(self._message(at, texts[at]) for at in kept),
            scope=replace(self._given.scope, **self._scope()),
        )
        found = {at: self._counts([one]) for at, one in enumerate(self._found[: len(texts)])}
        places = {at: place for place, at in enumerate(kept)}
        decisions = [
            _changed(
                counts,
                event=made.event(places[at], job=job) if at in places else "",
                dropped=at not in places,
            )
            for at, counts in found.items()
            if counts
        ]
        if in_names := self._counts(self._found[len(texts) :]):
            decisions.append(_changed(in_names, reason="name"))
        if not made.messages and self._contents:
            return None, [*decisions, _refused("nothing_left")]
        return made, decisions

    def _label(self, at: int, kind: str, value: str) -> str | None:
        remedy = self._policy.remedy(kind)
        if remedy is Remedy.KEEP:
            return None
        if remedy is Remedy.HASH or (at >= len(self._contents) and remedy in _APART):
            return self._keys.mark(self._given.scope.tenant, kind, value)
        return f"[{kind}]"

    def _refused(self) -> Counter[str]:
        whole = len(self._contents) + len(self._names)
        refused = self._counts(self._found, Remedy.REFUSE)
        if self._policy.scope is Remedy.REFUSE:
            refused |= self._counts(self._found[whole:])
        return refused

    def _counts(self, found: Iterable[Treated], *of: Remedy) -> Counter[str]:
        """By kind, of what does not stay, or of one remedy."""
        kinds = Counter([mark.kind for one in found for mark in one.marks])
        if not kinds:  # as of most messages
            return kinds
        remedies = of or tuple(remedy for remedy in Remedy if remedy is not Remedy.KEEP)
        return Counter({k: n for k, n in kinds.items() if self._policy.remedy(k) in remedies})

    def _text(self, one: Treated) -> str:
        remedies = {self._policy.remedy(mark.kind) for mark in one.marks}
        if Remedy.DROP_MESSAGE in remedies:
            return ""
        return one.without_sentences(lambda kind: self._policy.remedy(kind) is Remedy.DROP)

    def _message(self, at: int, text: str) -> Message:
        message = self._given.messages[at]
        named = {"": "", **self._named}
        actor, ref = named[message.actor], named[message.ref]
        if (text, actor, ref) == (message.content, message.actor, message.ref):
            return message
        return replace(message, content=text, actor=actor, ref=ref)

    @cached_property
    def _named(self) -> dict[str, str]:
        texts = (one.text for one in self._found[len(self._contents) :])
        return dict(zip(self._names, texts, strict=False))

    def _scope(self) -> dict[str, str]:
        texts = (one.text for one in self._found[len(self._contents) + len(self._names) :])
        return dict(zip(self._levels, texts, strict=True))


def _levels(scope: Scope) -> dict[str, str]:
    return {level: name for level, name in scope.given().items() if level in _LEVELS}


def _changed(
    counts: Mapping[str, int], *, event: str = "", reason: str = "sensitive", dropped: bool = False
) -> Decision:
    verdict = "dropped" if dropped else "redacted"
    figures = {kind: float(number) for kind, number in sorted(counts.items())}
    return Decision(step=_STEP, verdict=verdict, reason=reason, event=event, figures=figures)


def _refused(reason: str, counts: Mapping[str, int] | None = None) -> Decision:
    figures = {kind: float(number) for kind, number in sorted((counts or {}).items())}
    return Decision(step=_STEP, verdict="refused", reason=reason, figures=figures)


def _rank(kind: str) -> tuple[bool, str]:
    """Which of several kinds is named: secrets before all others, then by name."""
    return kind != Sensitive.SECRET, kind


def _same(kind: str, value: str) -> str:
    """One form of values that are the same but for how they are written."""
    if kind == Sensitive.EMAIL:
        return value.casefold()
    if kind == Sensitive.PHONE:
        return re.sub(r"[^\d+]", "", value)
    return re.sub(r"[\s-]", "", value).upper() if kind in _ACCOUNTS else value


def _remedy(given: Remedy | str) -> Remedy:
    try:
        return Remedy(given)
    except ValueError:
        raise InvalidInputError(
            f"no such remedy {given!r}; there are: {', '.join(Remedy)}"
        ) from None
