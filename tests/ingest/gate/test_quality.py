"""L2: greetings and noise are blocked, one short statement passes, in any script."""

from __future__ import annotations

import pytest

from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.gate import Gate, GatePolicy
from lance_memory.ingest.gate.quality import Score, scored
from lance_memory.ingest.message import Conversation, Message, Role

NOTHING = """
hi | ok thanks | aaaa aaaa aaaa | 你好 | 好的 | 谢谢你 | 👍👍 | ... | yes | thank you so much! | lol ok | asdf
hi? | good morning | hello there | okay, cool, thanks | ja danke | test test test | ?!?!
"""
SOMETHING = """
I live in Paris now. | Ich ziehe nach Berlin. | 我住在巴黎，喜欢喝茶。 | I'm vegan. | I smoke. | 我吃素。
Call me Ana. | Moro em Lisboa. | Я живу в Москве. | मैं दिल्ली में रहता हूँ। | 私は東京に住んでいます。 | Got a B in math
나는 서울에 살아요. | ฉันอาศัยอยู่ในกรุงเทพ | أنا أعيش في القاهرة | Why? | what is a monad
"""


def texts(table):
    return [text.strip() for line in table.strip().splitlines() for text in line.split("|")]


@pytest.mark.parametrize("text", texts(NOTHING))
def test_greetings_and_noise_are_blocked(text, talk, around):
    passed = Gate()([talk(text)], around())
    assert [(d.verdict, d.reason) for d in passed.decisions] == [("L2", "low_quality")]


@pytest.mark.parametrize("text", texts(SOMETHING))
def test_one_short_statement_or_question_passes(text, talk, around, ledger):
    conversation = talk(text)
    assert Gate()([conversation], around(ledger=ledger)).items == (conversation,)


def test_each_part_of_the_score_is_what_it_says(talk):
    assert scored(talk("I like tea", "tea is what I like, ok?")) == Score(
        messages=2 / 4, length=(10 + 23) / 2 / 60, diversity=5 / 9, question=1.0
    )
    assert scored(talk("喝茶喝")) == Score(
        messages=1 / 4, length=9 / 60, diversity=2 / 3, question=0.0
    )
    assert Score(messages=1.0, length=1.0, diversity=1.0, question=1.0).total == 1.0
    assert Score(messages=0.4, length=0.5, diversity=0.6, question=1.0).total == pytest.approx(
        0.25 * 0.4 + 0.3 * 0.5 + 0.25 * 0.6 + 0.2 * 1.0
    )


def test_parts_are_bounded_and_nothing_said_scores_nothing(talk):
    assert scored(talk(*["word " * 60] * 9)).messages == scored(talk("x" * 999)).length == 1.0
    empty = Score(messages=0.0, length=0.0, diversity=0.0, question=0.0)
    assert [scored(c) for c in (talk(), talk("", " \n"))] == [empty, empty]


def test_what_the_assistant_says_is_no_quality_of_the_user():
    said = "Hello! How can I help you today? I can book flights, hotels and trains."
    messages = (Message(content="hi"), Message(content=said, role=Role.ASSISTANT))
    assert scored(Conversation(messages=messages)).total < 0.35
    assert scored(Conversation(messages=messages[1:])).total > 0.35


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("see http://host/path?a=b", 0.0),
        ("I know what it is", 0.0),
        ("so: what is it", 0.0),
        ("do it now please", 0.0),
        ("Fine.\nwhat is it called", 1.0),
        ("is it open", 1.0),
        ('He asked "where?" again', 1.0),
        ("你好吗", 1.0),
        ("ماذا؟", 1.0),
    ],
)
def test_a_question_is_a_mark_or_a_question_word_in_front(text, asks, talk):
    assert scored(talk(text)).question == asks


def test_registered_events_are_not_scored(talk, around):
    event = talk("93", source="exams")
    assert Gate()([event], around()).items == (event,)
    assert Gate(GatePolicy(events={"exams"}))([event], around()).items == (event,)
    blocked = Gate(GatePolicy(events={"billing"}))([event], around()).decisions
    assert [d.verdict for d in blocked] == ["L2"]


def test_the_decision_has_the_score_and_its_parts(talk, around):
    decision = Gate()([talk("ok thanks", ref="event-1")], around()).decisions[0]
    assert decision == Decision(
        step="gate",
        verdict="L2",
        reason="low_quality",
        event="event-1",
        figures={
            "score": 0.25 * 0.25 + 0.3 * 9 / 60,
            "least": 0.35,
            "messages": 0.25,
            "length": 9 / 60,
            "diversity": 0.0,
            "question": 0.0,
        },
    )


@pytest.mark.parametrize("text", ["\n" * 200_000, "! " * 100_000, "what " * 40_000, "吗" * 200_000])
def test_hostile_texts_are_scored_in_linear_time(text, talk):
    assert 0.0 <= scored(talk(text)).total <= 1.0
