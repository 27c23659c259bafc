"""Python values become conversations, or a clear error that quotes nothing of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lance_memory.errors import InvalidInputError, ScopeError
from lance_memory.ingest import Conversation, Message, Role, Surroundings, conversation
from lance_memory.ingest.formats import Normalise, role_of, tidy
from lance_memory.record.memory import Scope

AT = datetime(2025, 1, 31, 12, tzinfo=UTC)


def test_texts_messages_and_dicts_are_messages_of_one_conversation():
    given = [
        "I like tea",
        Message(content="Noted", role=Role.ASSISTANT),
        {"role": "human", "content": "Thanks"},
    ]
    assert conversation(given) == Conversation(
        messages=(
            Message(content="I like tea"),
            Message(content="Noted", role=Role.ASSISTANT),
            Message(content="Thanks"),
        )
    )
    assert conversation("I like tea") == conversation(["I like tea"])
    assert conversation({"role": "user", "content": "I like tea"}) == conversation(["I like tea"])
    assert conversation(iter(["I like tea"])) == conversation(["I like tea"])


def test_a_conversation_is_itself_in_the_scope_asked_for():
    one = Conversation(messages=(Message(content="tea"),), scope=Scope(user="ann"))
    assert conversation(one) == one
    made = conversation(one, scope=Scope(tenant="t"), source="billing", domain="education")
    assert made.scope == Scope(tenant="t", user="ann")
    assert (made.source, made.domain) == ("billing", "education")
    with pytest.raises(ScopeError):
        conversation(one, scope=Scope(user="bob"))


def test_the_shapes_of_chat_services_are_read():
    request = {
        "model": "any",
        "user": "u1",
        "messages": [
            {"role": "developer", "content": "Be kind"},
            {
                "role": "user",
                "name": "Ann",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "x"}},
                    {"type": "input_text", "text": "Tell me."},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
            {"role": "tool", "tool_call_id": "c", "content": "a cat"},
            {"role": "assistant", "content": None, "refusal": "I cannot"},
        ],
    }
    assert conversation(request) == Conversation(
        messages=(
            Message(content="Be kind", role=Role.SYSTEM),
            Message(content="What is this?\nTell me.", actor="Ann"),
            Message(content="", role=Role.ASSISTANT),
            Message(content="a cat", role=Role.TOOL),
            Message(content="I cannot", role=Role.ASSISTANT),
        ),
        scope=Scope(user="u1"),
    )
    shared = {
        "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    }
    assert [str(m.role) for m in conversation(shared).messages] == ["user", "assistant"]


def test_what_it_writes_as_json_it_reads_again():
    one = Conversation(
        messages=(Message(content="tea", actor="Ann", at=AT, seq=3, ref="m3"),),
        scope=Scope(tenant="t", session="s"),
        source="billing",
        domain="education",
    )
    assert conversation(one.to_json()) == one


def test_times_are_aware_texts_seconds_or_moments():
    east = AT.astimezone(timezone(timedelta(hours=3)))
    given = ["2025-01-31T12:00:00Z", "2025-01-31T15:00+03:00", int(AT.timestamp()), AT, east]
    made = conversation([{"content": "x", "timestamp": at} for at in given])
    assert {message.at for message in made.messages} == {AT}
    for naive in ("2025-01-31T12:00:00", datetime(2025, 1, 31)):
        with pytest.raises(InvalidInputError, match=r"message 0: .*no time zone"):
            conversation([{"content": "x", "at": naive}])


@pytest.mark.parametrize(
    "given",
    [
        None,
        3,
        b"secret words",
        [b"secret words"],
        [["secret words"]],
        [{"role": "user"}],
        [{"role": "user", "content": 3}],
        [{"role": "user", "content": [3]}],
        [{"role": "user", "content": [{"type": "text", "text": 3}]}],
        [{"role": "secret words", "content": "x"}],
        [{"role": 3, "content": "x"}],
        [{"content": "secret words", "at": "secret words"}],
        [{"content": "secret words", "at": 1e300}],
        [{"content": "secret words", "seq": -1}],
        [{"content": "secret words", "name": ["x"]}],
        {"messages": ["secret words"], "scope": {"team": "x"}},
        {"messages": ["secret words"], "user": 3.5},
    ],
)
def test_what_is_no_conversation_is_refused_without_a_word_of_it(given):
    with pytest.raises(InvalidInputError) as caught:
        conversation(given)
    assert "secret words" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_roles_have_the_names_that_chat_services_use():
    told = ["Human", " ai", "BOT", "model", "developer", "function", "system", "tool"]
    assert [str(role_of(name)) for name in told] == [
        "user", "assistant", "assistant", "assistant", "system", "tool", "system", "tool",
    ]  # fmt: skip


def test_texts_are_tidied_and_their_letters_kept():
    assert tidy("Cafe\u0301\x00 \t\r\nand\x07 tea  \n\n") == "Café\nand tea"
    assert tidy("\ufeff\ud800👩‍👩‍👧 naïve\u2028x") == "👩‍👩‍👧 naïve\nx"
    assert tidy(" \x00\n\t ") == ""
    assert tidy(tidy("a \r b\x85c")) == tidy("a \r b\x85c") == "a\n b\nc"


def test_messages_that_say_nothing_are_left_out_and_counted():
    around = Surroundings(now=AT, job="j", embed=None, known=lambda scope, n: [])
    told = conversation(["tea", " \x00 ", "", "Cafe\u0301 "])
    empty = conversation(["", " "])
    passed = Normalise()([told, empty, conversation(["x"])], around)
    assert [[m.content for m in one.messages] for one in passed.items] == [["tea", "Café"], ["x"]]
    assert [(d.verdict, d.reason, dict(d.figures)) for d in passed.decisions] == [
        ("discarded", "blank", {"messages": 2.0}),
        ("discarded", "empty", {"messages": 2.0}),
    ]
    assert Normalise()(passed.items, around).items == passed.items
