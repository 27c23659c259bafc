"""A store in plain Python: a dict of rows, and for each version a copy of it.

Every verb takes the moment `now` and does to the dict what the documentation says; where it must be
refused, it raises the error that the store must raise. Ids that the store makes up are passed in.
"""

from __future__ import annotations

import copy
import hashlib
import json
from datetime import datetime, timedelta
from operator import itemgetter

import numpy as np
from proof_kit import SCOPE, vector

from lance_memory import ConflictError, InvalidInputError

TICK = timedelta(microseconds=1)
DEFAULTS = {
    "revision": 1,
    "key": None,
    **dict.fromkeys(SCOPE, ""),
    "kind": "episodic",
    "role": "",
    "actor": "",
    "metadata": {},
    "tags": [],
    "importance": 0.5,
    "confidence": 1.0,
    "quality": None,
    "event_at": None,
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "seq": None,
    "state": "active",
    "state_reason": "",
    "superseded_by": None,
    "relationships": [],
    "source": "user",
    "source_ref": "",
}


class Model:
    """The rows now, the contents of each version, and the tags."""

    def __init__(self):
        self.rows = {}
        self.versions = {}
        self.tags = {}

    def fork(self):
        """A branch: the same rows, and a history of its own."""
        other = Model()
        other.rows = copy.deepcopy(self.rows)
        return other

    def record(self, versions):
        for version in versions:
            self.versions[version] = copy.deepcopy(self.rows)

    # -- what a row is, and which rows count ----------------------------------------------

    @staticmethod
    def new_row(fields, identifier, now):
        values = {**DEFAULTS, "created_at": now, "updated_at": now, "state_at": now, **fields}
        row = {**values, "id": identifier}
        for name in ("event_at", "valid_from", "expires_at", "created_at", "updated_at"):
            row[name] = _time(row[name])
        row["state_at"] = _time(row["state_at"])
        return _derived(row)

    def visible(self, now):
        return [r for r in self.rows.values() if r["state"] == "active" and _unexpired(r, now)]

    def live(self, now, rows=None):
        alive = ("active", "pending")
        found = self.rows.values() if rows is None else rows
        return [r for r in found if r["state"] in alive and _unexpired(r, now)]

    # -- add ------------------------------------------------------------------------------

    def same_memories(self, row, rows, now):
        """Ids of the rows that are the memory `row`: it is then not stored a second time."""
        by_id = [r for r in rows if r["id"] == row["id"]]
        if by_id and not _is(by_id[0], row, "content", *SCOPE):
            raise ConflictError("the id is taken")
        live = self.live(now, rows)
        by_key = [r for r in live if row["key"] is not None and _is(r, row, "key", *SCOPE)]
        known_events = [r for r in rows if r["state"] == "superseded" and r["event_at"] is not None]
        by_content = [
            r
            for r in [*live, *known_events]
            if _is(r, row, "content", "actor", "role", "event_at", *SCOPE)
            and (row["key"] is None or row["key"] == r["key"])
        ]
        return {r["id"] for r in by_id or by_key or by_content}

    def add(self, batch, ids, now):
        """Adds what is new. Returns for each item the ids that it may be answered with."""
        rows = dict(self.rows)
        answers = []
        for fields, identifier in zip(batch, ids, strict=True):
            row = self.new_row(fields, identifier, now)
            same = self.same_memories(row, list(rows.values()), now)
            answers.append(same or {identifier})
            if not same:
                rows[identifier] = row
        self.rows = rows
        return answers

    def expects_new(self, batch, now):
        """For each item whether it is stored. Raises what the store must raise."""
        probe = Model()
        probe.rows = dict(self.rows)
        before = set(probe.rows)
        names = [f.get("id", f"new-{i}") for i, f in enumerate(batch)]
        if len(set(names)) < len(names):
            raise ValueError("an id stands twice")
        probe.add(batch, names, now)
        return [name in probe.rows and name not in before for name in names]

    def replaced_by(self, fields, now):
        """The rows that an upsert replaces, and the id of the one that says the same already."""
        row = self.new_row(fields, "?", now)
        open_states = ("active", "pending", "contradicted")
        old = [
            r
            for r in self.rows.values()
            if r["state"] in open_states and _is(r, row, "key", *SCOPE)
        ]
        same = len(old) == 1 and self.visible_is(old[0], now) and _is(old[0], row, *fields)
        return ([], old[0]["id"]) if same else (old, None)

    @staticmethod
    def visible_is(row, now):
        return row["state"] == "active" and _unexpired(row, now)

    def upsert(self, fields, identifier, now):
        old, known = self.replaced_by(fields, now)
        if known:
            return
        edges = [
            {"relation": "updates", "target": r["id"], "note": ""}
            for r in sorted(old, key=itemgetter("id"))
        ]
        for row in old:
            self._supersede(row["id"], identifier, "updated", now)
        self.rows[identifier] = self.new_row({**fields, "relationships": edges}, identifier, now)

    # -- change ---------------------------------------------------------------------------

    def _change(self, identifier, now, **values):
        row = self.rows[identifier]
        later = max(now, row["updated_at"] + TICK)
        changed = {**row, **values, "revision": row["revision"] + 1, "updated_at": later}
        self.rows[identifier] = _derived(changed)

    def _state(self, identifier, state, reason, now, **values):
        self._change(identifier, now, state=state, state_at=now, state_reason=reason, **values)

    def _supersede(self, identifier, by, reason, now):
        self._state(identifier, "superseded", reason, now, superseded_by=by)

    def holds_key(self, row, now, leaving=()):
        """Whether another live row has the row's key."""
        return row["key"] is not None and any(
            r["id"] != row["id"] and r["id"] not in leaving and _is(r, row, "key", *SCOPE)
            for r in self.live(now)
        )

    def update(self, identifier, values, now):
        row = self.rows[identifier]
        if "content" in values and "embedding" not in values:
            values = {**values, "embedding": None}
        new = _derived({**row, **values})
        if new == row:
            return False
        if self.live(now, [new]) and self.holds_key(new, now):
            raise ConflictError("the key is taken")
        self._change(identifier, now, **values)
        return True

    def supersede(self, sources, content, identifier, now):
        rows = [self.rows[i] for i in sources]
        if any(r["state"] in ("superseded", "retired") for r in rows):
            raise ConflictError("superseded or retired already")
        derived = successor(rows, content, now)
        for row in rows:
            self._supersede(row["id"], identifier, "superseded", now)
        self.rows[identifier] = self.new_row(derived, identifier, now)

    def retire(self, ids, reason, now):
        if any(self.rows[i]["state"] == "superseded" for i in ids):
            raise ConflictError("superseded")
        for i in ids:
            if self.rows[i]["state"] != "retired":
                self._state(i, "retired", reason, now)

    def unretire(self, ids, now):
        rows = [self.rows[i] for i in ids]
        if any(r["state"] != "retired" for r in rows):
            raise ConflictError("not retired")
        back = [r for r in rows if r["key"] is not None and _unexpired(r, now)]
        names = [(r["key"], *(r[level] for level in SCOPE)) for r in back]
        if len(set(names)) < len(names) or any(self.holds_key(r, now) for r in back):
            raise ConflictError("the key is taken")
        for i in ids:
            self._state(i, "active", "", now, superseded_by=None)

    def delete(self, ids):
        for i in ids:
            del self.rows[i]

    # -- consolidate ----------------------------------------------------------------------

    def apply(self, plan):
        """Exactly what the plan says: its derived rows in, its sources superseded by them."""
        for cluster in plan.accepted:
            for identifier, seen in cluster.sources.items():
                row = self.rows.get(identifier)
                if row is None or (row["revision"], row["updated_at"], row["content_hash"]) != seen:
                    raise ConflictError("a source has changed")
        for cluster in plan.accepted:
            derived = dict(cluster.derived)
            for identifier in cluster.sources:
                self._supersede(identifier, derived["id"], "consolidated", plan.at)
            self.rows[derived["id"]] = self.new_row(derived, derived["id"], plan.at)

    # -- versions -------------------------------------------------------------------------

    def rollback(self, version, now, user=None):
        target = copy.deepcopy(self.versions[version])
        if user is not None:
            outside = {i: r for i, r in self.rows.items() if r["user"] != user}
            target = {**outside, **{i: r for i, r in target.items() if r["user"] == user}}
        self.rows = target

    def changed_at(self, version):
        """The ids whose rows the version made, changed or removed."""
        return differing(self.versions[version - 1], self.versions[version])

    def revert(self, version, now):
        before, after = self.versions[version - 1], self.versions[version]
        touched = differing(before, after)
        if not touched:
            raise InvalidInputError("the version changed nothing")
        if any(self.rows.get(i) != after.get(i) for i in touched):
            raise ConflictError("changed since")
        probe = Model()
        probe.rows = {i: r for i, r in self.rows.items() if i not in touched}
        back = {i: copy.deepcopy(before[i]) for i in touched if i in before}
        probe.rows.update(back)
        if any(probe.live(now, [r]) and probe.holds_key(r, now) for r in back.values()):
            raise ConflictError("the key is taken")
        self.rows = probe.rows

    # -- reads ----------------------------------------------------------------------------

    def matching(self, now, where):
        """The rows that pass the filters, by brute force."""
        return [row for row in self.rows.values() if passes(row, now, where)]


def passes(row, now, where):
    states = where.get("states")
    checks = {
        "user": lambda value: row["user"] == value or not value,
        "session": lambda value: row["session"] == value or not value,
        "kinds": lambda value: row["kind"] in ([value] if isinstance(value, str) else value),
        "states": lambda value: value == "any" or row["state"] in value,
        "tags": lambda value: set(value) <= set(row["tags"]),
        "metadata": lambda value: all(
            name in row["metadata"] and _scalar(row["metadata"][name]) == _scalar(wanted)
            for name, wanted in value.items()
        ),
        "key": lambda value: row["key"] == value,
        "since": lambda value: happened(row) >= value,
        "until": lambda value: happened(row) < value,
    }
    visible = states is not None or (row["state"] == "active" and _unexpired(row, now))
    return visible and all(checks[name](value) for name, value in where.items())


def happened(row):
    return row["event_at"] or row["created_at"]


def in_order(rows):
    return sorted(rows, key=lambda r: (happened(r), r["created_at"], r["id"]))


def successor(sources, content, now):
    """What one memory made of many carries over from them."""
    sources = in_order(sources)

    def agreed(name, otherwise=""):
        return sources[0][name] if len({r[name] for r in sources}) == 1 else otherwise

    first, *rest = (r["metadata"] for r in sources)
    common = {
        n: v for n, v in first.items() if all(n in m and _scalar(m[n]) == _scalar(v) for m in rest)
    }
    ends = [r["expires_at"] for r in sources]
    validity = [r["valid_to"] for r in sources]
    scope = {level: agreed(level) for level in SCOPE}
    keys = {
        r["key"]
        for r in sources
        if r["key"] is not None
        and all(r[level] == scope[level] for level in SCOPE)
        and r["state"] in ("active", "pending")
        and _unexpired(r, now)
    }
    return {
        "content": content,
        "key": keys.pop() if len(keys) == 1 else None,
        "valid_to": None if None in validity else max(validity),
        **{level: agreed(level) for level in SCOPE},
        "kind": agreed("kind", "semantic"),
        "actor": agreed("actor"),
        "role": agreed("role"),
        "metadata": common,
        "tags": list(dict.fromkeys(tag for r in sources for tag in r["tags"])),
        "importance": max(r["importance"] for r in sources),
        "confidence": max(r["confidence"] for r in sources),
        "quality": None,
        "valid_from": min(r["valid_from"] or happened(r) for r in sources),
        "event_at": max(happened(r) for r in sources),
        "expires_at": None if None in ends else max(ends),
        "source": "consolidated",
        "relationships": [
            {"relation": "consolidates", "target": r["id"], "note": ""} for r in sources
        ],
    }


def differing(before, after):
    return {i for i in before.keys() | after.keys() if before.get(i) != after.get(i)}


def whole(rows):
    """The rows as `proof_kit.contents` gives a store's."""
    return {
        i: {**row, "metadata": json.dumps(row["metadata"], sort_keys=True)}
        for i, row in rows.items()
    }


def _derived(row):
    """The row with what follows from its other columns."""
    given = row.get("embedding")
    floats = vector(row["content"]) if given is None else np.asarray(given, dtype=np.float32)
    single = {
        n: None if row[n] is None else float(np.float32(row[n]))
        for n in ("importance", "confidence", "quality")
    }
    digest = hashlib.blake2b(row["content"].encode(), digest_size=16).hexdigest()
    tags = list(dict.fromkeys(row["tags"]))
    return {
        **row,
        **single,
        "tags": tags,
        "content_hash": digest,
        "embedding": tuple(floats.tolist()),
    }


def _is(one, other, *names):
    return all(_scalar(one[name]) == _scalar(other[name]) for name in names)


def _scalar(value):
    """Compares as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, default=str)
    return (isinstance(value, bool), value)


def _time(value):
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _unexpired(row, now):
    return row["expires_at"] is None or row["expires_at"] > now
