"""Who speaks in a conversation, in the words of the trainers."""

from __future__ import annotations

from collections.abc import Sequence

from lance_memory.curate.export.frame import Turn

__all__ = ["ASSISTANT", "USER", "roles"]

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"

_KNOWN = {
    **dict.fromkeys((SYSTEM, "developer"), SYSTEM),
    **dict.fromkeys((USER, "human"), USER),
    **dict.fromkeys((ASSISTANT, "ai", "bot", "model", "agent"), ASSISTANT),
    **dict.fromkeys((TOOL, "function"), TOOL),
}


def roles(turns: Sequence[Turn]) -> list[str]:
    """A chat role for each turn of one conversation: system, user, assistant or tool.

    By the turn's `role`, where that is one of these or a usual name for one ("human", "ai",
    "function", ...), whatever its case. Otherwise by its `actor`: such a name again, the name of
    the scope's user or agent, or one that the conversation gives another turn a role by. Of the
    other actors the first to speak asks (user) and all others answer (assistant), so that a talk
    between two people can be trained on too. A turn with neither role nor actor is the user's.
    """
    told = {t.actor: role for t in turns if t.actor and (role := _KNOWN.get(t.role.casefold()))}
    asking = [role for t in turns if (role := _told(t, told)) is not None].count(USER) > 0
    found = []
    for turn in turns:
        role = _told(turn, told)
        if role is None:
            role = told[turn.actor] = ASSISTANT if asking else USER
            asking = True
        found.append(role)
    return found


def _told(turn: Turn, by_actor: dict[str, str]) -> str | None:
    """The role that the turn or its actor's other turns name; None: there is but an actor."""
    role = _KNOWN.get(turn.role.casefold()) or by_actor.get(turn.actor)
    if role or not turn.actor:
        return role or USER
    scope = {turn.user: USER, turn.agent: ASSISTANT}
    return _KNOWN.get(turn.actor.casefold()) or scope.get(turn.actor)
