"""`lmem import`: every file format, one version, all or nothing, and which line is wrong."""

from __future__ import annotations

import json
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def as_jsonl(items):
    return "".join(json.dumps(item) + "\n" for item in items).encode()


def as_arrow(items, opener):
    table = pa.Table.from_pylist([{**i, "metadata": json.dumps(i["metadata"])} for i in items])
    sink = pa.BufferOutputStream()
    with opener(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def as_parquet(items):
    sink = pa.BufferOutputStream()
    rows = [{**item, "metadata": json.dumps(item["metadata"])} for item in items]
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


def as_csv(items):
    names = list(items[0])
    lines = [",".join(names)]
    for item in items:
        cells = [
            ";".join(item[n])
            if n == "tags"
            else item[n]
            if isinstance(item[n], str)
            else json.dumps(item[n])
            for n in names
        ]
        lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
    return ("\ufeff" + "\r\n".join(lines)).encode()


WRITERS = {
    "m.jsonl": as_jsonl,
    "m.ndjson": lambda items: b"\xef\xbb\xbf\n" + as_jsonl(items) + b"\n\n",
    "m.json": lambda items: json.dumps(items, indent=2).encode(),
    "m.csv": as_csv,
    "m.parquet": as_parquet,
    "m.arrow": lambda items: as_arrow(items, pa.ipc.new_file),
    "m.feather": lambda items: as_arrow(items, pa.ipc.new_file),
    "m.ipc": lambda items: as_arrow(items, pa.ipc.new_stream),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_store(name, lmem, fresh, items, tmp_path, store):
    file = tmp_path / name
    file.write_bytes(WRITERS[name](items))
    done = lmem("import", file, "--store", fresh)
    assert done.code == 0, done.err
    assert done.out == "stored 6, already there 0, version 3\n"
    volatile = {"created_at", "updated_at", "state_at"}
    lists = [
        [
            {name: value for name, value in m.items() if name not in volatile}
            for m in lmem(
                "list", "--store", place, "--at", "3", "--format", "jsonl", "--with-embedding"
            ).lines
        ]
        for place in (fresh, store)
    ]
    assert lists[0] == lists[1]


def test_importing_again_stores_nothing(lmem, store, items):
    done = lmem("import", "-", stdin=as_jsonl(items[:5]))
    assert done.out == "stored 0, already there 5, version 4\n"


def test_the_suffix_can_be_overruled(lmem, fresh, items, tmp_path):
    file = tmp_path / "m.txt"
    file.write_bytes(as_csv(items))
    assert lmem("import", file, "--input-format", "csv", "--store", fresh).code == 0


def test_an_export_is_imported_unchanged(lmem, store, fresh):
    """list | import into a fresh store keeps every column that the library takes."""
    lmem("retire", "k1", "--yes", "--reason", "old")
    lmem("supersede", "k2", "k3", "--with", "the train leaves at nine for Porto")
    exported = lmem("list", "--states", "any", "--format", "jsonl", "--with-embedding")
    done = lmem("--store", fresh, "import", "-", stdin=exported.out)
    assert done.code == 0, done.err
    again = lmem(
        "list", "--states", "any", "--format", "jsonl", "--with-embedding", "--store", fresh
    )
    assert again.lines == exported.lines


BAD = {
    "not JSON": (b'{"content": "a"}\n{"content": \n', "line 2"),
    "not UTF-8": (b'{"content": "a"}\n\n{"content": "\xff"}\n', "line 3"),
    "no memory": (b'{"content": "a"}\n7\n', "line 2"),
    "a blank content": (b'\n{"content": "a"}\n{"content": " "}\n', "line 3"),
    "an unknown column": (b'{"content": "a"}\n{"content": "b", "mood": 1}\n', "line 2"),
    "a score out of range": (b'{"content": "a", "importance": 7}\n', "line 1"),
    "a time without a zone": (b'{"content": "a", "event_at": "2025-01-01T00:00:00"}\n', "line 1"),
    "a deep nest": (b'{"content": "a"}\n' + b"[" * 200_000 + b"\n", "line 2"),
    "a number without end": (b'{"content": "a", "seq": ' + b"9" * 5000 + b"}\n", "line 1"),
    "a huge seq": (b'{"content": "a", "seq": 99999999999999999999}\n', "line 1"),
    "a short vector": (b'{"content": "a", "embedding": [1, 2]}\n', "line 1"),
    "a NaN vector": (b'{"content": "a", "embedding": [' + b"NaN," * 383 + b"1]}\n", "line 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_line_is_named_and_nothing_is_stored(case, lmem, store, version):
    data, place = BAD[case]
    before = version()
    done = lmem("import", "-", stdin=data)
    assert (done.code, done.out, version()) == (5, "", before), done.err
    assert f"stdin {place}" in done.err
    assert len(done.err.splitlines()) == 1


BAD_FILES = {
    "m.json": b'{"content": "no array"}',
    "m.csv": b"content,importance\na,0.5\nb,0.5,more\n",
    "quote.csv": b'content\n"never closed\n',
    "latin.csv": "content\ncaf\xe9\n".encode("latin-1"),
    "number.csv": b"content,importance\na,much\n",
    "meta.csv": b"content,metadata\na,{\n",
    "column.csv": b"content,mood\na,good\n",
    "m.parquet": b"not parquet",
    "m.arrow": b"ARROW1 but not really",
    "m.ipc": b"nothing at all",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_malformed_file_is_rejected(name, lmem, store, version, tmp_path):
    file = tmp_path / name
    file.write_bytes(BAD_FILES[name])
    before = version()
    done = lmem("import", file)
    assert (done.code, done.out, version()) == (5, "", before), done.err
    assert len(done.err.splitlines()) == 1


def test_csv_cells(lmem, fresh, tmp_path):
    """Empty cells are not given; tags are split; a cell may span lines; the line is counted."""
    file = tmp_path / "m.csv"
    file.write_text(
        "content,tags,metadata,seq,importance\n"
        '"two\nlines",a; b,"{""n"": 1}",3,\n'
        'one,"[""x;y""]",,,0.25\n',
        encoding="utf-8",
    )
    assert lmem("import", file, "--store", fresh).code == 0
    found = lmem("list", "--store", fresh, "--format", "jsonl").lines
    names = ("content", "tags", "metadata", "seq", "importance")
    assert sorted([m[name] for name in names] for m in found) == [
        ["one", ["x;y"], {}, None, 0.25],
        ["two\nlines", ["a", "b"], {"n": 1}, 3, 0.5],
    ]
    file.write_text('content,seq\n"two\nlines",1\nbad,x\n', encoding="utf-8")
    assert "line 4" in lmem("import", file, "--store", fresh).err


def test_a_scope_is_given_to_rows_that_name_none(lmem, fresh):
    lines = b'{"content": "a"}\n"just a text"\n'
    assert lmem("import", "-", "--user", "eve", "--store", fresh, stdin=lines).code == 0
    assert len(lmem("list", "--user", "eve", "--store", fresh, "--format", "jsonl").lines) == 2
    other = b'{"content": "b", "user": "mallory"}\n'
    assert lmem("import", "-", "--user", "eve", "--store", fresh, stdin=other).code == 5


def test_an_empty_file_stores_nothing(lmem, store, version):
    assert lmem("import", "-", stdin=b"").code == 0
    assert version() == 4


def test_an_unknown_column_is_sent_to_metadata(lmem, store):
    done = lmem("import", "-", stdin=b'{"content": "a", "mood": 1}\n')
    assert "no column 'mood'; put it under metadata" in done.err


def test_a_rejected_import_leaves_no_new_store(lmem, fresh):
    done = lmem("import", "-", "--store", fresh, stdin=b'{"content": " "}\n')
    assert (done.code, fresh.exists()) == (5, False)
    fresh.mkdir()
    assert lmem("import", "-", "--store", fresh, stdin=b'{"content": " "}\n').code == 5
    assert list(fresh.iterdir()) == []


def test_a_rejected_import_leaves_a_store_that_was_there(lmem, fresh):
    lmem("init", fresh)
    assert lmem("import", "-", "--store", fresh, stdin=b'{"content": " "}\n').code == 5
    assert lmem("stats", "--store", fresh).code == 0


ZONELESS = [
    {"content": "a", "event_at": "2025-01-02T03:04:05", "valid_from": "2025-01-02"},
    {"content": "b", "event_at": "2025-01-02T04:04:05+01:00", "valid_from": None},
]


def zoneless_parquet(items):
    moments = [datetime(2025, 1, 2, 3, 4, 5)] * 2
    columns = {"content": ["a", "b"], "event_at": moments, "valid_from": [date(2025, 1, 2), None]}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


ZONELESS_FILES = {
    "m.jsonl": as_jsonl,
    "m.csv": lambda items: (
        b"content,event_at,valid_from\n"
        + "".join(
            f"{i['content']},{i['event_at']},{i['valid_from'] or ''}\n" for i in items
        ).encode()
    ),
    "m.parquet": zoneless_parquet,
}


@pytest.mark.parametrize("name", ZONELESS_FILES)
def test_times_without_a_zone_are_taken_as_utc_only_when_told(name, lmem, fresh, tmp_path):
    file = tmp_path / name
    file.write_bytes(ZONELESS_FILES[name](ZONELESS))
    refused = lmem("import", file, "--store", fresh)
    assert (refused.code, "--assume-utc" in refused.err) == (5, True)
    assert "datetime(" not in refused.err
    done = lmem("import", file, "--store", fresh, "--assume-utc")
    assert done.code == 0, done.err
    found = lmem("list", "--store", fresh, "--format", "jsonl").lines
    assert [m["event_at"] for m in found] == ["2025-01-02T03:04:05+00:00"] * 2
    assert {m["valid_from"] for m in found} == {"2025-01-02T00:00:00+00:00", None}
