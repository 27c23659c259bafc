"""Whole contents as Arrow, archives that were tampered with, and random memories."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
from hypothesis import strategies as st

from lance_memory import Relationship

METADATA = (
    {},
    {"n": 0},
    {"n": False, "m": "", "l": [], "o": {}},
    {"n": None, "f": 1.0, "e": 1e300, "big": 2**63},
    {"it's": "x' OR '1'='1", "deep": {"list": [1, 2.5, "ü", None]}},
)
STATES = ("active", "active", "pending", "superseded", "retired", "contradicted")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
written = texts.filter(str.strip)
times = st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC))
maybe_times = st.none() | times
scores = st.floats(0, 1, width=32)
edges = st.builds(Relationship, relation=written, target=written, note=texts)
memories = st.fixed_dictionaries(
    {"content": written, "state": st.sampled_from(STATES)},
    optional={
        "tenant": st.sampled_from(("", "t")),
        "user": texts,
        "session": texts,
        "kind": st.sampled_from(("working", "episodic", "profile")),
        "role": texts,
        "actor": texts,
        "metadata": st.sampled_from(METADATA),
        "tags": st.lists(written, max_size=3),
        "importance": scores,
        "confidence": scores,
        "quality": st.none() | scores,
        "created_at": times,
        "updated_at": times,
        "state_at": times,
        "event_at": maybe_times,
        "valid_from": maybe_times,
        "expires_at": maybe_times,
        "seq": st.none() | st.integers(-(2**63), 2**63 - 1),
        "state_reason": texts,
        "superseded_by": st.none() | written,
        "relationships": st.lists(edges, max_size=2),
        "source": texts,
        "source_ref": texts,
        "revision": st.integers(1, 2**62),
    },
)


def sound(item):
    """A memory that names a successor where it is superseded, and else none."""
    successor = (item.get("superseded_by") or "x") if item["state"] == "superseded" else None
    return {**item, "superseded_by": successor}


def rows_of(view):
    """Every column of every row, embeddings included, in the order of the ids."""
    return view.to_arrow().combine_chunks().sort_by("id")


def forge(archive, *, table=None, **changes):
    """Change an archive directory so that its checksums are right all the same."""
    manifest = archive / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    if table is not None:
        file = archive / told["files"][0]["name"]
        pq.write_table(table(pq.read_table(file)), file)
        content = file.read_bytes()
        rows = pq.read_metadata(file).num_rows
        told["files"][0] |= {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "memories": rows,
        }
        told["memories"] = rows
    told |= changes
    sign(manifest, told)


def sign(manifest, told):
    """Write a manifest whose checksum is right."""
    body = {name: value for name, value in told.items() if name != "checksum"}
    text = json.dumps(body, ensure_ascii=False, sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    manifest.write_text(json.dumps({**body, "checksum": checksum}), encoding="utf-8")


def flip(path, at=-20):
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def modes(place):
    """The permissions of everything below and of the place itself: {of files}, {of directories}."""
    every = [place, *place.rglob("*")]
    return tuple(
        {oct(p.stat().st_mode & 0o777) for p in every if kind(p)}
        for kind in (lambda p: p.is_file(), lambda p: p.is_dir())
    )
