"""A workspace as files: to be read, edited, reviewed and kept like code.

    prompts/NAME.md     the text
    skills/NAME.md      a header of kind and enabled, then the text
    workspace.json      memory mode, policies, flags

A file ends with one line end that is not part of its text, as editors leave it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lance_memory.agent.workspace.item import MEMORY_MODE, Key, WorkspacePart, named
from lance_memory.agent.workspace.values import LONGEST_TEXT, LONGEST_VALUE, checked_value
from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.files import beside, make_private, saving, store_around, write_whole

__all__ = ["from_files", "read_files", "to_files", "write_files"]

_FOLDERS: Final = {WorkspacePart.PROMPT: "prompts", WorkspacePart.SKILL: "skills"}
_SETTINGS: Final = "workspace.json"
_FORMAT: Final = "lance-memory workspace 1"
_MEMBERS: Final = {WorkspacePart.POLICY: "policies", WorkspacePart.FLAG: "flags"}
_ENDING: Final = ".md"
_FENCE: Final = "---"
_MARK: Final = "\ufeff"
"""Some editors begin a file with it; a header behind it is a header all the same."""

_SWITCH: Final = {"true": True, "false": False}
_LONGEST: Final = {_ENDING: LONGEST_TEXT + 1_024, ".json": 1_000 * LONGEST_VALUE}
"""Bytes of a file; what it holds is measured again."""


# -- values ↔ contents ---------------------------------------------------------------------------


def to_files(values: Mapping[Key, Any]) -> dict[str, bytes]:
    """The items as files: name, with "/" between its parts → content."""
    files = {}
    for (part, name), value in sorted(values.items()):
        if part in _FOLDERS:
            text = f"{value}\n" if part is WorkspacePart.PROMPT else _with_header(value)
            files[f"{_FOLDERS[part]}/{name}{_ENDING}"] = text.encode()
    told: dict[str, Any] = {"format": _FORMAT}
    if MEMORY_MODE in values:
        told[MEMORY_MODE[1]] = str(values[MEMORY_MODE])
    for part, member in _MEMBERS.items():
        told[member] = {name: value for (of, name), value in values.items() if of is part}
    text = json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True)
    return {**files, _SETTINGS: f"{text}\n".encode()}


def from_files(files: Mapping[str, bytes]) -> dict[Key, Any]:
    """The inverse of `to_files`.

    Raises:
        InvalidInputError: a file is none of a workspace's; says which.
    """
    values: dict[Key, Any] = {}
    for file, content in files.items():
        folder, _, rest = file.rpartition("/")
        try:
            if file == _SETTINGS:
                values |= _settings(content)
            else:
                part = next(part for part, own in _FOLDERS.items() if own == folder)
                key = named(part, rest.removesuffix(_ENDING))
                text = _decoded(content).removesuffix("\n")
                value = text if part is WorkspacePart.PROMPT else _without_header(text)
                values[key] = checked_value(part, value)
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: {error}") from error
    return values


def _with_header(skill: Mapping[str, Any]) -> str:
    enabled = "true" if skill["enabled"] else "false"
    kind = f"kind: {skill['kind']}".rstrip()
    return f"{_FENCE}\n{kind}\nenabled: {enabled}\n{_FENCE}\n{skill['text']}\n"


def _without_header(text: str) -> dict[str, Any]:
    """A skill; one without a header is enabled, and of no kind."""
    lines = text.split("\n")
    if lines[0].removeprefix(_MARK).rstrip("\r") != _FENCE:
        return {"text": text}
    ends = [n for n, line in enumerate(lines[1:], start=1) if line.rstrip("\r") == _FENCE]
    if not ends:
        raise InvalidInputError(f"its header begins with {_FENCE} and does not end with it")
    told: dict[str, Any] = {"text": "\n".join(lines[ends[0] + 1 :])}
    for line in lines[1 : ends[0]]:
        name, mark, value = (part.strip() for part in line.partition(":"))
        if not mark or name not in ("kind", "enabled") or name in told:
            raise InvalidInputError(
                f"its header has the line {line.strip()!r:.80}; it takes one of each: "
                "kind: WORD, enabled: true or false"
            )
        told[name] = _SWITCH.get(value, value) if name == "enabled" else value
    return told


def _settings(content: bytes) -> dict[Key, Any]:
    try:
        told = json.loads(_decoded(content))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"it is not JSON ({error})") from error
    known = {"format", MEMORY_MODE[1], *_MEMBERS.values()}
    if not isinstance(told, dict) or told.get("format") != _FORMAT or not told.keys() <= known:
        raise InvalidInputError(
            f"it is a JSON object with format {_FORMAT!r}, and may have: "
            f"{', '.join(sorted(known - {'format'}))}"
        )
    values: dict[Key, Any] = {}
    if MEMORY_MODE[1] in told:
        values[MEMORY_MODE] = checked_value(MEMORY_MODE[0], told[MEMORY_MODE[1]])
    for part, member in _MEMBERS.items():
        members = told.get(member, {})
        if not isinstance(members, dict):
            raise InvalidInputError(f"its {member} are {members!r:.80}; they are a JSON object")
        for name, value in members.items():
            values[named(part, name)] = checked_value(part, value)
    return values


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8 ({error})") from error


# -- on the disk ---------------------------------------------------------------------------------


def read_files(directory: str | os.PathLike[str]) -> dict[Key, Any]:
    """What a directory says.

    Raises:
        NotFoundError: it is not there, or has no workspace.json.
        InvalidInputError: one of its files is none of a workspace's, is too long, or is a link.
        StorageError: it cannot be read.
    """
    home = Path(directory)
    if not (home / _SETTINGS).exists():
        raise NotFoundError(
            f"there is no {_SETTINGS} in {os.fspath(directory)!r}; what a directory has no file of "
            "is removed, so one without it is taken for none of a workspace"
        )
    with saving(f"read the workspace in {home}"):
        names = [_SETTINGS, *_found(home)]
        return from_files({name: _content(home / name, name) for name in names})


def write_files(
    directory: str | os.PathLike[str], values: Mapping[Key, Any], *, overwrite: bool
) -> list[str]:
    """Write the items as files; their names.

    A new directory appears whole or not at all. In one that is there each file is whole, and
    what there is no item of any more is removed at the end.

    Raises:
        InvalidInputError: files of a workspace are there, and are not to be replaced; or the
            directory is in a store, or one of the files is a link.
        StorageError: they cannot be written.
    """
    home = Path(directory)
    store = store_around(home)
    if store is not None:
        raise InvalidInputError(f"{home} is inside the store {store}; export elsewhere")
    files = to_files(values)
    with saving(f"write the workspace to {home}"):
        there = [*_found(home), *([_SETTINGS] if os.path.lexists(home / _SETTINGS) else [])]
        if there and not overwrite:
            raise InvalidInputError(
                f"{home} has files of a workspace, such as {there[0]}; export elsewhere, or ask "
                "to overwrite it"
            )
        if home.exists():
            _into(home, files)
            for name in {*there} - files.keys():
                (home / name).unlink()
        else:
            with beside(home) as fresh:
                _into(fresh / home.name, files)
                (fresh / home.name).rename(home)
    return list(files)


def _into(home: Path, files: Mapping[str, bytes]) -> None:
    """Each file whole; workspace.json last, so that a directory without it is not finished."""
    make_private(home)
    for folder in _FOLDERS.values():
        _refuse_link(home / folder, folder)
        make_private(home / folder)
    for name, content in files.items():
        _refuse_link(home / name, name)
        write_whole(home / name, content)


def _found(home: Path) -> Iterator[str]:
    """The files of prompts and skills; hidden ones are somebody else's.

    Raises:
        InvalidInputError: there is something else among them.
    """
    for folder in _FOLDERS.values():
        _refuse_link(home / folder, folder)
        entries = sorted((home / folder).iterdir()) if (home / folder).is_dir() else []
        for entry in entries:
            name = f"{folder}/{entry.name}"
            if entry.name.startswith("."):
                continue
            _refuse_link(entry, name)
            if entry.suffix != _ENDING or not entry.is_file():
                raise InvalidInputError(f"{name}: it is no file NAME{_ENDING}; move it elsewhere")
            yield name


def _refuse_link(path: Path, name: str) -> None:
    if path.is_symlink():
        raise InvalidInputError(f"{name}: it is a link; put the file itself there")


def _content(path: Path, name: str) -> bytes:
    """What a file holds; never of a link, nor of what is no file, such as a pipe."""
    _refuse_link(path, name)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    most = _LONGEST[path.suffix]
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidInputError(f"{name}: it is no file")
        content = file.read(most + 1)
    if len(content) > most:
        raise InvalidInputError(f"{name}: it has more than {most:,} bytes")
    return content
