"""Which names and values there may be in a workspace."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import flag, one_of
from lance_memory.record.values import json_text, text_value
from lance_memory.wording import shown

__all__ = [
    "LONGEST_TEXT",
    "LONGEST_VALUE",
    "MOST_ITEMS",
    "MemoryMode",
    "Skill",
    "checked_value",
    "file_name",
]

LONGEST_TEXT: Final = 262_144
"""Bytes of UTF-8 of a prompt or a skill: about 65,000 tokens, more than any of them should be."""

LONGEST_VALUE: Final = 65_536
"""Bytes of JSON of a policy or a flag."""

MOST_ITEMS: Final = 1_000
"""Items of one workspace: all of them are read at once."""

_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?")
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)
"""Names that are no files on Windows, whatever follows behind a dot."""


class MemoryMode(StrEnum):
    """How an agent's context is made: by meaning, by meaning and words, or with snapshots too."""

    VECTOR = "vector"
    HYBRID = "hybrid"
    DISTILLED = "distilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Something that an agent is taught.

    Attributes:
        name: within its workspace.
        text: what it is told.
        kind: what sort of skill; the caller's own word, or none.
        enabled: whether it is told.
        version: of the item.
    """

    name: str
    text: str
    kind: str = ""
    enabled: bool = True
    version: int = 0

    def __repr__(self) -> str:
        kind, off = self.kind and f" ({self.kind})", "" if self.enabled else ", disabled"
        return f"<Skill {self.name!r}{kind}{off}, version {self.version}: {shown(self.text)!r}>"


def file_name(what: str, name: object) -> str:
    """A name that is a file's on every system: fewer than a key can be made of.

    Raises:
        InvalidInputError: it is none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _DEVICES.match(name):
        raise InvalidInputError(
            f"{what}={name!r:.120}; it takes 1 to 100 letters (a-z), digits, and - _ . inside, and "
            "no device of Windows such as con"
        )
    return name


def checked_value(part: str, value: Any) -> Any:
    """The value as it is kept.

    Args:
        part: a `WorkspacePart`.
        value: of a prompt its text; of a skill a mapping with `text`, and `kind` and `enabled`;
            of the setting a memory mode; of a policy any JSON value but null; of a flag true,
            false, a number or a text.

    Raises:
        InvalidInputError: it is none of that part, or too long.
    """
    return _CHECKS[part](value)


def _prompt(value: Any) -> str:
    return _text("prompt", value)


def _skill(value: Any) -> dict[str, Any]:
    known = {"text", "kind", "enabled"}
    if not isinstance(value, Mapping) or not {"text"} <= value.keys() <= known:
        raise InvalidInputError(f"skill={value!r:.120}; it takes: text, kind, enabled")
    kind = value.get("kind", "")
    return {
        "text": _text("skill", value["text"]),
        "kind": file_name("kind", kind) if kind else "",
        "enabled": flag("enabled", value.get("enabled", True)),
    }


def _setting(value: Any) -> str:
    return one_of("memory_mode", value, MemoryMode)


def _policy(value: Any) -> Any:
    if value is None:
        raise InvalidInputError("policy=None; it takes a JSON value, and `remove` takes it away")
    return _json("policy", value)


def _flag(value: Any) -> Any:
    if not isinstance(value, bool | int | float | str):
        raise InvalidInputError(f"flag={value!r:.120}; it takes true, false, a number or a text")
    return _json("flag", value)


def _text(what: str, value: Any) -> str:
    text = text_value(what, value)
    if not text.strip():
        raise InvalidInputError(f"{what} is {text!r:.120}; it takes a text that is not blank")
    _refuse_long(what, len(text.encode()), LONGEST_TEXT)
    return text


def _json(what: str, value: Any) -> Any:
    text = json_text(what, {"workspace": {"value": value}})  # as deep as it is going to be kept
    _refuse_long(what, len(text.encode()), LONGEST_VALUE)
    return json.loads(text)["workspace"]["value"]


def _refuse_long(what: str, size: int, most: int) -> None:
    if size > most:
        raise InvalidInputError(f"the {what} has {size:,} bytes; it takes {most:,} at most")


_CHECKS: Final = {
    "prompt": _prompt,
    "skill": _skill,
    "setting": _setting,
    "policy": _policy,
    "flag": _flag,
}
