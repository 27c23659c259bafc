"""Files become conversations, one after the other; what is wrong names the file and line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice

import pytest

from lance_memory.errors import InvalidInputError, NotFoundError, ScopeError, StorageError
from lance_memory.ingest import Conversation, Message, Role, read_conversations
from lance_memory.record.memory import Scope


def told(*lines, **options):
    """(name or role, text) of each message, by conversation."""
    return [
        [(m.actor or str(m.role), m.content) for m in one.messages]
        for one in read_conversations(lines, **options)
    ]


def at(*when):
    return datetime(*when, tzinfo=UTC)


def test_a_line_is_a_conversation(tmp_path):
    file = tmp_path / "f.jsonl"
    lines = [
        {"messages": [{"role": "user", "content": f"tea {n}"}], "session": f"s{n}"}
        for n in range(3)
    ]
    file.write_text("\n\n".join(map(json.dumps, lines)), encoding="utf-8-sig")
    found = list(read_conversations(file, scope=Scope(tenant="t"), source="billing", domain="d"))
    assert found == [
        Conversation(
            messages=(Message(content=f"tea {n}"),),
            scope=Scope(tenant="t", session=f"s{n}"),
            source="billing",
            domain="d",
        )
        for n in range(3)
    ]


def test_lines_that_are_messages_are_gathered_while_their_scope_is_the_same():
    lines = [
        '{"role": "user", "content": "a", "session": "1", "seq": 0}',
        '{"role": "ai", "content": "b", "session": "1", "seq": 1}',
        '{"role": "user", "content": "c", "session": "2", "seq": 2}',
        '{"messages": [{"content": "d"}]}',
        '{"role": "user", "content": "e", "session": "2"}',
    ]
    assert told(*lines) == [
        [("user", "a"), ("assistant", "b")],
        [("user", "c")],
        [("user", "d")],
        [("user", "e")],
    ]


def test_no_conversation_of_single_messages_is_longer_than_a_thousand():
    found = told(*(f'{{"content": "{n}"}}' for n in range(2_001)))
    assert [len(one) for one in found] == [1_000, 1_000, 1]
    found = told(*(f"Ann: {n}" for n in range(1_001)))
    assert [len(one) for one in found] == [1_000, 1]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_a_conversation_or_a_list_of_them_or_of_messages(indent):
    message = {"role": "user", "content": "tea"}
    for document, found in [
        ({"messages": [message]}, [[("user", "tea")]]),
        ([{"messages": [message]}, {"messages": [message]}], [[("user", "tea")]] * 2),
        ([message, message], [[("user", "tea"), ("user", "tea")]]),
    ]:
        assert told(*json.dumps(document, indent=indent).splitlines()) == found


def test_a_transcript_has_names_stamps_and_lines_that_go_on():
    lines = [
        "[2024-05-01 10:00] Ann Lee: I moved to Lisbon.",
        "It is warm.",
        "[2024-05-01T10:01:30+02:00] Bot: Noted: warm.",
        "2024-05-01 10:02 - O'Neil: Hi",
        "human: see https://example.com at 10:30",
    ]
    assert list(read_conversations(lines)) == [
        Conversation(
            messages=(
                Message(
                    content="I moved to Lisbon.\nIt is warm.",
                    actor="Ann Lee",
                    at=at(2024, 5, 1, 10),
                ),
                Message(content="Noted: warm.", role=Role.ASSISTANT, at=at(2024, 5, 1, 8, 1, 30)),
                Message(content="Hi", actor="O'Neil", at=at(2024, 5, 1, 10, 2)),
                Message(content="see https://example.com at 10:30"),
            )
        )
    ]


def test_sessions_end_at_rules_dates_and_blank_lines():
    lines = [
        "Ann: a",
        "Bob: b",
        "",
        "Ann: c",
        "---",
        "Ann: d",
        "# 2024-05-01",
        "Ann: e",
        "[9:05] Bob: f",
    ]
    found = list(read_conversations(lines))
    assert [[m.content for m in one.messages] for one in found] == [
        ["a", "b"],
        ["c"],
        ["d"],
        ["e", "f"],
    ]
    assert [m.at for m in found[3].messages] == [at(2024, 5, 1), at(2024, 5, 1, 9, 5)]
    assert found[0].messages[0].at is None


def test_blank_lines_between_all_messages_end_no_session():
    assert told("Ann: a", "", "Bob: b", "", "more of b", "", "", "Ann: c") == [
        [("Ann", "a"), ("Bob", "b\n\nmore of b")],
        [("Ann", "c")],
    ]


def test_the_format_can_be_named():
    with pytest.raises(
        InvalidInputError, match="no format 'csv'; there are: jsonl, json, transcript"
    ):
        read_conversations(["x"], format="csv")
    with pytest.raises(InvalidInputError, match="line 1: it is not JSON"):
        told("Ann: a", format="jsonl")


def test_it_reads_no_further_than_it_is_asked():
    def lines():
        for n in range(1_000):
            yield json.dumps({"messages": [{"content": str(n)}]})
        raise AssertionError("read to the end")

    found = list(islice(read_conversations(lines()), 300))
    assert [one.messages[0].content for one in found] == [str(n) for n in range(300)]


GOOD = '{"content": "tea"}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [GOOD, '{"content": secret words}'],
            r"line 2: it is not JSON \(Expecting value, column 13\)",
        ),
        ([GOOD, '{"role": "user"}'], "line 2: it has no content"),
        ([GOOD, '{"role": "secret words", "content": "x"}'], "line 2: there is no such role"),
        ([GOOD, '{"content": "x", "at": "2025-01-31"}'], "line 2: .*no time zone"),
        ([GOOD, "3"], "line 2: it is of type int"),
        ([GOOD, '{"messages": [{"content": "a"}, {"role": "x"}]}'], "line 2: message 1: "),
        ([GOOD, "[" * 100_000], "line 2: it is not JSON"),
        (["{", '"messages": [secret words', "]}"], "line 2: it is not JSON"),
        (["secret words"], "line 1: it begins with no name"),
        (["[2024-13-01 10:00] Ann: x"], "line 1: there is no such date"),
        (["[2024-01-01 25:00] Ann: x"], "line 1: there is no such date"),
        ([], "holds no message"),
        (["", "  "], "holds no message"),
        (["---", "2024-05-01"], "holds no message"),
        (["Ann: x", b"Bob: \xff"], "line 2: byte 5 is not UTF-8"),
        (["Ann: x", 3], "line 2: it is of type int"),
    ],
)
def test_what_is_odd_names_the_file_and_line_and_quotes_nothing(lines, said, tmp_path):
    with pytest.raises(InvalidInputError, match=said) as caught:
        told(*lines)
    assert "secret words" not in str(caught.value)
    assert caught.value.__cause__ is None
    if all(isinstance(line, str | bytes) for line in lines):
        file = tmp_path / "talk.txt"
        file.write_bytes(b"\r\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
        with pytest.raises(InvalidInputError, match=f"talk.txt(:|,| ).*{said}"):
            list(read_conversations(file))


def test_files_that_are_not_there_or_cannot_be_read_say_so(tmp_path):
    with pytest.raises(NotFoundError, match="there is no file"):
        list(read_conversations(tmp_path / "none"))
    with pytest.raises(StorageError, match="cannot be read"):
        list(read_conversations(tmp_path))


def test_a_conversation_of_another_scope_is_refused():
    line = '{"messages": [{"content": "x"}], "tenant": "b"}'
    with pytest.raises(ScopeError):
        list(read_conversations([line], scope=Scope(tenant="a")))
