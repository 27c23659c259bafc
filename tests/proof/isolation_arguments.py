"""What the isolation test calls each public verb with: first what it needs, then what is another's.

A verb or a parameter that is new is not in these tables, and fails the test by its name. Entries
are found by "Class.verb" or "verb", and by "Class.verb.parameter", "verb.parameter" or "parameter".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from isolation_kit import LEVELS, SCOPES, START, TAG, id_of, number_of, secret

from lance_memory import (
    ConsolidateOptions,
    Decay,
    Episode,
    Interaction,
    Kind,
    Message,
    Ranking,
    Relationship,
    Scope,
    State,
    WorkspacePart,
)

ASK = "who likes green tea by the river"
FADES = Decay(half_life=timedelta(days=9))
FREELY = ConsolidateOptions(min_similarity=-1.0, max_dropped=1.0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One handle, its own memories, and neighbours with names that are near to its own.

    Attributes:
        store: the owner's handle.
        handle: the scoped one.
        level: at which the neighbours differ.
        out: a path where nothing is.
        made: what is made once for the handle, such as an archive of everything.
    """

    store: Any
    handle: Any
    level: str
    out: Path
    made: dict = field(default_factory=dict)

    @property
    def number(self):
        return number_of(self.level, "a")

    @property
    def own(self):
        return id_of(self.number, 0)

    @property
    def session(self):
        return SCOPES[self.number]["session"]

    @property
    def other(self):
        """The number of the neighbour whose name begins with the handle's own."""
        return number_of(self.level, "ab")

    @property
    def theirs(self):
        """The neighbour's handle."""
        return self.store.scoped(**SCOPES[self.other])


def of_other(place):
    return lambda case: [id_of(case.other, place)]


def said(words="likes green tea"):
    """Words of another, without his secret: what is written down is the handle's own from then."""
    return lambda case: [f"{words} and more"]


def refs(case):
    """Ids, beginnings of ids and keys of another; and a key that the handle has too."""
    other = case.other
    return [id_of(other, 0), id_of(other, 7), f"mem-{other:03d}-", f"drink-{other:03d}"]


def several(case):
    return [[case.own, id_of(case.other, 0)], *refs(case)[2:], "mem-"]


def whens(case):
    newest = case.store.version
    return [newest, newest - 2, f"tag-{secret(TAG)}", START + timedelta(days=1)]


def numbers(case):
    return [case.store.version - 1, 3]


def vectors(case):
    return [case.store.get(id_of(case.other, 0)).embedding]


def names(level):
    """Names of others at a level."""
    return lambda case: ["ab", "A"] if level in ("tenant", "user") else ["ab", "%"]


def one(value):
    return lambda case: [value]


def message(case):
    return Message(content=said()(case)[0], ref=f"ref-{case.other}")


WHERE = {
    **{f"where.{level}": names(level) for level in LEVELS},
    "where.kinds": one(list(Kind)),
    "where.states": lambda case: ["any", list(State)],
    "where.tags": lambda case: ["shared", f"tag-{secret(case.other)}"],
    "where.metadata": one({"shared": 1}),
    "where.actor": one("Ana"),
    "where.role": one("user"),
    "where.source": one("user"),
    "where.key": lambda case: [f"drink-{case.other:03d}", "profile:city"],
    "where.since": one(START - timedelta(days=1)),
    "where.until": one(START + timedelta(days=1)),
    "where.valid_at": one(START),
    "where.min_importance": one(0.0),
    "where.min_quality": one(0.0),
    "where.memory": of_other(0),
}

FIELDS = {
    **{f"fields.{level}": names(level) for level in LEVELS},
    "fields.id": of_other(0),
    "fields.key": lambda case: [f"drink-{case.other:03d}"],
    "fields.kind": one("workspace"),
    "fields.state": one("pending"),
    "fields.relationships": lambda case: [
        [
            Relationship(relation=relation, target=id_of(case.other, 0))
            for relation in ("consolidates", "contradicts", "updates")
        ]
    ],
}

TOGETHER = {
    "fields.embedding": lambda case: vectors(case)[0],
    "fields.metadata": lambda case: {"user": "ab", "tenant": "ab", "scope": {"user": "ab"}},
    "fields.tags": lambda case: ["shared"],
    **{f"fields.{name}": lambda case: "Ana" for name in ("role", "actor", "source", "source_ref")},
}
"""Parameters that are set to another's in one call: nothing is looked up by what they say."""

PARAMETERS = {
    **WHERE,
    **FIELDS,
    **{f"{word}.{level}": names(level) for level in LEVELS for word in ("levels", "whose")},
    "levels": lambda case: [{case.level: "ab"}, {case.level: "%"}],
    "ref": refs,
    "refs": several,
    "ids": several,
    "sources": several,
    "about": several,
    "key": lambda case: [f"drink-{case.other:03d}", "procedure:brew", "profile:%"],
    "upsert_many.memories": lambda case: [
        [{"content": said()(case)[0], "key": f"drink-{case.other:03d}"}],
        [{"content": "x", "key": "k", case.level: "ab"}],
        [{"content": "x", "key": "k", "id": id_of(case.other, 0)}],
    ],
    "upsert_many.expected": lambda case: [[id_of(case.other, 3)]],
    "upsert_many.retire": several,
    "upsert_many.made_from": lambda case: [[case.store.get(id_of(case.other, 0))]],
    "expected": lambda case: [id_of(case.other, 3), ""],
    "when": whens,
    "before": whens,
    "report.at": whens,
    "question": said(),
    "after": whens,
    "around.before": one(99),
    "around.after": one(99),
    "version": numbers,
    "query": lambda case: [ASK, "% * _", *said()(case)],
    "queries": lambda case: [[ASK, *said("hates tea")(case)]],
    "vector": vectors,
    "vectors": lambda case: [[vector] for vector in vectors(case)],
    "mode": lambda case: ["vector", "text", "hybrid"],
    "ranking": one(Ranking(decay=FADES)),
    "content": said(),
    "memories": lambda case: [
        said()(case),
        [{"content": "x", case.level: "ab"}],
        [{"content": "x", "id": id_of(case.other, 0)}],
        [{"content": "x", "state": "superseded", "superseded_by": id_of(case.other, 0)}],
        case.store.to_arrow(**{case.level: "ab"}).slice(0, 2),
    ],
    "successor": said(),
    "relation": lambda case: ["contradicts", "superseded_by"],
    "messages": lambda case: [said()(case)],
    "tenant": names("tenant"),
    "quota.tenant": one("ab"),
    "idempotency_key": lambda case: [f"key-{case.level}"],
    "conversation": lambda case: [],
    "with_": lambda case: [Scope(tenant="t", user="ab"), Scope(tenant="ab", user="a")],
    "share.where.tags": one("shared"),
    "share.where.key": one("profile:city"),
    "grant": lambda case: [case.theirs.sharing.granted()[0], case.theirs.sharing.granted()[0].id],
    "session": lambda case: ["ab", "%"],
    "user_input": said("I like"),
    "agent_output": said("you like"),
    "interactions": lambda case: [
        [Interaction(session="ab", user_input=said()(case)[0], ref=f"ref-{case.other}")]
    ],
    "episodes": lambda case: [
        [Episode(content=said()(case)[0], session="ab", ref=f"ref-{case.other}")]
    ],
    "message": lambda case: [message(case)],
    "append_many.messages": lambda case: [[message(case)]],
    "values": lambda case: [{"topic": "tea"}],
    "context": said("boil, wait, pour"),
    "steps": lambda case: [["boil, wait, pour"]],
    "name": lambda case: ["brew", "system"],
    "fact_key": lambda case: ["city", "%"],
    "value": one("Lyon"),
    "text": said(),
    "part": lambda case: list(WorkspacePart),
    "day": one(date(2025, 1, 1)),
    "topic": lambda case: ["tea", secret(case.other)],
    "tag": lambda case: ["shared", f"tag-{secret(case.other)}"],
    "id": lambda case: [job.id for job in case.store.jobs.list()],
    "Desk.get.ref": lambda case: [job.id for job in case.store.jobs.list()],
    "Desk.wait.ref": lambda case: [job.id for job in case.store.jobs.list()],
    "Desk.list.tenant": lambda case: ["t", "ab"],
    "scope": lambda case: [Scope(), Scope(user="ab")],
    "SemanticMemory.add.ref": lambda case: [f"ref-{case.other}"],
    "type": lambda case: ["", secret(case.other)],
    "directory": lambda case: [],
}
"""Values that are another's, or that reach for what is."""

UNVARIED = frozenset(
    [
        *("k", "n", "limit", "offset", "depth", "look", "batch_size", "sample", "seed", "revision"),
        *("below", "budget_tokens", "confidence", "importance", "min_importance", "min_users"),
        *("change.expected_version", "change.reason"),
        *("min_similarity", "expected_version", "seconds", "success", "priority", "seqs"),
        *("at", "since", "until", "timeout", "idle", "expires_at", "valid_from", "valid_to"),
        *("columns", "path", "reason", "dry_run", "progress", "upkeep", "reviews", "ended"),
        *("options", "transform", "execution", "guard", "bounds", "stop", "decay", "embed"),
        *("on_conflict", "successors", "wait", "ordered", "answer", "rights", "newest_first"),
        *("policy", "per_tenant", "archive", "fresh", "assessor", "replace_all", "enabled", "kind"),
        *("overwrite", "default", "states", "role", "actor", "tags", "metadata", "external"),
        *("plan", "whole", "whose.source", "whose.domain"),
        *(f"fields.{name}" for name in ("importance", "confidence", "quality", "seq", "event_at")),
        *(f"fields.{name}" for name in ("valid_from", "valid_to", "expires_at")),
    ]
)
"""Numbers, times, flags, functions, places, words that are written, and how, not whose; verbs that
do different things by them are called each way below."""


def plans(case):
    """Plans that the store's owner and a neighbour have made."""
    theirs = SCOPES[case.other]
    return [
        {"plan": case.theirs.consolidate(FREELY, guard=None, dry_run=True)},
        {"plan": case.store.consolidate(FREELY, guard=None, dry_run=True)},
        {"plan": case.theirs.plan_retirement(below=1.0, decay=FADES, **theirs)},
        {"plan": case.theirs.plan_retention()},
    ]


def archive(case):
    """Everything, as an archive."""
    if "archive" not in case.made:
        case.made["archive"] = case.out.with_name(f"{case.out.name}-archive")
        case.store.export_store(case.made["archive"])
    return case.made["archive"]


def of_own(*places):
    return lambda case: [{"ref": id_of(case.number, place)} for place in places]


def named(**more):
    return lambda case: [{"part": "prompt", "name": "tone", **more}]


NEEDED = {
    "add": lambda case: [{"content": "mine"}],
    "add_many": lambda case: [{"memories": ["mine"]}],
    "answer": lambda case: [
        {"ref": id_of(case.number, 6), "answer": word} for word in ("old", "new", "both")
    ],
    "apply": plans,
    "approve": lambda case: [{"refs": id_of(case.number, 6)}],
    "archive": lambda case: [{"path": case.out / "x.jsonl"}],
    "around": lambda case: [{"ids": [case.own]}],
    "at": lambda case: [{"when": case.store.version}],
    "changed_since": lambda case: [{"version": case.store.version}],
    "clarifications": lambda case: [{}, {"reviews": True}],
    "cleaned": lambda case: [],
    "consolidate": lambda case: [
        {"options": FREELY, "guard": None, "dry_run": dry} for dry in (True, False)
    ],
    "delete": lambda case: [{"refs": case.own}],
    "diff": lambda case: [{"before": 2}],
    "embeddings": lambda case: [{"ids": [case.own]}],
    "export": lambda case: [{"path": case.out / "x.jsonl"}],
    "export_store": lambda case: [{"path": case.out / "archive"}],
    "find": of_own(0),
    "forget": lambda case: [{"dry_run": True}, {"successors": True, "dry_run": True}],
    "get": of_own(0),
    "hibernate": lambda case: [{"idle": timedelta(0)}],
    "history": of_own(0, 2, 7, 10),
    "import_store": lambda case: [
        {"path": archive(case), "on_conflict": how, "dry_run": dry}
        for how in ("refuse", "skip", "fresh")
        for dry in (True, False)
    ],
    "ingest": lambda case: [
        {"messages": "I live in Rome.", "wait": False, "idempotency_key": "mine"},
        {"messages": "I live in Oslo."},
        {"messages": "I live in Oslo.", "dry_run": True},
    ],
    "lineage": of_own(0, 2, 7),
    "log": lambda case: [{}, {"upkeep": True}],
    "plan_retirement": lambda case: [{"below": 1.0, "decay": FADES}],
    "promote": lambda case: [{"memories": [{"content": "x", "id": id_of(case.other, 2)}]}],
    "proxy_user": lambda case: [{"tenant": SCOPES[case.number]["tenant"], "external": "me"}],
    "reject": lambda case: [{"refs": id_of(case.number, 6)}],
    "related": lambda case: [{"ref": id_of(case.number, p), "depth": 9} for p in (0, 2, 6, 7)],
    "report": lambda case: [{"path": case.out / "x.html"}],
    "retain": lambda case: [{"archive": None}],
    "revert": lambda case: [{"version": 3}, {"version": 4, "dry_run": True}],
    "rollback": lambda case: [{"version": 2}, {"version": 2, "dry_run": True}],
    "scoped": lambda case: [{"session": case.session}],
    "search": lambda case: [{"query": ASK, "k": 50}],
    "search_many": lambda case: [{"queries": [ASK, "tea"], "states": "any", "k": 50}],
    "sql": lambda case: [{"query": "SELECT * FROM memories"}],
    "supersede": lambda case: [{"sources": [case.own], "successor": "likes tea still"}],
    "update": lambda case: [{"ref": case.own, "importance": 0.7}],
    "upsert": lambda case: [{"content": "boil and pour", "key": "procedure:brew"}],
    "upsert_many": lambda case: [{"memories": [{"content": "boil", "key": "procedure:brew"}]}],
    "Desk.get": lambda case: [{"ref": "x"}],
    "Desk.find": lambda case: [{"id": "x"}],
    "Desk.wait": lambda case: [{"ref": "x", "timeout": 0.01}],
    "Desk.within": lambda case: [{"scope": Scope(user="ab")}],
    "Sharing.share": lambda case: [
        {"with_": {"user": "nobody"}, "tags": "shared"},
        {"with_": {"user": "nobody"}, "refs": case.own, "dry_run": True},
    ],
    "Sharing.granted": lambda case: [{}, {"ended": True}],
    "Sharing.revoke": lambda case: [{"grant": "x"}],
    "Agent.context": lambda case: [{"session": case.session, "query": ASK}],
    "Agent.distill": lambda case: [{"session": case.session}],
    "Agent.flush": lambda case: [{"session": case.session}],
    "Agent.observe": lambda case: [{"session": case.session, "user_input": "I like figs."}],
    "Agent.observe_many": lambda case: [
        {"interactions": [Interaction(session=case.session, user_input="I like figs.")]}
    ],
    "WorkingMemory.append": lambda case: [
        {"session": case.session, "message": Message(content="I like figs.")}
    ],
    "WorkingMemory.append_many": lambda case: [
        {"session": case.session, "messages": [Message(content="I like figs.")]}
    ],
    "WorkingMemory.append_message": lambda case: [
        {"session": case.session, "role": "user", "content": "I like figs."}
    ],
    **{
        f"WorkingMemory.{verb}": lambda case: [{"session": case.session}]
        for verb in ("clear", "context", "flush", "recent")
    },
    "WorkingMemory.set_context": lambda case: [{"session": case.session, "values": {"a": 1}}],
    "EpisodicMemory.add_many": lambda case: [{"episodes": [Episode(content="we met")]}],
    "EpisodicMemory.recall": lambda case: [{"query": ASK, "k": 50}],
    "SemanticMemory.recall": lambda case: [{"query": ASK, "k": 50}],
    "SemanticMemory.about": of_own(0),
    "SemanticMemory.correct": lambda case: [{"ref": case.own, "content": "likes black tea"}],
    "ProceduralMemory.across_users": lambda case: [{"min_users": 2}],
    "ProceduralMemory.best": lambda case: [{"context": "boil, wait, pour", "k": 50}],
    "ProceduralMemory.find": lambda case: [{"name": "tidy"}],
    "ProceduralMemory.get": lambda case: [{"name": "tidy"}],
    "ProceduralMemory.learn": lambda case: [{"name": "tidy", "context": "a desk", "steps": ["x"]}],
    "ProceduralMemory.record": lambda case: [{"name": "tidy", "success": True}],
    **{
        f"ProfileMemory.{verb}": lambda case: [{"fact_key": "food"}]
        for verb in ("find", "get", "history", "remove")
    },
    "ProfileMemory.set": lambda case: [{"fact_key": "food", "value": "figs"}],
    "Distiller.distill": lambda case: [{}, {"dry_run": True}],
    "Distiller.snapshot": lambda case: [{"session": case.session}],
    "Dreamer.once": lambda case: [{"dry_run": True}, {}],
    **{
        f"{cls}.{verb}": made
        for cls in ("Workspace", "WorkspaceView")
        for verb, made in {
            "diff": named(before=1),
            "export_files": lambda case: [{"directory": case.out / "files"}],
            "find": named(),
            "get": named(),
            "history": named(),
            "flag": lambda case: [{"name": "beta"}],
            "policy": lambda case: [{"name": "keep"}],
            "prompt": lambda case: [{"name": "tone"}, {}],
            "skills": lambda case: [{}],
        }.items()
    },
    "Workspace.apply": lambda case: [],
    "Workspace.import_files": lambda case: [],
    "Workspace.enable": lambda case: [{"name": "search"}],
    "Workspace.disable": lambda case: [{"name": "search"}],
    "Workspace.plan": named(value="be kind"),
    "Workspace.remove": named(),
    "Workspace.rollback": named(version=1),
    "Workspace.set": named(value="be kind"),
    "Workspace.set_flag": lambda case: [{"name": "beta", "value": True}],
    "Workspace.set_memory_mode": lambda case: [{"mode": "vector"}],
    "Workspace.set_policy": lambda case: [{"name": "keep", "value": {"days": 9}}],
    "Workspace.set_prompt": lambda case: [{"name": "tone", "text": "be kind"}],
    "Workspace.set_skill": lambda case: [{"name": "search", "text": "look twice"}],
}
"""What each verb needs: one set of arguments or several, all of them the handle's own."""

PLAIN = frozenset(
    [
        *(
            "author",
            "branch_name",
            "clock",
            "count",
            "damage",
            "duckdb",
            "embed_missing",
            "embedder",
        ),
        *(
            "expire",
            "forget_queries",
            "history_frame",
            "index",
            "index_recall",
            "iter",
            "jobs",
            "list",
            "pending",
        ),
        *("plan_retention", "queries", "query_log", "quota", "retire", "scope", "sharing", "stats"),
        *(
            "store_id",
            "to_arrow",
            "to_polars",
            "unretire",
            "uri",
            "usage",
            "version",
            "versions_frame",
        ),
        *("Sharing.received", "Desk.list", "Dreamer.status"),
        *(f"Dreamer.{name}" for name in ("BOUNDS", "EXECUTION", "TRIGGERS")),
        *(f"WorkingMemory.{name}" for name in ("IDLE", "TTL", "sessions")),
        *("ProfileMemory.all", "store", "working", "episodic", "semantic", "procedural"),
        *("profile", "workspace", "Workspace.state", "WorkspaceView.state", "memory_mode"),
    ]
)
"""Properties, and verbs that need nothing."""

REFUSED = {
    "backup": {"target": "x"},
    "branch": {"name": "b"},
    "branches": {},
    "build_index": {},
    "checkout": {"version": 2, "path": "x"},
    "merge": {"branch": "b"},
    "delete_branch": {"name": "b"},
    "doctor": {},
    "finish_forgetting": {},
    "lancedb_table": {},
    "ledger": None,
    "optimize": {},
    "order": None,
    "quotas": {},
    "reembed": {"embedder": None},
    "skip_events": {"tenant": "t", "first": 1, "last": 2},
    "tag": {"name": "t"},
    "tags": {},
    "unfinished_forgetting": {},
    "untag": {"name": "t"},
    "upkeep_status": {},
    "wait_for_upkeep": {},
    "worker": {},
    "Desk.accept": {"payload": []},
    "Desk.concerned": {"scope": Scope(user="ab"), "words": None},
    "Desk.forget": {"scope": Scope(user="ab")},
    "Desk.forget_words": {"words": None},
    "Desk.hold": {"id": "x", "answer": {}},
    "Desk.purge": {},
    "Desk.queue": None,
    "Desk.records": None,
    "Desk.release": {"ids": ["x"]},
    "Desk.retry": {"refs": ["x"]},
    "Desk.settle": {"id": "x", "answer": {}},
}
"""What concerns the whole store: a scoped handle raises ScopeError. None: a property."""

ENDS = {
    "close": "waits for what runs, and records no more queries",
    "open": "makes the handle",
    "Dreamer.start": "calls `once` by and by",
    "Dreamer.stop": "ends that",
}
"""What is not of one scope, and why."""

EVERY_FILTER = frozenset(["list", "search"])
STRONG = frozenset(["where.tenant", "where.user", "where.states", "where.tags", "where.memory"])
"""Of the filters, which every verb takes by the same code, the others are tried with these."""

REWRITES = frozenset(["forget"])
"""Takes rows out of earlier versions, which is what it is for."""

TOLD = {"forget": ("a plan names the tags and branches that it rewrites, or goes on without",)}
"""Verbs that tell the owner's names of versions, and why."""


def entry(table, surface, *names):
    """What a table has of a name, the most particular first; None: nothing."""
    keys = [".".join([surface, *names]), ".".join(names), names[-1]]
    return next((table[key] for key in keys if key in table), None)


def known(table, surface, *names):
    keys = {".".join([surface, *names]), ".".join(names), names[-1]}
    return any(key in table for key in keys)
