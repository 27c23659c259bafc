"""What a model answers: checked, and repaired where that is safe."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lance_memory.service import form_of

__all__ = ["Found", "Hints", "InvalidAnswerError", "Memories", "read_answer", "text_of"]

_A = TypeVar("_A", bound=BaseModel)

_MOST: Final = 200
"""Memories of one answer; no conversation has so many, and a model that loops has more."""

_THOUGHT: Final = re.compile(
    r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_FENCE: Final = re.compile(r"```[\w-]*\s*\n(?P<inside>.*?)\n?\s*```", re.DOTALL)


class InvalidAnswerError(Exception):
    """The answer is not of the form that was asked for; the message says how, without content."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Found(_Strict):
    """One memory, as the model writes it."""

    message: int = Field(ge=1)
    content: str = Field(min_length=1, max_length=4000)
    category: str = Field(max_length=100)
    importance_score: float = Field(ge=0, le=10)
    confidence: float = Field(ge=0, le=1)
    reasoning: str = ""


class Memories(_Strict):
    """What the second pass answers."""

    memories: list[Found] = Field(max_length=_MOST)
    nothing_to_extract: bool = False


class Hints(_Strict):
    """What the first pass answers: who and what is spoken of, and what belongs together."""

    entities: list[str] = Field(max_length=_MOST)
    relations: list[str] = Field(max_length=_MOST)


def text_of(answer: Any) -> str:
    """The text of a chat completion.

    Raises:
        InvalidAnswerError: it is none, was cut, or is a refusal.
    """
    try:
        choice = answer["choices"][0]
        finish, content = choice.get("finish_reason"), choice["message"]["content"]
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise InvalidAnswerError(f"no chat completion but {form_of(answer)}") from error
    if not isinstance(content, str) or not content.strip():
        raise InvalidAnswerError(f"no text (finish_reason {finish!r:.40})")
    if finish in ("length", "content_filter"):
        raise InvalidAnswerError(f"it was cut (finish_reason {finish!r})")
    return content


def read_answer(text: str, form: type[_A]) -> _A:
    """The answer as a value; reasoning before it, a code fence and words around it are cut away.

    Raises:
        InvalidAnswerError: it is no JSON, or not of that form.
    """
    try:
        values = json.loads(_bare(text))
    except (ValueError, RecursionError) as error:
        raise InvalidAnswerError(f"no JSON: {_where(error)}") from error
    try:
        return form.model_validate(values)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)[:5]
        )
        raise InvalidAnswerError(told) from error


def _bare(text: str) -> str:
    """The part of the text that is JSON, as far as that can be told without guessing."""
    rest = _THOUGHT.sub("", text, count=1).strip()
    if fenced := _FENCE.search(rest):
        rest = fenced["inside"].strip()
    start, end = rest.find("{"), rest.rfind("}")
    return rest[start : end + 1] if 0 <= start < end else rest


def _where(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return type(error).__name__
