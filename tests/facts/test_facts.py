from __future__ import annotations

import pytest

from lance_memory.facts import (
    Dropped,
    content_words,
    dropped,
    said,
    sentences,
    strip_accents,
)


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
        ("She met Maria in Rome", ("Maria", "Rome")),
        ("NASA launched it", ("NASA",)),
        ("The flight is at 10:30 on 2025-01-31", ("10:30", "2025-01-31")),
        ("costs 1,000.50", ("1,000.50",)),
        ("He does not eat fish", ("not",)),
        ("He doesn't eat fish", ("not",)),
        ("She doesn’t", ("not",)),
        ("er hat keine Zeit", ("not", "Zeit")),
        ("never without it", ("not",)),
        ("A Ana não come peixe", ("Ana", "not")),
        ("Ele nunca foi a São Paulo", ("not", "São", "Paulo")),
        ("我不喝茶", ("not",)),
        ("他没有来", ("not",)),
        ("plain words only", ()),
        ("", ()),
    ],
)
def test_numbers_names_and_negations_are_facts(text, expected):
    assert dropped([text], "").missing == expected


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("the cat eats at two", "the cat eats at 2"),
        ("paid 1,200 for it", "paid 1200.00 for it"),
        ("due on 5 March 2025", "due on 2025-03-05"),
        ("leaves at 9 pm", "leaves at 21:00"),
        ("Vive às 9h30 no Porto", "vive às 9:30 no Porto"),
    ],
)
def test_a_number_says_the_same_however_it_is_written(text, same):
    assert said(text) == said(same)


def test_what_a_text_says_are_its_words_its_numbers_and_whether_it_denies():
    assert said("She met Maria twice") == (frozenset({"met", "maria", "number 2"}), False)
    assert said("She never met Maria") == (frozenset({"never", "met", "maria"}), True)


@pytest.mark.parametrize(
    ("sources", "derived", "missing", "share"),
    [
        (["met Maria in Rome"], "maria, rome", (), 0.0),
        (["met Maria in Rome"], "Maria was there", ("Rome",), 0.5),
        (["met Maria in Rome", "paid 50 in Rome"], "nothing", ("Maria", "Rome", "50"), 1.0),
        (["paid 50", "paid 60", "paid 70", "paid 80"], "paid 50 and 60 and 70", ("80",), 0.25),
        (["only plain words"], "whatever", (), 0.0),
        (["he does not", "she doesn't"], "he does", ("not",), 1.0),
        (["he does not"], "he never did", (), 0.0),
        ([], "", (), 0.0),
        (["foi a São Paulo"], "sao paulo", (), 0.0),
        (["two cats at 9 am"], "2 cats at 9:00", (), 0.0),
        (["two cats at 9 am"], "2 dogs at 9", ("9 am",), 0.5),
        (["due on 2025-03-05, said Ana"], "Ana: due March 5, 2025", (), 0.0),
        (["due on 2025-03-05, said Ana"], "Ana: due March 6, 2025", ("2025-03-05",), 0.5),
        (["on Monday in NASA's lab"], "", ("Monday", "NASA's"), 1.0),
        (["vive no Porto e não em Braga"], "vive no Porto, em Braga", ("not",), 1 / 3),
    ],
)
def test_what_a_derived_text_drops_is_listed_as_the_sources_write_it(
    sources, derived, missing, share
):
    assert dropped(sources, derived) == Dropped(missing=missing, share=pytest.approx(share))


def test_a_fact_that_is_dropped_is_listed_once_where_it_appeared_first():
    sources = ["Then Rome, 7 and Maria", "not Maria, not Rome", "7, seven, Oslo"]
    expected = ("Rome", "7", "Maria", "not", "Oslo")
    assert dropped(sources, "") == Dropped(missing=expected, share=1.0)


def test_accents_are_stripped_and_letters_stay():
    assert strip_accents("ação Zürich Đà Nẵng 東京 é e\u0301") == "acao Zurich Đa Nang 東京 e e"
