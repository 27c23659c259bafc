"""Texts and names as they are kept: one form of each, without what no reader sees."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.message import Conversation, Message, Role
from lance_memory.ingest.steps import Passed, Surroundings
from lance_memory.record.times import storable

__all__ = ["Normalise", "known_role", "role_of", "tidy", "tidy_name"]

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Control characters but tab and newline, halves of characters, marks of byte order, and what
hides inside a word from whoever looks for it: soft hyphens, joiners, marks of direction."""

_LINE_ENDS: Final = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")

_ROLES: Final = {
    **{str(role): role for role in Role},
    "human": Role.USER,
    "customer": Role.USER,
    "me": Role.USER,
    "ai": Role.ASSISTANT,
    "bot": Role.ASSISTANT,
    "chatbot": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
}


def tidy(text: str) -> str:
    r"""The text in Unicode's form NFC, without control characters and space at ends of lines.

    Every end of a line is "\n"; blank lines at both ends go.
    """
    plain = _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))
    lines = unicodedata.normalize("NFC", plain).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def tidy_name(text: str) -> str:
    """The same of a name: on one line."""
    return " ".join(tidy(text).split())


def known_role(name: str) -> Role | None:
    """The role that a chat service calls so; None: it is none, so it may be somebody's name."""
    return _ROLES.get(name.strip().casefold())


def role_of(name: object) -> Role:
    """The role that a chat service calls so.

    Raises:
        InvalidInputError: there is no such role.
    """
    role = known_role(name) if isinstance(name, str) else None
    if role is None:
        raise InvalidInputError(f"there is no such role; there are: {', '.join(sorted(_ROLES))}")
    return role


class Normalise:
    """The step that gives texts one form, and leaves out messages that say nothing.

    What is left out is counted: a decision "discarded" for reason "blank" with the figure
    "messages", and for reason "empty" where nothing of a conversation is left. A message of a time
    that no memory can have (before 0001-01-02, or from 9999-01-01 on) has the decision "refused"
    for reason "time_out_of_range", and the others go on.
    """

    name = "normalise"

    def __call__(
        self,
        items: Sequence[Conversation],
        around: Surroundings,
    ) -> Passed[Conversation]:
        """The conversations that say something."""
        decisions: list[Decision] = []
        passed: list[Conversation] = []
        for conversation in items:
            timely, refused = self._timely(conversation, around)
            passed.append(_normalised(timely))
            decisions += refused
            if timely.messages or not refused:
                decisions += self._left_out(timely, passed[-1])
        return Passed(
            items=tuple(one for one in passed if one.messages), decisions=tuple(decisions)
        )

    def _timely(
        self, conversation: Conversation, around: Surroundings
    ) -> tuple[Conversation, list[Decision]]:
        far = [n for n, one in enumerate(conversation.messages) if not storable(one.at)]
        if not far:
            return conversation, []
        kept = tuple(one for n, one in enumerate(conversation.messages) if n not in {*far})
        events = [conversation.event(place, job=around.job) for place in far]
        return replace(conversation, messages=kept), [
            Decision(step=self.name, verdict="refused", reason="time_out_of_range", event=event)
            for event in events
        ]

    def _left_out(self, before: Conversation, after: Conversation) -> list[Decision]:
        blank = len(before.messages) - len(after.messages)
        if not blank and after.messages:
            return []
        reason = "blank" if after.messages else "empty"
        figures = {"messages": float(blank)}
        return [Decision(step=self.name, verdict="discarded", reason=reason, figures=figures)]


def _normalised(conversation: Conversation) -> Conversation:
    messages = map(_message, conversation.messages)
    return replace(conversation, messages=tuple(one for one in messages if one.content))


def _message(message: Message) -> Message:
    content, actor = tidy(message.content), tidy_name(message.actor)
    if (content, actor) == (message.content, message.actor):
        return message
    return replace(message, content=content, actor=actor)
