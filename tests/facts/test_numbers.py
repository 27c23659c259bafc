from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.facts.numbers import Quantity, numbers


def values(text):
    return [f"{q.value}" if q.kind == "number" else f"{q.kind} {q.value}" for q in numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two cats and twenty-five dogs", ["2", "25"]),
        ("two hundred and five, three thousand four hundred", ["205", "3400"]),
        ("a hundred, one million, a dozen", ["100", "1000000", "12"]),
        ("two and three", ["2", "3"]),
        ("dois, vinte e dois, duas", ["2", "22", "2"]),
        ("twice a day, once a week, once upon a time", ["2", "1"]),
        ("one of them, no one, one brother", ["1"]),
        ("the third floor, the 3rd floor, wait a second", ["3", "3"]),
        ("for a week, a week", ["1"]),
        ("1,200 and 1200.00 and 12,50 and 05", ["1200", "1200", "12.5", "5"]),
        ("-5 and 5 and GPT-4 and 1.2.3", ["-5", "5", "4", "1.2.3"]),
        ("5k and 12B and B12", ["5000", "12b", "b12"]),
        ("5g, 5 l, 5s and 12G", ["5", "5", "5", "12g"]),
        ("9 am, 9:00, 9:00 p.m., 21h, 18h30", ["9:00", "9:00", "21:00", "21:00", "18:30"]),
        ("at noon, midnight, 12 am, 12 pm", ["12:00", "0:00", "0:00", "12:00"]),
        ("2025-03-05", ["2025", "month 3", "5"]),
        (
            "March 5, 5 March, in May, Mar 5, em março",
            ["month 3", "5", "5", "month 3", "month 5", "month 3", "5", "month 3"],
        ),
        ("we may march on", []),
        ("on Monday, segunda-feira, sundays", ["weekday 1", "weekday 1", "weekday 7"]),
        (
            "三点, 3点, 十二月, 3月5号, 星期一, 周日",
            ["3:00", "3:00", "month 12", "month 3", "5", "weekday 1", "weekday 7"],
        ),
        ("二十三岁, 两只猫, 一百零五人, 三万元", ["23", "2", "105", "30000"]),
        ("一点, 一起, 统一", []),
        ("", []),
    ],
)
def test_numbers_times_and_dates_have_one_form(text, expected):
    assert values(text) == expected


def test_a_quantity_says_what_is_written_and_where():
    assert numbers("has twenty five, or 9 am") == [
        Quantity(kind="number", value="25", written="twenty five", start=4),
        Quantity(kind="number", value="9:00", written="9 am", start=20),
    ]


@given(st.integers(-(10**9), 10**9))
def test_every_integer_is_itself_however_it_is_separated(value):
    assert values(f"is {value} now") == values(f"is {value:,} now") == [str(value)]


@given(st.text(max_size=60))
def test_any_text_can_be_read_and_what_is_written_is_in_it(text):
    for quantity in numbers(text):
        assert text[quantity.start :].startswith(quantity.written)
