"""What counts as a statement, and what it states."""

from __future__ import annotations

import pickle
import time
from datetime import UTC, datetime

import pytest
from extract_kit import NOON, SCOPE, reading, talk

from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.ingest.candidate import Candidate, Category, Claim
from lance_memory.ingest.extract import Reading, Rules
from lance_memory.ingest.extract.patterns import book_of
from lance_memory.ingest.message import Conversation, Message

RULES = Rules()
EXAMPLES = [(rule.name, example) for rule in book_of("en").rules for example in rule.examples]


def found(*contents, rules=RULES, **fields):
    return rules.extract(talk(*contents, **fields), reading=reading()).items


def claims(*contents, **fields):
    return [
        (one.claim.subject, one.claim.attribute, one.claim.value) if one.claim else None
        for one in found(*contents, **fields)
    ]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_each_rule_finds_its_examples(name, example):
    assert f"rule:{name}" in [one.why for one in found(example)]


def test_every_rule_has_an_example():
    assert {rule.name for rule in book_of("en").rules} == {name for name, _ in EXAMPLES}


def test_every_category_is_found():
    assert {rule.category for rule in book_of("en").rules} == set(Category)


def test_a_candidate_says_what_was_said_by_whom_and_where():
    message = Message(content="Yeah, I live in Lisbon.", actor="Ana", at=NOON, seq=7, ref="m-7")
    conversation = Conversation(messages=(message,), scope=SCOPE, domain="support")
    assert RULES.extract(conversation, reading=reading()).items == (
        Candidate(
            content="I live in Lisbon.",
            category=Category.IDENTITY,
            importance=8.0,
            confidence=0.9,
            scope=SCOPE,
            event="m-7",
            event_at=NOON,
            actor="Ana",
            seq=7,
            claim=Claim(subject="ana", attribute="residence", value="lisbon", single=True),
            domain="support",
            why="rule:residence",
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Berlin?",
        "You think I like tea?",
        "If I lived in Paris, I would love cheese.",
        "I wish I had two dogs.",
        'She said "I live in Paris" and laughed.',
        "He said I work at Google.",
        "I love it!",
        "I love that!",
        "I like this.",
        "Translate to French: I live in Paris. I work as a nurse.",
        "Pretend you are a pirate. I am a captain.",
        "Write a short story about a girl. I have two cats and a dog.",
        "Can you write a function that sorts a list?",
        "Write an email to my boss.",
        "How are you? I'm fine, thanks!",
        "I hope you are well.",
        "I'm a bit tired.",
        "The weather is nice today.",
        "I love how you explained that.",
        "I have a question about my order.",
        "Don't forget to buy milk.",
        "Remember, you are strong.",
        "I don't remember that trip.",
        "> I live in Rome",
        "```\nI live in Rome\n```",
        "",
        "?!\n\n...",
    ],
)
def test_what_states_nothing_is_no_candidate(text):
    assert found(text) == ()


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_people_speak_for_themselves(role):
    assert found((role, "I live in Berlin.")) == ()
    assert len(found((role, "I live in Berlin."), source="billing")) == 1


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I no longer work at Google.", ("user", "employer", "not google")),
        ("I stopped drinking coffee.", ("user", "eats", "not coffee")),
        ("I don’t like olives.", ("user", "likes", "not olives")),
        ("I hate the olives!", ("user", "likes", "not olives")),
        ("I like olives.", ("user", "likes", "olives")),
        ("I used to live in Madrid.", ("user", "residence", "not madrid")),
        ("I used to live in Madrid but moved to Porto.", ("user", "residence", "porto")),
        ("Never use emojis.", ("user", "instruction", "not use emojis")),
        ("My favorite color is TEAL!", ("user", "favorite color", "teal")),
        ("Tom lives in Madrid.", ("tom", "residence", "madrid")),
        ("My sister Ana lives in Porto.", ("user", "sister", "ana")),
        ("I joined a choir last week.", None),
        ("I work with Dr. Smith and I live in St. Ives.", ("user", "residence", "st. ives")),
    ],
)
def test_a_claim_says_whose_attribute_has_which_value(text, claim):
    assert claims(text) == [claim]


def test_the_subject_is_the_speaker_where_the_speaker_has_a_name():
    assert claims("I like tea.", actor="Zoë") == [("zoe", "likes", "tea")]


def test_parts_with_a_subject_each_are_candidates_of_their_own():
    assert [one.content for one in found("I live in Berlin and I work at Siemens.")] == [
        "I live in Berlin",
        "I work at Siemens.",
    ]
    assert [one.content for one in found("My wife and I moved to Porto.")] == [
        "My wife and I moved to Porto."
    ]


def test_what_is_asked_to_be_remembered_is_sure_and_important():
    told = found("Please remember that the staging server is db-3.", "Note: I like tea.")
    assert [(one.content, one.category, one.confidence, one.importance) for one in told] == [
        ("the staging server is db-3.", Category.FACT, 0.95, 8.0),
        ("I like tea.", Category.PREFERENCE, 0.95, 8.0),
    ]


def test_who_is_unsure_is_believed_less():
    sure, unsure = found("I work at Acme.", "I work at Acme, I guess.")
    assert unsure.confidence < 0.65 <= sure.confidence


def test_the_same_sentence_twice_in_a_message_is_one_candidate():
    assert len(found("I live in Rome. I live in Rome.")) == 1


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("I've lived in Rome since May 2019.", "2019-05-01", None),
        ("I've worked for Acme since 2019.", "2019-01-01", None),
        ("I've worked for Acme since March 3, 2021.", "2021-03-03", None),
        ("I've worked for Acme since September.", "2023-09-01", None),
        ("I'm living in Oslo until August.", None, "2024-09-01"),
        ("I'm living in Oslo until 5 August 2024.", None, "2024-08-06"),
        ("From 2015 to 2019 I worked at IBM.", "2015-01-01", "2020-01-01"),
        ("Last year I lived in Madrid.", "2023-01-01", "2024-01-01"),
        ("I lived in Madrid in 2012.", "2012-01-01", "2013-01-01"),
        ("I was born in Kyoto in 1988.", None, None),
        ("I've lived in Rome for five years.", None, None),
        ("I've worked for Acme since February 30.", None, None),
    ],
)
def test_when_it_is_true_is_read_where_it_is_said_plainly(text, start, end):
    def moment(day):
        return datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None

    (one,) = found(text)
    assert (one.valid_from, one.valid_to) == (moment(start), moment(end))


def test_files_of_ones_own_are_added(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        """
        [parts]
        thing = "(?P<value>.{2,40}?)"
        [[rule]]
        name = "gosto"
        category = "preference"
        attribute = "likes"
        importance = 6
        confidence = 0.8
        words = ["gosto"]
        patterns = ["^(?:eu )?gosto de {thing}[.!]?$"]
        """
    )
    rules = Rules.of("en", file)
    told = found("Eu gosto de café.", "I have two cats.", rules=rules)
    assert [one.claim.value for one in told] == ["cafe", "two cats"]
    assert pickle.loads(pickle.dumps(rules)) == rules


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rule = 1 =", "is no TOML"),
        ("colour = 1", "there are: language"),
        ("[[rule]]\nname = 'x'\ncategory = 'mood'\nwords=[]\npatterns=[]", "there are: identity"),
        ("[[rule]]\nname = 'x'\nwords=[]\npatterns=['(']", "is no pattern"),
        ("[[rule]]\nname = 'x'\nwords=[]\npatterns=['{no}']", "is no pattern"),
        ("[[rule]]\nwidth = 1", "there are: name"),
        ("[refuse]\nmood = []", "there are: question"),
    ],
)
def test_a_file_that_means_nothing_is_refused(tmp_path, text, told):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=told):
        Rules.of(file)


def test_a_language_or_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InvalidInputError, match="there are: en"):
        Rules.of("xx")
    with pytest.raises(NotFoundError, match=r"there is no pattern file .*none\.toml"):
        Rules.of(tmp_path / "none.toml")
    with pytest.raises(InvalidInputError, match="no patterns"):
        Rules.of()


HOSTILE = {
    "one word": "a",
    "blanks": "I  ",
    "openings": "yeah, oh, well, ",
    "subjects": "I really ",
    "sentences": "I like x. ",
    "questions": "I like? ",
    "commas": "I like a, ",
    "quotes": 'I said "',
    "fences": "``` ",
    "marks": "<memory ",
    "headings": "Relevant memories:\n",
    "favorites": "my favorite ",
    "remember": "please remember that ",
    "dashes": " - I ",
    "lines": "\n \n",
    "dots": "Dr. ",
    "from now on": "please and so ",
}


def seconds_for(text):
    begun = time.process_time()
    RULES.extract(talk(text), reading=reading())
    return time.process_time() - begun


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_the_time_grows_no_faster_than_the_text(unit):
    """CPU seconds for four times the text, at most ten times as many."""
    shorter, longer = (seconds_for((unit * size)[:size]) for size in (100_000, 400_000))
    assert longer < 10 * max(shorter, 0.02)


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_a_sentence_takes_no_time_to_speak_of_however_it_is_made(unit):
    """CPU seconds for 100 sentences of 990 characters, which is 99 kB: 20 ms for each at most."""
    assert seconds_for(((unit * 990)[:990] + ".\n") * 100) < 2.0


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "I'm Mara, I live in Porto and work as a vet.",
            ["I'm Mara, I live in Porto", "I work as a vet."],
        ),
        ("I love music and play the piano.", ["I love music", "I play the piano."]),
        ("I like to swim and play tennis.", ["I like to swim and play tennis."]),
    ],
)
def test_facts_of_one_sentence_part_so_that_a_change_of_one_hides_no_other(said, kept):
    conversation = Conversation(messages=(Message(content=said),))
    told = Reading(job="j", now=NOON, known=list)
    assert [one.content for one in Rules().extract(conversation, reading=told).items] == kept
