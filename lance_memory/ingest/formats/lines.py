"""Lines of a file, or of whoever gives lines; what is wrong with one says which it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from lance_memory.errors import InvalidInputError, NotFoundError, StorageError

__all__ = ["Line", "Source", "blamed", "lines_of", "name_of"]

Source: TypeAlias = str | os.PathLike[str] | Iterable[str | bytes]
"""A path, or lines."""

Line: TypeAlias = tuple[int, str]
"""Its number, from 1 on, and its text without the end."""


def lines_of(source: Source) -> Iterator[Line]:
    """The lines, one after the other; a mark of byte order before the first is none of it.

    Raises:
        NotFoundError: there is no such file.
        StorageError: it cannot be read.
        InvalidInputError: a line that is not UTF-8, or no text.
    """
    if isinstance(source, str | os.PathLike):
        yield from _of_file(source)
        return
    for number, line in enumerate(source, 1):
        with blamed(name_of(source), number):
            yield number, _read(line, first=number == 1)


def name_of(source: Source) -> str:
    """What messages call it: the path, or what a stream is called."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", "")
    return name if isinstance(name, str) else ""


@contextmanager
def blamed(name: str, number: int) -> Iterator[None]:
    """What is wrong inside says that it is this line, and quotes nothing of it.

    Raises:
        InvalidInputError: what the block raised, with the name and number before it.
    """
    try:
        yield
    except InvalidInputError as error:
        place = f"{name}, line {number}" if name else f"line {number}"
        raise InvalidInputError(f"{place}: {error}") from None


def _of_file(path: str | os.PathLike[str]) -> Iterator[Line]:
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a name as it was given
            for number, line in enumerate(file, 1):
                with blamed(name, number):
                    yield number, _read(line, first=number == 1)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {name}") from error
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{name} cannot be read: {error.strerror}") from error


def _read(line: object, *, first: bool) -> str:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError as error:
            raise InvalidInputError(
                f"byte {error.start} is not UTF-8; write the file in UTF-8"
            ) from None
    if not isinstance(line, str):
        raise InvalidInputError(f"it is of type {type(line).__name__}; a line is a text")
    return (line.removeprefix("\ufeff") if first else line).rstrip("\r\n")
