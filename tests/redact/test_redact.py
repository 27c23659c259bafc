"""What is removed, what is left, and that hostile texts cost no more than long ones."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.errors import InvalidInputError
from lance_memory.redact import Finding, Redacted, Sensitive, StandardRedactor

_spec = importlib.util.spec_from_file_location("corpus", Path(__file__).parent / "corpus.py")
corpus = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(corpus)

REDACTOR = StandardRedactor()
KINDS = [str(kind) for kind in Sensitive if kind is not Sensitive.ADDRESS]
MEGABYTE = 1_000_000


def found(text, redactor=REDACTOR):
    return [(str(f.kind), f.start, f.end) for f in redactor.redact(text).found]


def without(text, parts):
    """The text with `[kind]` in place of each part, worked out from the end."""
    for kind, start, end in sorted(parts, key=lambda part: -part[1]):
        text = text[:start] + f"[{kind}]" + text[end:]
    return text


@pytest.mark.parametrize("marked", corpus.POSITIVE)
def test_what_is_sensitive_is_removed_to_the_letter(marked):
    text, labels = corpus.parse(marked)
    assert [(kind, text[start:end]) for kind, start, end in found(text)] == [
        (kind, text[start:end]) for kind, start, end in labels
    ]
    assert REDACTOR.redact(text).text == without(text, labels)


@pytest.mark.parametrize("text", corpus.LOOK_ALIKES)
def test_what_only_looks_sensitive_is_left(text):
    assert REDACTOR.redact(text) == Redacted(text=text)


def test_precision_and_recall_hold_for_each_kind_in_running_text():
    """Everything in one text, so that one line's end is the next one's beginning."""
    lines = [*corpus.POSITIVE, *corpus.LOOK_ALIKES]
    text, labels = corpus.parse("\n".join(random.Random(7).sample(lines, len(lines))))
    given_back = found(text)
    right = Counter(kind for kind, _, _ in set(labels) & set(given_back))
    wanted, got = (Counter(kind for kind, _, _ in parts) for parts in (labels, given_back))
    for kind in KINDS:
        precision, recall = right[kind] / got[kind], right[kind] / wanted[kind]
        sys.stdout.write(f"{kind:6} {wanted[kind]:3}: precision {precision:.3f}, ")
        sys.stdout.write(f"recall {recall:.3f}\n")
        assert precision >= 0.98
        assert recall >= 0.98
    assert sum(wanted.values()) >= 160
    assert len(corpus.LOOK_ALIKES) >= 120


PIECES = st.one_of(
    st.sampled_from([corpus.parse(marked)[0] for marked in corpus.POSITIVE]),
    st.sampled_from(corpus.LOOK_ALIKES),
    st.sampled_from([" ", "", "\n", ".", "@", ":", "=", "-", "password: ", "call ", "[secret]"]),
    st.text(max_size=12),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_redacting_again_changes_nothing(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once.text) == Redacted(text=once.text)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_findings_are_in_order_apart_and_say_what_was_replaced(text):
    redacted = REDACTOR.redact(text)
    edges = [edge for f in redacted.found for edge in (f.start, f.end)]
    assert edges == sorted(edges)
    assert all(f.start < f.end for f in redacted.found)
    assert redacted.text == without(text, [(f.kind, f.start, f.end) for f in redacted.found])


def test_the_report_counts_kinds_and_holds_no_value():
    redacted = REDACTOR.redact("a@example.com, b@example.com: +49 30 901820")
    assert redacted.text == "[email], [email]: [phone]"
    assert redacted.counts() == {"email": 2, "phone": 1}
    assert redacted.found[0] == Finding(kind=Sensitive.EMAIL, start=0, end=13)
    assert "example" not in repr(redacted)
    assert "901820" not in repr(redacted)


def test_what_removing_uncovers_is_removed_too():
    """Six cards and a phone number look like one table of digits, until the cards are gone."""
    text = "4111 1111 1111 1111 " * 6 + "202-555-0143"
    assert REDACTOR.redact(text).text == "[card] " * 6 + "[phone]"


def test_of_two_that_overlap_the_first_kind_names_both():
    assert REDACTOR.redact("password=joe@example.com now").text == "password=[secret] now"
    assert REDACTOR.redact("pay 4111 1111 1111 1111@example.com").text == "pay [card]"


def test_a_key_that_was_cut_off_is_removed_as_far_as_it_goes():
    cut = corpus.PRIVATE_KEY[:200]
    redacted = REDACTOR.redact(f"note\n{cut}\n\nThe rest is prose.")
    assert redacted.text == "note\n[secret]The rest is prose."


def test_other_scripts_keep_their_letters_and_positions():
    text = "👩‍👩‍👧 naïve 我的邮箱 是 a@example.com，电话 +86 10 6552 9988。👍🏽"
    assert REDACTOR.redact(text).text == "👩‍👩‍👧 naïve 我的邮箱 是 [email]，电话 [phone]。👍🏽"
    assert REDACTOR.redact("٠١٢ \ud800 \x00 ﷽") == Redacted(text="٠١٢ \ud800 \x00 ﷽")


def test_only_the_kinds_asked_for_are_removed():
    text = "a@example.com, +49 30 901820, 4111 1111 1111 1111"
    assert StandardRedactor(kinds=["email"]).redact(text).counts() == {"email": 1}
    assert StandardRedactor(kinds=["phone", "card"]).redact(text).counts() == {
        "card": 1,
        "phone": 1,
    }
    assert StandardRedactor(kinds=[]).redact(text) == Redacted(text=text)


def test_numbers_without_a_country_code_are_those_of_the_regions():
    paris = "06 12 34 56 78"
    assert found(paris) == []
    assert found(paris, StandardRedactor(regions=["FR"])) == [("phone", 0, 14)]
    assert found("(212) 555-0187", StandardRedactor(regions=[])) == []
    assert found("+1 212 555 0187", StandardRedactor(regions=[])) == [("phone", 0, 15)]


@pytest.mark.parametrize("options", [{"kinds": ["name"]}, {"kinds": "mail"}, {"regions": ["XX"]}])
def test_kinds_and_regions_that_do_not_exist_are_refused(options):
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        StandardRedactor(**options)


def test_threads_share_a_redactor():
    texts = [corpus.parse(marked)[0] for marked in corpus.POSITIVE[:60]]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(REDACTOR.redact, texts)) == [REDACTOR.redact(text) for text in texts]


def test_nothing_heavy_is_loaded_before_the_first_text():
    code = (
        "import sys, lance_memory.redact as r; r.StandardRedactor();"
        "print([m for m in ('phonenumbers', 'detect_secrets', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


HOSTILE = {
    "letters": "a",
    "mixed letters": "aB3",
    "digits": "1",
    "spaced digits": "1 ",
    "at signs": "a@",
    "domains": "a@a.",
    "hyphens": "a-",
    "urls": "://a:",
    "tokens": "eyJ",
    "dotted tokens": "eyJabcdefghij.",
    "key prefixes": "sk-",
    "key ids": "AKIAAAAAAAAAAAAAAAAA",
    "agent tokens": "glagent-",
    "passwords": "password",
    "spaces": " ",
    "spaced passwords": "password" + " " * 50,
    "quotes": 'password="x ',
    "key blocks": "-----BEGIN PRIVATE KEY-----a",
    "accounts": "DE89 ",
    "placeholders": "[email]",
    "bearers": "bearer ",
    "lines": "\n",
    "pins": "pin is ",
    "passphrases": 'passphrase "x',
    "passwords with digits": "password a1",
    "scripts": "私a@a.co公",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_no_longer_than_their_length(name):
    """100 kB take at most 3 s here; anything quadratic would take hours for them."""
    piece = HOSTILE[name]
    text = piece * (MEGABYTE // 10 // len(piece))
    started = time.process_time()
    REDACTOR.redact(text)
    assert time.process_time() - started < 3


@pytest.mark.slow
def test_time_is_linear_in_the_length():
    for piece in [*HOSTILE.values(), "202-555-0143, ", "a@example.com "]:
        times = []
        for size in (MEGABYTE // 32, MEGABYTE // 8):
            text = piece * (size // len(piece))
            started = time.process_time()
            REDACTOR.redact(text)
            times.append(time.process_time() - started)
        assert times[1] < 8 * times[0] + 0.25, (piece, times)
