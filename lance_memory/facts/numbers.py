"""The numbers, times and dates of a text, each in one form however it is written.

`two`, `2`, `dois` and `两` are one number, `9 am` and `9:00` one time, `5 March 2025` and
`2025-03-05` the same three facts. English and Portuguese words, and Chinese numerals before a
measure word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from lance_memory.facts.folding import CJK, plain

__all__ = ["Quantity", "numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, a time of day, a month or a day of the week.

    Attributes:
        kind: "number" (times are numbers too: `at 9` and `9 am` are no two things), "month" or
            "weekday".
        value: the form that is compared: "2", "21:00"; months 1-12 and weekdays 1-7.
        written: as the text has it.
        start: where it stands.
    """

    kind: str
    value: str
    written: str
    start: int


_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
""".split()  # noqa: SIM905 (a list of words reads better as text)
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
""".split()  # noqa: SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_UM = """
zero - dois tres quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezasseis
dezassete dezoito dezanove
""".split()  # noqa: SIM905
_VINTE = "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa".split()  # noqa: SIM905

_WORDS = {
    **{word: i for words in (_ONES, _ORDINALS, _UM) for i, word in enumerate(words)},
    **{word: 10 * i for words in (_TENS, _VINTE) for i, word in enumerate(words, start=2)},
    **{f"{word[:-1]}ieth": 10 * i for i, word in enumerate(_TENS, start=2)},
}
_WORDS |= {"duas": 2, "dezesseis": 16, "dezessete": 17, "dezenove": 19, "cem": 100, "cento": 100}
_WORDS |= {"dozen": 12, "once": 1, "twice": 2, "thrice": 3}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "mil": 1_000}
_AND = {"and", "e"}
_OFTEN_ELSE = {"one", "first", "second", "once"}
_ONE_AFTER = {"any", "some", "every", "each", "this", "that", "which", "no", "the", "only"}
_TIMES_OF_DAY = {"noon": "12:00", "midday": "12:00", "midnight": "0:00"}

_MONTHS = (
    ("january", "jan", "janeiro"),
    ("february", "feb", "fevereiro"),
    ("march", "mar", "marco"),
    ("april", "apr", "abril"),
    ("may", "maio"),
    ("june", "jun", "junho"),
    ("july", "jul", "julho"),
    ("august", "aug", "agosto"),
    ("september", "sept", "sep", "setembro"),
    ("october", "oct", "outubro"),
    ("november", "nov", "novembro"),
    ("december", "dec", "dezembro"),
)
_DAYS = (
    ("monday", "segunda-feira"),
    ("tuesday", "terca-feira"),
    ("wednesday", "quarta-feira"),
    ("thursday", "quinta-feira"),
    ("friday", "sexta-feira"),
    ("saturday", "sabado"),
    ("sunday", "domingo"),
)
_MONTH = {word: str(i) for i, words in enumerate(_MONTHS, start=1) for word in words}
_DAY = {word: str(i) for i, words in enumerate(_DAYS, start=1) for word in words}
_DAY |= {f"{word}s": day for word, day in _DAY.items()}
_DATED = re.compile(r"^(?:march|[a-z]{3,4})$")
"""Months that are other words too: only beside a day or a year, or after one of these."""
_BEFORE_A_MONTH = {"in", "of", "until", "since", "by", "last", "next", "this", "early", "late"}

_CJK = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CJK_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000}
_NUMERAL = f"[{''.join([*_CJK, *_CJK_SCALES])}]+"
_MEASURES = (
    "个個只隻条條杯次天年日号號岁歲楼樓块塊元人位本张張周週层層斤公米度瓶家遍种種小倍名分时時"
)

_SPANS = "second|minute|hour|day|week|fortnight|month|year|decade"

_PIECE = (
    r"(?P<iso>(?<!\d)\d{4}-\d{1,2}-\d{1,2}(?!\d))"
    r"|(?P<half>(?<![\w.:])(?:\d{1,2})(?:[:.h]\d{2})?\s?(?:[ap]\.m\.|[ap]m\b))"
    r"|(?P<clock>(?<![\w.:])\d{1,2}(?::\d{2}|h\d{2}|h)(?![\w:]))"
    rf"|(?P<dot>(?:\d+|{_NUMERAL}))(?=[点點](?!儿))"
    rf"|(?P<yue>(?:\d+|{_NUMERAL}))(?=月)"
    r"|(?:星期|礼拜|周)(?P<xingqi>[一二三四五六日天])"
    rf"|(?P<numeral>{_NUMERAL})(?=[{_MEASURES}])"
    r"|(?P<code>(?<![\w.])(?:\d+(?!(?-i:[gls]))[A-JLN-Z]|[A-Z]\d+)(?!\w))"
    r"|(?P<digits>(?:(?<![\w.,])[-\u2212])?\d+(?:[.,:/\-]\d+)*)(?P<kilo>k\b)?"
    rf"|(?P<span>\b(?:for|in|after|within|last|take[sn]?|took) an?)(?= (?:{_SPANS})\b)"
    rf"|(?P<word>[^\W\d_{CJK}]+(?:-feiras?)?)"
)


@cache
def _piece() -> re.Pattern[str]:
    """Made at first use: that takes as long as a search."""
    return re.compile(_PIECE, re.IGNORECASE)


def numbers(text: str) -> list[Quantity]:
    """The numbers, times, months and weekdays of a text, in order."""
    pieces = list(_piece().finditer(text))
    found: list[Quantity] = []
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        if piece.lastgroup == "word":
            length = _spelled(pieces, place, found)
            if not length:
                found += _named(pieces, place)
            place += length or 1
        else:
            found += _figures(piece)
            place += 1
    return found


def _figures(piece: re.Match[str]) -> Iterator[Quantity]:
    """What is written in figures, of any script."""
    group = str(piece.lastgroup)
    written, start = piece.group(), piece.start()
    for kind, value in _FIGURES[group](piece.group(group) if group == "xingqi" else written):
        yield Quantity(kind=kind, value=value, written=written, start=start)


def _dated(written: str) -> list[tuple[str, str]]:
    year, month, day = (str(int(part)) for part in written.split("-"))
    return [("number", year), ("month", month), ("number", day)]


def _hour(numeral: str) -> list[tuple[str, str]]:
    """Before 点; 一点 is "a little" as often as one o'clock."""
    return [] if numeral == "一" else [("number", f"{_cjk(numeral)}:00")]


def _spelled(pieces: list[re.Match[str]], place: int, found: list[Quantity]) -> int:
    """Add the number that is spelled from here on, and say how many words it takes."""
    if not _counts(pieces, place):
        return 0
    total, current, end = 0, 0, place
    while end < len(pieces) and _is_next(pieces, place, end):
        word = plain(pieces[end].group())
        if word in _SCALES:
            current = max(current, 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, current = total + current, 0
        elif word in _WORDS and (not current or _goes_on(current, _WORDS[word])):
            current += _WORDS[word]
        elif not (word in _AND and end > place and _continues(pieces, end, current)):
            break
        end += 1
    first, last = pieces[place], pieces[end - 1]
    written = first.string[first.start() : last.end()]
    value = str(total + current)
    found.append(Quantity(kind="number", value=value, written=written, start=first.start()))
    return end - place


def _is_next(pieces: list[re.Match[str]], place: int, end: int) -> bool:
    """Whether a word follows the one before it with nothing but a space or a hyphen between."""
    if pieces[end].lastgroup != "word" or end == place:
        return end == place
    gap = pieces[end].string[pieces[end - 1].end() : pieces[end].start()]
    return gap.strip() in ("", "-")


def _counts(pieces: list[re.Match[str]], place: int) -> bool:
    """Whether a word is a number here: `one` and `first` are much else."""
    word = _word(pieces, place)
    if word not in _OFTEN_ELSE:
        return word in _WORDS or (word in _SCALES and word != "mil")
    before, after = _word(pieces, place - 1), _word(pieces, place + 1)
    if word == "once":
        return after in {"a", "an", "per", "every", "daily", "weekly"}
    if word == "one":
        return before not in _ONE_AFTER and after not in {"of", "day", "another", "thing"}
    if word == "second" and before in {"a", "per", "each", "every"}:
        return False
    return bool(before) and before != "at"


def _goes_on(current: int, more: int) -> bool:
    """Twenty *five*, two hundred *seventy*: a smaller part where there is room for it."""
    return current >= 20 and 0 < more < 100 and current % (10 if more < 10 else 100) == 0


def _continues(pieces: list[re.Match[str]], place: int, current: int) -> bool:
    """Two hundred *and* five, vinte *e* dois; not: cats two *and* dogs five."""
    after = _WORDS.get(_word(pieces, place + 1), 0)
    room = current >= 100 or _word(pieces, place) == "e"
    return room and _goes_on(current, after)


def _named(pieces: list[re.Match[str]], place: int) -> Iterator[Quantity]:
    """A month, a day of the week, or noon and midnight."""
    piece, word = pieces[place], _word(pieces, place)
    kind, value = "number", _TIMES_OF_DAY.get(word, "")
    if word in _DAY:
        kind, value = "weekday", _DAY[word]
    elif word in _MONTH and _is_month(pieces, place):
        kind, value = "month", _MONTH[word]
    if value:
        yield Quantity(kind=kind, value=value, written=piece.group(), start=piece.start())


def _is_month(pieces: list[re.Match[str]], place: int) -> bool:
    word = _word(pieces, place)
    if word == "marco":  # a name, without its cedilla
        return "\u00e7" in pieces[place].group().casefold()
    if not _DATED.match(word) or word in ("june", "july", "maio"):
        return True
    beside = [pieces[i].lastgroup for i in (place - 1, place + 1) if 0 <= i < len(pieces)]
    dated = "digits" in beside or _word(pieces, place - 1) in _BEFORE_A_MONTH
    return dated and pieces[place].group()[0].isupper()


def _word(pieces: list[re.Match[str]], place: int) -> str:
    """The word there, folded; nothing where there is none, or figures."""
    if not 0 <= place < len(pieces) or pieces[place].lastgroup != "word":
        return ""
    return plain(pieces[place].group())


def _clock(written: str) -> str:
    """`9 pm`, `21h`, `9:00 p.m.` as hours and minutes of 24 hours."""
    hour, *minute = re.findall(r"\d+", written)
    half = re.search(r"[ap]", written.casefold())
    hours = int(hour)
    if half:
        hours = hours % 12 + 12 * (half.group() == "p")
    return f"{hours}:{minute[0] if minute else '00'}"


def _plain(token: str) -> str:
    """Digits without separators of thousands and zeros that say nothing; else as they are."""
    token = token.replace("\u2212", "-")
    if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", token):
        token = token.replace(",", "")
    if re.fullmatch(r"-?\d+,\d{1,2}", token):
        token = token.replace(",", ".")
    if not re.fullmatch(r"-?\d+(?:\.\d+)?", token):
        return token
    value = Decimal(token)
    return format(value.normalize() if value else Decimal(0), "f")


def _cjk(numeral: str) -> int:
    """The value of a Chinese numeral, or of digits."""
    if numeral.isdecimal():
        return int(numeral)
    total = digit = 0
    for character in numeral:
        if character in _CJK:
            digit = 10 * digit + _CJK[character]
        elif character in "万萬":
            total, digit = (total + digit) * 10_000, 0
        else:
            total, digit = total + max(digit, 1) * _CJK_SCALES[character], 0
    return total + digit


_FIGURES: dict[str, Callable[[str], list[tuple[str, str]]]] = {
    "iso": _dated,
    "half": lambda written: [("number", _clock(written))],
    "clock": lambda written: [("number", _clock(written))],
    "code": lambda written: [("number", written.casefold())],
    "span": lambda _: [("number", "1")],
    "dot": _hour,
    "yue": lambda numeral: [("month", str(_cjk(numeral)))],
    "xingqi": lambda day: [("weekday", str("一二三四五六日".index(day.replace("天", "日")) + 1))],
    "numeral": lambda numeral: [("number", str(_cjk(numeral)))],
    "digits": lambda written: [("number", _plain(written))],
    "kilo": lambda written: [("number", _plain(f"{written[:-1]}000"))],
}
"""Group of `_PIECE` → kind and value of what it found."""
