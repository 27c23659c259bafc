from __future__ import annotations

import pytest

from lance_memory.curate.facts import content_words, kept, salient, sentences, strip_accents


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n ", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("line one\nline two\n\nline three", ["line one", "line two", "line three"]),
        ("It costs 3.50 today. Yes.", ["It costs 3.50 today.", "Yes."]),
        ("我喜欢茶。你呢？好！", ["我喜欢茶。", "你呢？", "好！"]),
        ("Olá. Tudo bem?", ["Olá.", "Tudo bem?"]),
        ("no end", ["no end"]),
    ],
)
def test_a_text_is_split_into_its_sentences(text, expected):
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The kettle is on the shelf", {"kettle", "shelf"}),
        ("I'm told that it's Rome’s", {"told", "rome's"} - {"told"}),
        ("Autenticação é ótima", {"autenticacao", "e", "otima"}),
        ("绿茶 2 杯", {"绿", "茶", "2", "杯"}),
        ("at 10:30 on 2025-01-31, 1,000.5 units", {"10:30", "2025-01-31", "1,000.5", "units"}),
        ("", set()),
        ("?! --", set()),
    ],
)
def test_content_words_are_folded_and_without_stop_words(text, expected):
    assert content_words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She met Maria in Rome", {"maria", "rome"}),
        ("NASA launched it", {"nasa"}),
        ("The flight is at 10:30 on 2025-01-31", {"10:30", "2025-01-31"}),
        ("costs 1,000.50", {"1,000.50"}),
        ("He does not eat fish", {"not"}),
        ("He doesn't eat fish", {"not"}),
        ("She doesn’t", {"not"}),
        ("never without it", {"not"}),
        ("A Ana não come peixe", {"ana", "not"}),
        ("Ele nunca foi a São Paulo", {"not", "sao", "paulo"}),
        ("我不喝茶", {"not"}),
        ("他没有来", {"not"}),
        ("plain words only", set()),
        ("", set()),
    ],
)
def test_numbers_names_and_negations_are_salient(text, expected):
    assert salient(text) == expected


@pytest.mark.parametrize(
    ("sources", "derived", "share"),
    [
        (["met Maria in Rome"], "maria, rome", 1.0),
        (["met Maria in Rome"], "Maria was there", 0.5),
        (["met Maria in Rome", "paid 50 in Rome"], "nothing", 0.0),
        (["paid 50", "paid 60", "paid 70", "paid 80"], "paid 50 and 60 and 70", 0.75),
        (["only plain words"], "whatever", 1.0),
        (["he does not"], "he does", 1.0),
        ([], "", 1.0),
        (["foi a São Paulo"], "sao paulo", 1.0),
    ],
)
def test_kept_is_the_share_of_numbers_and_names(sources, derived, share):
    assert kept(sources, derived) == share


def test_accents_are_stripped_and_letters_stay():
    assert strip_accents("ação Zürich Đà Nẵng 東京 é e\u0301") == "acao Zurich Đa Nang 東京 e e"
