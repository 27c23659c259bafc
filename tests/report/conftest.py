"""A store with a past, hostile contents, and the page of it; made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from lance_memory import MemoryStore

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> pear pie",
    "\"quoted\" & 'single' </svg></title></style> pear tart",
    "turned \u202egnp.exe\u202c and \u2066hidden\u2069 pear cake",
    "{{ 7 * 7 }} {% raw %} ]]> <!-- pear jam",
    "gr\u00fcn \u7dd1 \U0001f375 tab\tand\x07bell pear",
)


@dataclass(frozen=True)
class Made:
    """A store, the file of its report, what the report says of itself, and its HTML."""

    store: MemoryStore
    path: Path
    result: object
    html: str


def build(store):
    """Two users, two kinds, a pass, a correction, retired and deleted memories, queries."""
    teas = [f"Ann drinks green tea with honey each morning {i % 3 * 'really '}" for i in range(9)]
    rows = [{"content": text, "user": "ann", "session": f"s{i % 2}"} for i, text in enumerate(teas)]
    store.add_many(rows)
    store.tag("start")
    store.add_many([{"content": text, "user": "ann", "kind": "semantic"} for text in HOSTILE])
    bobs = [f"Bob repairs bicycle number {i} on day {i}" for i in range(6)]
    store.add_many([{"content": text, "user": "bob<b>", "tags": ["x"]} for text in bobs])
    store.consolidate(reason="<i>a pass</i>")
    pear = store.search("pear pie", user="ann", k=1)[0].memory
    store.supersede([pear.id], "Ann bakes no pear pie any more", relation="updates")
    store.retire([store.list(user="bob<b>")[0].id], reason="sold")
    store.delete([store.list(user="bob<b>")[-1].id], reason="gone")
    ferns = ["Ann waters the old fern slowly today", "Ann waters the old fern slowly"]
    store.add_many([{"content": text, "user": "ann"} for text in ferns])
    for question in ("pear", "green tea", "bicycle", "<b>tea</b>"):
        store.search(question, k=3)
    return store


@pytest.fixture(scope="session")
def made(tmp_path_factory, embedder, ticking):
    """The store's report; tests only read it."""
    place = tmp_path_factory.mktemp("report")
    store = MemoryStore.open(
        place / "store", embedder=embedder, clock=ticking(), record_queries=True, upkeep=None
    )
    build(store)
    path = place / "report.html"
    result = store.report(path, question="green tea")
    return Made(store=store, path=path, result=result, html=path.read_text(encoding="utf-8"))
