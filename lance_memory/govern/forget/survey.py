"""Where memories still are: which versions, tags and branches hold them, in whatever form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import AmbiguousError, NotFoundError
from lance_memory.record.lineage import SUPERSEDED_BY
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.storage.engine import MissingFileError, UnexplainedError
from lance_memory.storage.erase.stains import Stains, passing, rows_in
from lance_memory.storage.files.lines import Line, lines_of, raw_tags
from lance_memory.storage.table import Table

__all__ = ["Census", "Survey", "survey"]

_COPYING = ("consolidates", "updates", "derived_from")
"""Relations of a memory to what its text was made from."""

_COUNTED = ("id", "key", *SCOPE_LEVELS, SUPERSEDED_BY, "relationships")
_SHOWN = 5


class Census:
    """Every row of every version, by what the data files of the store hold."""

    def __init__(self, table: Table) -> None:
        self._options = table.storage_options
        self._schema = table.schema
        self._columns = [name for name in table.schema.names if name != "embedding"]
        self.lines = lines_of(table)
        every = (v.data for line in self.lines.values() for v in line.versions.values())
        self.paths = sorted(frozenset().union(*every))
        self._rows: pa.Table | None = None

    @property
    def rows(self) -> pa.Table:
        """Ids, keys, scopes and edges: a row for each time that a memory was written."""
        if self._rows is None:
            parts = [self.read(path, _COUNTED) for path in self.paths]
            whole = [part for part in parts if part.num_columns == len(_COUNTED)]
            empty = self._schema.empty_table().select(_COUNTED)
            self._rows = pa.concat_tables([empty, *whole])
        return self._rows

    def read(self, path: str, columns: Collection[str] | None = None) -> pa.Table:
        """The rows of one data file; of one that is gone by now, or damaged, nothing."""
        try:
            return rows_in(path, columns or self._columns, options=self._options)
        except MissingFileError:
            return pa.table({})
        except UnexplainedError:
            if "://" in path:
                raise  # of a network, and not of the file
            return pa.table({})

    def passing(self, predicate: str | None) -> set[str]:
        """The memories that passed at some time."""
        found: set[str] = set()
        for path in self.paths:
            rows = self.read(path)
            if "id" in rows.column_names:
                found.update(passing(rows, predicate)["id"].to_pylist())
        return found

    def named(self, ref: str, scope: Scope) -> set[str]:
        """The memory that has, or had, this id, this key, or this beginning of an id.

        Raises:
            NotFoundError, AmbiguousError: none, or several.
        """
        rows = self.within(scope)
        for mask in (
            pc.equal(rows["id"], ref),
            pc.equal(rows["key"], ref),
            pc.starts_with(rows["id"], ref),
        ):
            ids = sorted(set(rows["id"].filter(mask).to_pylist()))
            if len(ids) == 1:
                return set(ids)
            if ids:
                raise AmbiguousError(
                    f"{ref!r} names {len(ids)} memories: {', '.join(ids[:_SHOWN])}"
                    f"{', ...' if len(ids) > _SHOWN else ''}; give a full id",
                    candidates=ids,
                )
        raise NotFoundError(
            f"there is no memory {ref!r} in {scope}, in no version, tag or branch of the store"
        )

    def within(self, scope: Scope) -> pa.Table:
        """The rows of a scope."""
        rows = self.rows
        for level, value in scope.given().items():
            rows = rows.filter(pc.equal(rows[level], value))
        return rows

    def successors(self, ids: Collection[str], scope: Scope) -> set[str]:
        """The memories that were made from these, over the generations, without these."""
        rows = self.within(scope).combine_chunks()
        inside = set(rows["id"].to_pylist())
        edges: dict[str, set[str]] = {}
        for row in (
            rows.select(["id", SUPERSEDED_BY]).filter(pc.is_valid(rows[SUPERSEDED_BY])).to_pylist()
        ):
            edges.setdefault(row["id"], set()).add(row[SUPERSEDED_BY])
        told = rows.filter(pc.greater(pc.list_value_length(rows["relationships"]), 0))
        for row in told.select(["id", "relationships"]).to_pylist():
            for edge in row["relationships"]:
                if edge["relation"] in _COPYING:
                    edges.setdefault(edge["target"], set()).add(row["id"])
        found, next_ones = set(ids), set(ids)
        while next_ones:
            next_ones = {i for one in next_ones for i in edges.get(one, ())} & inside - found
            found |= next_ones
        return found - set(ids)

    def scopes(self, ids: Collection[str]) -> dict[Scope, int]:
        """How many of the memories are of each scope."""
        rows = self.rows.filter(pc.is_in(self.rows["id"], pa.array(sorted(ids), pa.string())))
        levels = list(SCOPE_LEVELS)
        counts = rows.group_by(levels).aggregate([("id", "count_distinct")]).to_pylist()
        pairs = ((Scope(**{n: row[n] for n in levels}), row["id_count_distinct"]) for row in counts)
        return dict(sorted(pairs, key=lambda pair: tuple(pair[0].names().values())))

    def count(self, scope: Scope) -> int:
        """How many memories are, or were, of exactly this scope."""
        rows = self.rows
        for level, value in scope.names().items():
            rows = rows.filter(pc.equal(rows[level], value))
        return int(pc.count_distinct(rows["id"]).as_py())

    def contents(self, ids: Collection[str], stains: Stains) -> list[str]:
        """The texts that the memories had, each once."""
        gone = pa.array(sorted(ids), pa.string())
        texts: set[str] = set()
        for path in filter(stains.in_rows, self.paths):
            rows = self.read(path, ["id", "content"])
            if rows.num_columns == len(("id", "content")):
                texts.update(rows["content"].filter(pc.is_in(rows["id"], gone)).to_pylist())
        return sorted(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is still to be done.

    Attributes:
        lines: main and every branch.
        dirty: line → its versions that hold the memories, or may.
        newest: lines whose newest version has to be replaced → whether it has to stand alone: it
            began at a dirty version, whose files go.
        tags: the tags on dirty versions → where they are.
    """

    lines: Mapping[str, Line]
    dirty: Mapping[str, tuple[int, ...]]
    newest: Mapping[str, bool]
    tags: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.newest or any(self.dirty.values()))


def survey(table: Table, stains: Stains, rebuilt: Mapping[str, int]) -> Survey:
    """Look at every version of every line.

    From the first version of a line that holds one of the memories on, every later one is dirty
    up to where its indices were built again: an index may keep what its rows have lost.

    Args:
        table: any branch of the store.
        stains: knows which files hold the memories.
        rebuilt: line → the version from which on its indices are new.
    """
    lines = lines_of(table)
    stained = {
        name: {v.number for v in line.versions.values() if stains.on(v)}
        for name, line in lines.items()
    }
    dirty: dict[str, tuple[int, ...]] = {}
    apart: dict[str, bool] = {}
    for name in _parents_first(lines):
        line = lines[name]
        parent, place = line.forked or ("", 0)
        apart[name] = place in dirty.get(parent, ())
        first = min(line.versions) if apart[name] else min(stained[name], default=None)
        end = rebuilt.get(name, 0)
        clean = end and end <= line.newest and max(stained[name], default=0) < end
        last = end if clean else line.newest + 1
        dirty[name] = tuple(
            v for v in sorted(line.versions) if first is not None and first <= v < last
        )
    newest = {n: apart[n] for n, line in lines.items() if line.newest in dirty[n]}
    if "main" not in rebuilt:
        newest = {"main": False, **newest}
    tags = {t: at for t, at in sorted(raw_tags(table).items()) if at[1] in dirty.get(at[0], ())}
    return Survey(lines=lines, dirty=dirty, newest=newest, tags=tags)


def _parents_first(lines: Mapping[str, Line]) -> list[str]:
    def depth(name: str) -> int:
        forked = lines[name].forked if name in lines else None
        return 0 if forked is None else 1 + depth(forked[0])

    return sorted(lines, key=lambda name: (depth(name), name))
