"""What forgetting would do, what it did, and the proof of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lance_memory.record.memory import Scope

__all__ = ["ForgetPlan", "ForgetProof", "ForgetResult", "Unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlan:
    """What forgetting would take, from where, and what cannot be read afterwards.

    Attributes:
        version: the newest version of main when it was made.
        ids: the memories that go, also those that only earlier versions have, sorted.
        scopes: the scopes they are of, and how many of them are of each.
        successors: memories made from them, which may carry their text. They go too where
            `with_successors` is set, and are part of `ids` then.
        with_successors: whether they go.
        versions: branch → its versions that cannot be read any more.
        tags: tag → its version, which is rewritten without them; the number stays.
        branches: the branches that get a new version without them.
        clones: tags that keep files for a store made by `checkout`. Forgetting is refused while
            there are any: that store holds the memories too, and needs the files.
        elsewhere: directories outside this store that its versions read, and cannot be changed.
        queries: recorded queries that name them, or ask for what they say.
        plans: saved plans in the store's directory that name them. Those elsewhere are not known;
            they cannot be applied any more.
    """

    version: int
    ids: tuple[str, ...]
    scopes: tuple[tuple[Scope, int], ...]
    successors: tuple[str, ...]
    with_successors: bool
    versions: Mapping[str, tuple[int, ...]]
    tags: Mapping[str, int]
    branches: tuple[str, ...]
    clones: tuple[str, ...]
    elsewhere: tuple[str, ...]
    queries: int
    plans: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetProof:
    """Where the memories were looked for after they went.

    Attributes:
        versions: versions of all lines, tags and branches included, every file of which was read.
        data_files: data files read row by row through the engine, deleted rows included.
        index_files: index files whose values were read. Of the word index, and of vector indices,
            no value can be read: they were built again from the rows that are there.
        searches: questions for their words and vectors that were put to the newest and the tagged
            versions, which were asked for their ids too.
        raw_files: files whose bytes were scanned, of all kinds; 0 in an object store. Long texts
            may be compressed in data files, so there the rows are what counts.
        raw_needles: ids and beginnings of texts that were looked for in bytes; of many, a sample.
        mentioned: memories that stay and mention an id or a text of theirs in their own columns.
        found: what is still there; empty, or it was not forgotten.
    """

    versions: int
    data_files: int
    index_files: int
    searches: int
    raw_files: int
    raw_needles: int
    mentioned: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A forgetting that was interrupted: what it is called in the log, and what is to go."""

    op_id: str
    at: datetime
    actor: str
    reason: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """What was forgotten: as the plan says, and proved. `version` is the one main has now.

    The other attributes are as in `ForgetPlan`; `queries` and `plans` were removed. Of one that
    was interrupted and finished, `scopes`, `tags` and `branches` are those that were left to do.
    """

    version: int
    op_id: str
    ids: tuple[str, ...]
    scopes: tuple[tuple[Scope, int], ...]
    successors: tuple[str, ...]
    with_successors: bool
    versions: Mapping[str, tuple[int, ...]]
    tags: Mapping[str, int]
    branches: tuple[str, ...]
    elsewhere: tuple[str, ...]
    queries: int
    plans: tuple[str, ...]
    proof: ForgetProof
