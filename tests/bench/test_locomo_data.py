"""LoCoMo's labels have quirks; reading survives them."""

import json
from datetime import UTC, datetime

import pytest

from bench.locomo import clean_evidence, content_of, load, session_time

TURN = {"speaker": "Ana", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a photo of a dog"}


@pytest.mark.parametrize(
    ("labels", "ids", "malformed"),
    [
        (["D1:3", "D12:30"], ["D1:3", "D12:30"], 0),
        (["D8:6; D9:17"], ["D8:6", "D9:17"], 1),
        (["D9:1 D4:4 D4:6"], ["D9:1", "D4:4", "D4:6"], 1),
        (["D:11:26"], ["D11:26"], 1),
        (["D30:05"], ["D30:5"], 1),
        (["D"], [], 1),
        ([], [], 0),
    ],
)
def test_evidence_is_cleaned_and_what_was_malformed_is_counted(labels, ids, malformed):
    assert clean_evidence(labels) == (ids, malformed)


def test_session_times_are_utc():
    assert session_time("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert session_time("12:09 am on 13 September, 2023").hour == 0


def test_a_caption_is_part_of_what_was_said():
    assert content_of(TURN) == "Look! [shares a photo of a dog]"
    assert content_of({**TURN, "blip_caption": ""}) == "Look!"


def test_turns_and_labels_that_do_not_exist_are_told_apart(tmp_path):
    conversation = {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_2_date_time": "9:00 am on 2 May, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "Hi"}],
        "session_1_date_time": "1:56 pm on 1 May, 2023",
        "session_1": [TURN, {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice"}],
        "session_3_date_time": "9:00 am on 3 May, 2023",
    }
    asked = [
        {"question": "Who?", "category": 4, "evidence": ["D1:1", "D9:9"]},
        {"question": "Why?", "category": 3, "evidence": []},
        {"question": "When?", "category": 2},
    ]
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"sample_id": "c", "conversation": conversation, "qa": asked}]))
    corpus = load(path)
    assert [turn["key"] for turn in corpus.turns] == ["c/D1:1", "c/D1:2", "c/D2:1"]
    assert corpus.turns[1]["event_at"] == datetime(2023, 5, 1, 13, 56, 1, tzinfo=UTC)
    assert [question.evidence for question in corpus.questions] == [{"c/D1:1"}, set(), set()]
    assert (corpus.malformed, corpus.dangling, corpus.without_evidence) == (0, 1, 2)
