"""Secrets and personal data are out before anything else sees a conversation (C40)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.errors import InvalidInputError
from lance_memory.ingest import Conversation, Decision, Message, Surroundings
from lance_memory.ingest.redaction import Redact, RedactionPolicy, removed
from lance_memory.ingest.treatment import Remedy
from lance_memory.ledger import open_ledger
from lance_memory.record.memory import Scope
from lance_memory.redact import Finding, Redacted, StandardRedactor

NOW = datetime(2025, 1, 1, tzinfo=UTC)
KEY = b"0123456789abcdef"
VALUES = [
    "joe@example.com",
    "202-555-0143",
    "hunter22",
    "4111 1111 1111 1111",
    "DE89370400440532013000",
]
TOLD = [
    "Write to joe@example.com.",
    "Call me at 202-555-0143.",
    "My password is hunter22.",
    "Card 4111 1111 1111 1111 it is.",
    "IBAN DE89370400440532013000",
]


@pytest.fixture
def around():
    ledger = open_ledger(":memory:")
    yield around_of(ledger, secret=b"the store's own")
    ledger.close()


def around_of(ledger=None, **options):
    known = {"known": lambda scope, n: [], "ledger": ledger, **options}
    return Surroundings(now=NOW, job="job", embed=None, **known)


def talk(*texts, tenant="acme", **fields):
    messages = tuple(Message(content=text, **fields) for text in texts)
    return Conversation(messages=messages, scope=Scope(tenant=tenant))


def texts(passed):
    return [message.content for one in passed.items for message in one.messages]


def shown(passed):
    """Everything that a step hands on, as text."""
    items = [json.dumps(one.to_json(), ensure_ascii=False) for one in passed.items]
    return "\n".join([*items, repr(passed)])


def test_by_default_a_mask_stands_for_each_kind(around):
    passed = Redact()([talk(*TOLD)], around)
    assert texts(passed) == [
        "Write to [email].",
        "Call me at [phone].",
        "My password is [secret].",
        "Card [card] it is.",
        "IBAN [iban]",
    ]
    assert removed(passed.decisions) == {"card": 1, "email": 1, "iban": 1, "phone": 1, "secret": 1}
    assert not any(value in shown(passed) for value in VALUES)


def test_the_report_counts_by_event_and_kind(around):
    message = Message(content="a@example.com, b@example.com, 202-555-0143", ref="m1")
    passed = Redact()([Conversation(messages=(message,))], around)
    assert passed.decisions == (
        Decision(
            step="redact",
            verdict="redacted",
            reason="sensitive",
            event="m1",
            figures={"email": 2.0, "phone": 1.0},
        ),
    )


def test_events_have_the_names_that_later_steps_give_them(around):
    passed = Redact()([talk("nothing here", "joe@example.com", "password: hunter22")], around)
    (one,) = passed.items
    assert [d.event for d in passed.decisions] == [one.event(at, job="job") for at in (1, 2)]


def test_what_has_nothing_in_it_goes_on_as_it_is(around):
    conversation = talk("I like tea", "Order 4471229018 shipped", actor="Ann", ref="m-1")
    passed = Redact()([conversation], around)
    assert passed.items == (conversation,)
    assert passed.decisions == ()


def test_a_value_found_once_is_removed_wherever_it_stands(around):
    passed = Redact()(
        [talk("password: hunter22", "Yes, hunter22 works", "hunter22x is not it")], around
    )
    assert texts(passed) == ["password: [secret]", "Yes, [secret] works", "[secret]x is not it"]


def test_the_same_value_has_the_same_hash_within_a_tenant_only(around):
    step = Redact(RedactionPolicy(default="hash"))
    told = ["mail Joe@Example.com", "joe@example.com again", "ann@example.com"]
    first, second, other = texts(step([talk(*told)], around))
    assert first.startswith("mail [email:")
    assert first.removeprefix("mail ") == second.removesuffix(" again")
    assert other != second.removesuffix(" again")
    assert texts(step([talk(told[1], tenant="b")], around)) != [second]
    assert texts(Redact(RedactionPolicy(default="hash"))([talk(told[1])], around)) == [second]


def test_a_phone_or_card_is_the_same_however_it_is_grouped(around):
    step = Redact(RedactionPolicy(default="hash"))
    a, b = texts(step([talk("4111 1111 1111 1111", "4111111111111111")], around))
    c, d = texts(step([talk("call 202-555-0143", "call (202) 555-0143")], around))
    assert (a, c) == (b, d)


def test_a_given_key_makes_the_same_marks_without_a_ledger():
    step = Redact(RedactionPolicy(default="hash"), key=KEY)
    marks = texts(step([talk("a@example.com")], around_of()))
    assert marks == texts(
        Redact(RedactionPolicy(default="hash"), key=KEY)([talk("a@example.com")], around_of())
    )
    assert marks != texts(
        Redact(RedactionPolicy(default="hash"), key=KEY[::-1])([talk("a@example.com")], around_of())
    )


def test_marks_are_of_the_store_whatever_ledger_stands_beside_it(around):
    step = Redact(RedactionPolicy(default="hash"))
    marks = texts(step([talk("a@example.com")], around))
    assert texts(step([talk("a@example.com")], around_of(secret=around.secret))) == marks
    assert texts(step([talk("a@example.com")], around_of(secret=b"another store's"))) != marks
    assert list(around.ledger.items("redact")) == []


def test_without_a_key_or_a_store_marks_are_of_one_call_alone_and_nothing_goes_through():
    passed = Redact(RedactionPolicy(default="hash"))(
        [talk("a@example.com"), talk("tea")], around_of()
    )
    assert [text.partition(":")[0] for text in texts(passed)] == ["[email", "tea"]
    again = Redact(RedactionPolicy(default="hash"))([talk("a@example.com")], around_of())
    assert texts(again) != texts(passed)[:1]


def test_hashed_marks_are_not_redacted_again(around):
    step = Redact(RedactionPolicy(default="hash"))
    once = step([talk(*TOLD, "PIN: 4821, and password = s3same!")], around)
    assert step(once.items, around).items == once.items
    assert Redact()(once.items, around).items == once.items


def test_a_sentence_can_go_or_a_whole_message(around):
    policy = RedactionPolicy(kinds={"phone": "drop", "secret": "drop_message"})
    told = [
        "I like tea. Call 202-555-0143 now! Bye.",
        "I am here. My password is hunter22.",
        "202-555-0143",
    ]
    passed = Redact(policy)([talk(*told)], around)
    assert texts(passed) == ["I like tea. Bye."]
    assert [(d.verdict, dict(d.figures)) for d in passed.decisions] == [
        ("redacted", {"phone": 1.0}),
        ("dropped", {"secret": 1.0}),
        ("dropped", {"phone": 1.0}),
    ]


def test_a_dropped_secret_goes_whole_though_it_reads_like_two_sentences(around):
    policy = RedactionPolicy(kinds={"secret": "drop"})
    passed = Redact(policy)(
        [talk('Tea is fine. password = "one two. three four" ok. Bye.')], around
    )
    assert texts(passed) == ["Tea is fine. Bye."]


def test_a_conversation_of_which_nothing_is_left_is_refused(around):
    passed = Redact(RedactionPolicy(default="drop_message"))([talk("joe@example.com")], around)
    assert passed.items == ()
    assert [(d.verdict, d.reason) for d in passed.decisions] == [
        ("dropped", "sensitive"),
        ("refused", "nothing_left"),
    ]


def test_a_kind_can_refuse_the_conversation_and_only_that_one(around):
    policy = RedactionPolicy(kinds={"email": "refuse", "secret": "refuse"})
    passed = Redact(policy)([talk("joe@example.com"), talk("tea"), talk(*TOLD)], around)
    assert texts(passed) == ["tea"]
    assert passed.decisions == (
        Decision(
            step="redact", verdict="refused", reason="sensitive_email", figures={"email": 1.0}
        ),
        Decision(
            step="redact",
            verdict="refused",
            reason="sensitive_secret",
            figures={"email": 1.0, "secret": 1.0},
        ),
    )


def test_a_kept_kind_stays_and_is_not_counted(around):
    passed = Redact(RedactionPolicy(kinds={"email": "keep"}))(
        [talk("joe@example.com, 202-555-0143")], around
    )
    assert texts(passed) == ["joe@example.com, [phone]"]
    assert removed(passed.decisions) == {"phone": 1}


def test_tenants_have_policies_of_their_own(around):
    step = Redact(tenants={"bank": RedactionPolicy(kinds={"iban": Remedy.KEEP, "email": "refuse"})})
    assert texts(step([talk(TOLD[4], tenant="bank")], around)) == [TOLD[4]]
    assert texts(step([talk(TOLD[0], tenant="bank")], around)) == []
    assert texts(step([talk(TOLD[4])], around)) == ["IBAN [iban]"]


def test_actors_and_refs_that_hold_a_value_become_hashes_and_stay_apart(around):
    fields = [
        ("joe@example.com", "<1@example.com>"),
        ("ann@example.com", "<2@example.com>"),
        ("Bob", "m3"),
    ]
    messages = tuple(Message(content="tea", actor=actor, ref=ref) for actor, ref in fields)
    for policy in (
        RedactionPolicy(),
        RedactionPolicy(default="drop"),
        RedactionPolicy(default="hash"),
    ):
        passed = Redact(policy)([Conversation(messages=messages)], around)
        (one,) = passed.items
        assert len({message.actor for message in one.messages}) == 3
        assert len({message.ref for message in one.messages}) == 3
        assert (one.messages[2].actor, one.messages[2].ref) == ("Bob", "m3")
        assert "example.com" not in shown(passed)
        assert passed.decisions[-1].reason == "name"
        again = Redact(policy)([Conversation(messages=messages)], around)
        assert again.items == passed.items


def test_the_scope_is_the_callers_own_unless_the_policy_says_otherwise(around):
    scope = Scope(tenant="a@example.com", user="joe@example.com", session="s1")
    conversation = replace(talk("tea"), scope=scope)
    assert Redact()([conversation], around).items == (conversation,)
    (hashed,) = Redact(RedactionPolicy(scope="hash"))([conversation], around).items
    assert hashed.scope.user.startswith("[email:")
    assert (hashed.scope.tenant, hashed.scope.session) == ("a@example.com", "s1")
    refused = Redact(RedactionPolicy(scope="refuse"))([conversation], around)
    assert [d.reason for d in refused.decisions] == ["sensitive_email"]


class Raises:
    def redact(self, text):
        raise ValueError(f"cannot read {text}")


class Hides:
    """Changes what it does not report."""

    def redact(self, text):
        return Redacted(text=text.replace("plum", "****"))


class Misses:
    """Says places that are not in the text."""

    def redact(self, text):
        return Redacted(text="[x]", found=(Finding(kind="x", start=3, end=10_000),))


class Nothing:
    def redact(self, text):
        return None


@pytest.mark.parametrize("redactor", [Raises(), Hides(), Misses(), Nothing()])
def test_a_redactor_that_fails_lets_nothing_through_and_says_nothing(redactor, around, caplog):
    passed = Redact(redactor=redactor)([talk("a plum and joe@example.com")], around)
    assert passed.items == ()
    assert passed.decisions == (
        Decision(step="redact", verdict="refused", reason="redaction_failed"),
    )
    assert "plum" not in shown(passed)
    assert caplog.text == ""


class Plums:
    """A redactor of one's own, with a kind of its own."""

    def redact(self, text):
        at = text.find("plum")
        if at < 0:
            return Redacted(text=text)
        rest = text[:at] + "<fruit>" + text[at + 4 :]
        return Redacted(text=rest, found=(Finding(kind="fruit", start=at, end=at + 4),))


def test_a_redactor_of_ones_own_brings_its_own_kinds(around):
    step = Redact(RedactionPolicy(kinds={"fruit": "mask"}), redactor=Plums())
    passed = step([talk("a plum, a plum and a pear")], around)
    assert texts(passed) == ["a [fruit], a [fruit] and a pear"]
    assert removed(passed.decisions) == {"fruit": 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda: RedactionPolicy(default="burn"),
        lambda: RedactionPolicy(kinds={"email": "hide"}),
        lambda: RedactionPolicy(scope="mask"),
        lambda: Redact(key=b"short"),
        lambda: Redact(redactor=StandardRedactor),
    ],
)
def test_policies_and_keys_that_make_no_sense_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()


PIECES = st.sampled_from([*TOLD, *VALUES, " ", ". ", "tea", "password: ", "[email]", "\n", "x"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=4), st.sampled_from(Remedy))
def test_whatever_the_remedy_nothing_that_is_found_goes_on(told, remedy):
    step = Redact(RedactionPolicy(default=remedy), key=KEY)
    passed = step([talk(*told)], around_of())
    if remedy is Remedy.KEEP:
        assert texts(passed) == told
        return
    for text in texts(passed):
        assert StandardRedactor().redact(text).text == text
    assert step(passed.items, around_of()).items == passed.items
