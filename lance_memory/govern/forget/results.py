"""What forgetting would do, what it did, and the proof of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lance_memory.html import Told
from lance_memory.record.memory import Scope
from lance_memory.wording import counted, ranges, some

__all__ = ["ForgetPlan", "ForgetProof", "ForgetResult", "Unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlan(Told):
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
        staged: side tables of vectors that an interrupted `reembed` has made. They go as a whole:
            vectors of these memories may be among them, and the next run makes them again.
        plans: saved plans in the store's directory that name them. Those elsewhere are not known;
            they cannot be applied any more.
        beside: what goes beside the table, where there is any: "jobs" that had something of the
            scope, "conversations" of theirs not worked off yet, "inputs" for users whose inputs
            the gate remembers, "users" that were seen, "sessions" and "messages" of theirs in
            working memory → how many. Of names it is not known.
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
    staged: tuple[str, ...]
    plans: tuple[str, ...]
    beside: Mapping[str, int] = field(default_factory=dict)

    @property
    def unreadable(self) -> dict[str, str]:
        """`versions` for people: branch → ranges of numbers, such as "3-17, 20"."""
        return {line: ranges(numbers) for line, numbers in self.versions.items()}

    @property
    def told_beside(self) -> str:
        """`beside` for people, such as "jobs: 2, inputs: 1"; empty: nothing."""
        return ", ".join(f"{what}: {number}" for what, number in self.beside.items())

    def __str__(self) -> str:
        """What goes, a line for each thing that does."""
        made = "go too" if self.with_successors else "stay"
        lost = {f"versions of {b} not readable any more": v for b, v in self.unreadable.items()}
        told = {
            counted(len(self.ids), "memory", "memories"): some(self.ids),
            f"made of them, which {made}": some(self.successors),
            **lost,
            "tags rewritten": some(tuple(self.tags)),
            "branches rewritten": some(self.branches),
            "recorded queries removed": str(self.queries or "none"),
            "vectors of an interrupted reembed removed": some(self.staged),
            "saved plans removed": some(self.plans),
            "beside the table": self.told_beside or "none",
            "refused: stores made by checkout share files": some(self.clones),
            "files of other stores, which stay": some(self.elsewhere),
        }
        return "\n".join(f"{name}: {text}" for name, text in told.items() if text != "none")


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
        unscanned: ids that may be in any file by chance, such as `1`, and were not looked for in
            bytes: where ids are values, they were.
        unscanned_texts: how many texts below 12 characters were looked for in rows alone, as far
            as they were known.
        unreadable: damaged files, which may have had anything: they went with the versions that
            needed them.
        mentioned: memories that stay and mention an id or a text of theirs in their own columns.
        found: what is still there; empty, or it was not forgotten.
    """

    versions: int
    data_files: int
    index_files: int
    searches: int
    raw_files: int
    raw_needles: int
    unscanned: tuple[str, ...]
    unscanned_texts: int
    unreadable: tuple[str, ...]
    mentioned: tuple[str, ...]
    found: tuple[str, ...]

    def __str__(self) -> str:
        read = self.data_files + self.index_files
        where = (
            f"looked for in {counted(self.versions, 'version')}, {counted(read, 'file')} read and "
            f"{self.raw_files} scanned"
        )
        told = {
            "damaged files went too": self.unreadable,
            "mentioned still by": self.mentioned,
            "not looked for in bytes": self.unscanned,
        }
        notes = [f"; {name}: {some(values)}" for name, values in told.items() if values]
        left = f"still in {some(self.found)}" if self.found else "nothing is left"
        return f"{where}: {left}{''.join(notes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A forgetting that was interrupted: what it is called in the log, and what is to go.

    Attributes:
        left: files in the store's directory that are not its own, and have something still. All
            else is done, and is checked again once they were removed.
    """

    op_id: str
    at: datetime
    actor: str
    reason: str
    ids: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """What was forgotten: as the plan says, and proved.

    Attributes:
        plan: what went. Of a forgetting that was interrupted and finished, `scopes`, `tags`,
            `branches` and `staged` are those that were left to do.
        op_id: what it is called in the log.
        version: the one that main has now.
        logged: the one that took them out, as the log has it; the rebuilt indices are later ones.
            0: main had none of them.
        queries: how many recorded queries were removed.
        plans: the saved plans that were removed.
        proof: where they were looked for afterwards.
    """

    plan: ForgetPlan
    op_id: str
    version: int
    logged: int
    queries: int
    plans: tuple[str, ...]
    proof: ForgetProof

    def __str__(self) -> str:
        gone = counted(len(self.plan.ids), "memory", "memories")
        if self.plan.beside:
            gone += f" (beside the table, {self.plan.told_beside})"
        log = f" (log: {self.logged})" if self.logged not in (0, self.version) else ""
        return f"version {self.version}{log}: forgot {gone}; {self.proof}"
