"""Recalled text as plain data: nothing in it steers a terminal, hides, or looks like a frame.

A memory was written by somebody: by a person, a web page, another agent. In a prompt it stands
beside instructions, and a model tells the two apart by nothing but the text. So what could pass for
a part of the prompt's own form is taken out or written out here, and `render` puts every line of
what is left behind a mark. What a text *asks for* no rule can take out: the frame says that it is
data.

- Sequences that steer a terminal (ECMA-48), control characters, and what no reader sees: marks of
  direction (Boucher and Anderson, "Trojan Source", USENIX Security 2023), zero-width characters,
  tag characters and supplementary variation selectors, which carry hidden text past whoever looks.
- `<` where it could begin a tag or a model's own token, as in `</memory>` or `<|im_start|>`,
  becomes `&lt;`; names in brackets and capitals, as in `[INST]`, stand in parentheses.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

__all__ = ["harmless", "harmless_name"]

_LINE_ENDS: Final = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")
_STEERING: Final = re.compile(
    "(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"  # operating system commands
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\\\|\x9c)?"  # strings for a device
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor
    "|\x1b[ -/]*[0-~]?"
)
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n){2,}")

_TAG: Final = re.compile(r"[<＜﹤](?![\s\d=\-]|$)")
_MARK: Final = re.compile(r"\[(/?[A-Z][A-Z_]{2,})\]")

_SHOWN_FORMATS: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2")
"""Format characters that readers see: signs of Arabic and Syriac numbers."""

_PLAIN: Final = re.compile(
    "[\n\t -~\xa1-\xac\xae-\u034e\u0370-\u0599\u2010-\u2027\u2030-\u205e\u20a0-\u22ff"
    "\u3001-\u3130\u4e00-\u9fff\uac00-\ud7a3\U0001f300-\U0001f64f]*"
)
"""What most texts consist of; none of it hides, so they need not be looked at one by one."""

_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe0e\ufe0f"
_HIDDEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufdd0-\ufdef\uffa0\ufff0-\ufff8\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
)
"""Letters and marks that are drawn as nothing, tags, further variation selectors, no characters."""

_LONGEST_NAME: Final = 60


def harmless(text: str) -> str:
    r"""The text as data for a prompt; the same when it is made harmless again.

    Ends of lines are "\n", at most two of them together, and none at both ends.
    """
    lines = _LINE_ENDS.sub("\n", _STEERING.sub("", text))
    marked = _MARK.sub(r"(\1)", _TAG.sub("&lt;", _seen(lines)))
    return _BLANK_LINES.sub("\n\n", marked).strip()


def harmless_name(text: str) -> str:
    """A name as a label in front of data: on one line, without what ends a label, not too long."""
    words = " ".join(harmless(text).replace(":", " ").replace("#", " ").split())
    return words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 1].rstrip()}…"


def _seen(text: str) -> str:
    """The text without what hides."""
    if _PLAIN.fullmatch(text):
        return text
    seen = [""]
    for place, character in enumerate(text):
        following = text[place + 1 : place + 2]
        if character in _JOINERS:
            shown = character if _is_joined(seen[-1]) and _is_joined(following) else ""
        elif character in _SELECTORS:
            shown = character if seen[-1].strip() and seen[-1] not in _SELECTORS else ""
        else:
            shown = _shown(character)
        if shown:
            seen.append(shown)
    return "".join(seen)


def _is_joined(character: str) -> bool:
    """Whether it is one that joiners stand between: of Persian, of Indic scripts, an emoji."""
    return character > "\u024f" and character not in _JOINERS and _shown(character) == character


@cache
def _shown(character: str) -> str:
    """What stands for it; "" for what no reader sees."""
    if character in "\n\t" or character in _SHOWN_FORMATS:
        return character
    kind = unicodedata.category(character)
    if kind == "Zs":
        return " "
    hidden = kind in ("Cc", "Cf", "Cs", "Zl", "Zp") or _HIDDEN.match(character)
    return "" if hidden else character
