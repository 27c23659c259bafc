"""Values stay at home, and come back into what was written about their placeholders."""

from __future__ import annotations

import importlib.util
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.errors import InvalidInputError
from lance_memory.redact import Finding, Redacted, StandardRedactor, Veiled, veiled

_spec = importlib.util.spec_from_file_location("corpus", Path(__file__).parent / "corpus.py")
corpus = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(corpus)

REDACTOR = StandardRedactor()
ANN, BOB = "ann@example.com", "bob@example.com"


def test_placeholders_are_numbered_in_order_and_shared_between_texts():
    hidden = veiled([f"{BOB} and {ANN}", f"{ANN}: +49 30 901820"], REDACTOR)
    assert hidden.texts == ("[email-1] and [email-2]", "[email-2]: [phone-1]")
    assert hidden.values == {"[email-1]": BOB, "[email-2]": ANN, "[phone-1]": "+49 30 901820"}
    assert hidden == veiled([f"{BOB} and {ANN}", f"{ANN}: +49 30 901820"], REDACTOR)


def test_a_value_found_in_one_text_is_hidden_in_all():
    texts = ["Log in with Xk29-hunter2", "The router's password: Xk29-hunter2", "<Xk29-hunter2s>"]
    hidden = veiled(texts, REDACTOR)
    assert hidden.texts == ("Log in with [secret-1]", "The router's password: [secret-1]",
                            "<[secret-1]s>")  # fmt: skip
    assert hidden.values == {"[secret-1]": "Xk29-hunter2"}
    assert [hidden.restored(text) for text in hidden.texts] == texts


def test_a_short_value_is_hidden_where_it_is_a_word():
    hidden = veiled(["password=hunt", "hunt, hunting, the-hunt; Hunt shunt hunt"], REDACTOR)
    assert hidden.texts[1] == "[secret-1], hunting, the-[secret-1]; Hunt shunt [secret-1]"


def test_of_values_that_overlap_the_longest_is_hidden():
    texts = ["password=abcdef1", "password=cdef1234", "password=abcdef1-more", "abcdef1234 abcdef1"]
    hidden = veiled(texts, REDACTOR)
    assert hidden.texts == (
        *(f"password=[secret-{number}]" for number in (1, 2, 3)),
        "[secret-4] [secret-1]",
    )
    assert [hidden.restored(text) for text in hidden.texts] == texts


def test_a_value_of_two_kinds_has_the_mark_of_the_first():
    hidden = veiled([f"write to {ANN}", f"password={ANN} now"], REDACTOR)
    assert hidden.texts == ("write to [secret-1]", "password=[secret-1] now")


def test_a_value_that_is_a_word_of_the_marks_is_not_looked_for_in_them():
    texts = ['password: "secret"', "a secret; token=[secret-9]", "password=Tr0ub4dor"]
    hidden = veiled(texts, REDACTOR)
    assert hidden.texts[1].startswith("a [secret-1]; ")
    assert hidden.texts[2] == "password=[secret-2]"
    assert [hidden.restored(text) for text in hidden.texts] == texts


def test_many_values_are_hidden_in_time():
    text = " ".join(f"a{number}@example.com" for number in range(2_000))
    started = time.process_time()
    assert veiled([text, text], REDACTOR).texts[1].endswith("[email-2000]")
    assert time.process_time() - started < 3


def test_values_come_back_however_often_and_in_any_order():
    hidden = veiled([f"{BOB} and {ANN}"], REDACTOR)
    assert hidden.restored("[email-2], [email-1], [email-2]") == f"{ANN}, {BOB}, {ANN}"
    assert Veiled(texts=()).restored("[email-1]") == "[email-1]"


def test_a_value_that_looks_like_a_placeholder_is_not_looked_into():
    hidden = Veiled(texts=(), values={"[name-1]": "[name-2]", "[name-2]": "Ann"})
    assert hidden.restored("[name-1] [name-2]") == "[name-2] Ann"


def test_placeholders_that_a_text_holds_already_are_kept_apart():
    hidden = veiled([f"template: [email-1], {ANN}"], REDACTOR)
    assert hidden.texts == ("template: [email-1], [email-2]",)
    assert hidden.unknown("[email-1] [email-2]") == []
    assert hidden.restored("[email-1] [email-2]") == f"[email-1] {ANN}"


def test_placeholders_that_stand_for_nothing_are_told():
    hidden = veiled([ANN], REDACTOR)
    for bad in ("[email-2]", "[email]", "[Email-1]", "[email 1]", "email-1", "[phone]", "[iban-1]"):
        assert hidden.unknown(f"write to {bad}!") == [bad]
    assert hidden.unknown("[email-1], an email, a phone, card 3, [x], [1]") == []
    assert veiled(["the card-2 slot"], REDACTOR).unknown("card-2") == []


def test_no_repr_shows_a_value():
    assert ANN not in repr(veiled([f"{ANN} wrote"], REDACTOR))


class Silent:
    """Changes texts and does not say where."""

    def redact(self, text):
        return Redacted(text=text.replace("ann", "[name]"))


class Names:
    """Knows one kind of its own."""

    def redact(self, text):
        found = [
            Finding(kind="name", start=m.start(), end=m.end()) for m in re.finditer("Ann", text)
        ]
        return Redacted(text=text.replace("Ann", "[name]"), found=tuple(found))


def test_a_redactor_that_does_not_say_what_it_removes_is_refused():
    with pytest.raises(InvalidInputError, match="its findings must say all it removes"):
        veiled(["ann wrote"], Silent())


class Spaces:
    """Its findings are what no text is without, and nothing at all."""

    def redact(self, text):
        at = text.find(" ") if "(" in text else -1
        found = [Finding(kind="gap", start=at, end=at + 1)] if at >= 0 else []
        shown = text.replace(" ", "[gap]", 1) if found else text
        return Redacted(text=shown, found=tuple(found))


def test_what_holds_no_letter_and_no_digit_is_hidden_where_it_was_found():
    assert veiled(["(a", "a b", "(a b)"], Spaces()).texts == ("(a", "a b", "(a[gap-1]b)")


def test_a_redactor_may_have_kinds_of_its_own():
    hidden = veiled(["Ann met Ann"], Names())
    assert hidden.texts == ("[name-1] met [name-1]",)
    assert hidden.restored("[name-1]") == "Ann"
    assert hidden.unknown("[name-2]") == ["[name-2]"]


SAMPLES = st.sampled_from([corpus.parse(m)[0] for m in corpus.POSITIVE] + corpus.LOOK_ALIKES)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(SAMPLES, max_size=4).map(" ".join), max_size=4))
def test_what_was_veiled_is_restored(texts):
    hidden = veiled(texts, REDACTOR)
    assert [hidden.restored(text) for text in hidden.texts] == texts
    assert all(hidden.unknown(text) == [] for text in hidden.texts)
    assert not any(
        value in text for value in hidden.values.values() if len(value) > 9 for text in hidden.texts
    )
