"""Conversations: who speaks, in which order, and where a long one is cut."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lance_memory import ExportOptions

DAY = datetime(2025, 3, 1, tzinfo=UTC)


def chats(view, tmp_path, name="x", **options):
    path = tmp_path / f"{name}.jsonl"
    view.export(path, ExportOptions(format="chat", **options))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def messages(view, tmp_path, **options):
    """(role, content) of each message, by example."""
    found = chats(view, tmp_path, **options)
    return [[(m["role"], m["content"]) for m in chat["messages"]] for chat in found]


def say(store, *turns, **where):
    store.add_many(
        {"content": content, "role": role, "seq": seq, **where}
        for seq, (role, content) in enumerate(turns)
    )


def test_a_session_is_one_example_in_the_order_of_time_then_seq(store, tmp_path):
    rows = [
        ("third", "user", DAY.replace(hour=2), None),
        ("second", "assistant", DAY.replace(hour=1), 2),
        ("first", "user", DAY.replace(hour=1), 1),
        ("zeroth", "system", DAY, 9),
    ]
    store.add_many(
        {"content": c, "role": r, "event_at": at, "seq": seq, "session": "s", "user": "ann"}
        for c, r, at, seq in rows
    )
    (chat,) = chats(store, tmp_path)
    assert chat["messages"] == [
        {"role": "system", "content": "zeroth"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "second"},
        {"role": "user", "content": "third"},
    ]
    ids = {m.content: m.id for m in store.list()}
    assert chat["metadata"] == {
        "sources": [ids[c] for c in ("zeroth", "first", "second", "third")],
        "tenant": "",
        "user": "ann",
        "agent": "",
        "session": "s",
        "run": "",
        "at": "2025-03-01T00:00:00+00:00",
        "quality": None,
    }


def test_turns_of_one_role_in_a_row_are_one_message(store, tmp_path):
    say(
        store,
        ("user", "a"),
        ("human", "b"),
        ("AI", "c"),
        ("assistant", "d"),
        ("user", "e"),
        session="s",
    )
    assert messages(store, tmp_path) == [
        [("user", "a\nb"), ("assistant", "c\nd"), ("user", "e")],
    ]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        # role, actor → chat role
        ([("user", "Ann"), ("assistant", "Bot")], ["user", "assistant"]),
        ([("Human", ""), ("ai", ""), ("function", ""), ("developer", "")], ["user", "assistant", "tool", "system"]),
        ([("", "user"), ("", "Assistant")], ["user", "assistant"]),
        ([("", "ann"), ("", "helper")], ["user", "assistant"]),
        ([("", "helper"), ("", "ann")], ["assistant", "user"]),
        ([("", "Joanna"), ("", "Nate"), ("", "Joanna"), ("", "Tim")], ["user", "assistant", "user", "assistant"]),
        ([("", "Nate"), ("user", "Joanna"), ("", "Joanna")], ["assistant", "user", "user"]),
        ([("", ""), ("", "Nate")], ["user", "assistant"]),
        ([("narrator", "Nate"), ("poet", "Joanna")], ["user", "assistant"]),
    ],
)  # fmt: skip
def test_who_speaks_follows_from_role_then_actor(store, tmp_path, turns, expected):
    store.add_many(
        {
            "content": f"turn{n}", "role": role, "actor": actor, "seq": n,
            "user": "ann", "agent": "helper", "session": "s",
        }
        for n, (role, actor) in enumerate(turns)
    )  # fmt: skip
    (found,) = messages(store, tmp_path)
    spoken = [(role, text) for role, content in found for text in content.split("\n")]
    assert spoken == [(role, f"turn{n}") for n, role in enumerate(expected)]


def test_what_has_no_session_or_no_answer_is_no_conversation(store, tmp_path):
    say(store, ("user", "hello"), ("assistant", "hi"))
    say(store, ("user", "is anybody there"), ("system", "no"), session="s")
    assert messages(store, tmp_path) == []


def test_grouped_by_user_sessions_stay_apart_and_the_rest_is_one(store, tmp_path):
    for session in ("one", "two", ""):
        say(
            store,
            ("user", f"q {session}"),
            ("assistant", f"a {session}"),
            session=session,
            user="ann",
        )
    assert messages(store, tmp_path, group_by="user") == [
        [("user", f"q {s}"), ("assistant", f"a {s}")] for s in ("one", "two", "")
    ]


def test_hidden_turns_are_not_said(store, tmp_path):
    say(store, ("user", "q"), ("assistant", "wrong"), ("assistant", "right"), session="s")
    store.retire(store.list()[1].id, reason="wrong")
    assert messages(store, tmp_path) == [[("user", "q"), ("assistant", "right")]]


@pytest.mark.parametrize(
    ("roles", "most", "expected"),
    [
        ("uaua", 4, ["uaua"]),
        ("uauaua", 4, ["uaua", "ua"]),
        ("uauaua", 3, ["ua", "ua", "ua"]),
        ("suauaua", 5, ["suaua", "ua"]),
        ("uuaauua", 2, ["uuaa", "uua"]),
        ("uatatata", 4, ["uata", "tata"]),
        ("uau", 2, ["ua"]),
        ("auaua", 2, ["a", "ua", "ua"]),
    ],
)
def test_a_long_conversation_is_cut_before_a_question(store, tmp_path, roles, most, expected):
    """A piece without an answer, such as a last question alone, is none."""
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    say(store, *((names[r], f"{r}{n}") for n, r in enumerate(roles)), session="s")
    found = messages(store, tmp_path, max_turns=most)
    pieces = ["".join(t[0] for _, c in piece for t in c.split("\n")) for piece in found]
    assert pieces == expected
    assert max(map(len, found)) <= most
    ids = [chat["id"] for chat in chats(store, tmp_path, "again", max_turns=most)]
    assert len(set(ids)) == len(ids)


def test_a_conversation_is_rated_by_its_worst_rated_turn(store, tmp_path):
    for session, ratings in (("good", (None, 0.9, 0.8)), ("bad", (1.0, 0.2, None)), ("none", ())):
        store.add_many(
            {"content": f"{session} {n}", "role": "assistant" if n else "user", "quality": q,
             "session": session, "seq": n}
            for n, q in enumerate([*ratings, None, None])
        )  # fmt: skip
    made = store.export(tmp_path / "a", ExportOptions(format="chat"), min_quality=0.8)
    (line,) = (tmp_path / "a" / "train.jsonl").read_text().splitlines()
    chat = json.loads(line)
    assert (chat["metadata"]["session"], chat["metadata"]["quality"]) == ("good", 0.8)
    assert len(chat["metadata"]["sources"]) == 5  # the turns that nobody rated too
    assert (made.counts.found, made.counts.low_quality, made.counts.examples) == (3, 2, 1)
