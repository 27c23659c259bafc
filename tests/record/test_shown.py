"""What a notebook shows of a store, its memories, answers and plans."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from lance_memory import ConsolidateOptions
from lance_memory.html import Markup, mark, pairs, table

HOSTILE = '<script>alert(1)</script> & "quotes" \' \u202e gnitirw \x00'


class Reader(HTMLParser):
    """The elements of a piece of HTML, its text, and whether all that opens is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f"{data}\n"


def read(value):
    return Reader(value._repr_html_())


@pytest.fixture
def filled(store):
    store.add(HOSTILE, user="ana", actor=HOSTILE, tags=["<b>"], metadata={"<i>": "</td>"})
    store.add("Mara lives in Lisbon, near the old harbour.", key="home")
    store.upsert("Mara lives in Porto, near the old bridge.", key="home")
    return store


def test_every_value_is_sound_html_and_nothing_in_it_is_markup(filled):
    """What memories say is escaped wherever it stands; elements are closed as they were opened."""
    filled.add_many([f"{HOSTILE} {end}" for end in ("now", "then")])
    plan = filled.consolidate(options=ConsolidateOptions(min_similarity=0.1), dry_run=True)
    assert plan.clusters
    shown = [
        filled,
        filled.scoped(user="ana"),
        filled.at(filled.version),
        filled.get(filled.list(user="ana")[0].id),
        filled.search("script alert"),
        filled.diff(1),
        filled.lineage("home"),
        plan,
        filled.rollback(1, dry_run=True),
        filled.forget(user="ana", dry_run=True),
        filled.doctor(),
        filled.optimize(dry_run=True),
    ]
    for value in shown:
        found = read(value)
        assert not {"script", "b", "i"} & set(found.tags), value
    text = "".join(read(value).text for value in shown)
    assert "<script>alert(1)</script>" in text


def test_a_search_shows_what_was_found_and_why(filled):
    found = read(filled.search("Where does Mara live?", k=1))
    memory = filled.get("home")
    assert found.tags.count("tr") == 2
    assert {"Mara lives in Porto, near the old bridge.", "1", memory.id} <= set(
        found.text.split("\n")
    )


def test_a_difference_marks_the_words_that_changed(filled):
    kept = filled.add("The spare key is under the blue pot.").id
    before = filled.version
    filled.update(kept, content="The spare key is under the red pot.")
    shown = filled.diff(before)._repr_html_()
    assert "<span>The spare key is under the</span> <del>blue</del> <ins>red</ins>" in shown


def test_a_plan_strikes_what_would_be_replaced(store):
    store.add_many(["The spare key is under the blue pot.", "The spare key: under the blue pot."])
    options = ConsolidateOptions(min_similarity=0.3)
    plan = store.consolidate(options=options, dry_run=True)
    shown = plan._repr_html_()
    assert shown.count("<del>") == 2
    assert shown.count("<ins>") == 1
    assert "1 row saved" in shown


def test_a_store_shows_its_numbers(filled):
    text = read(filled).text
    assert "3, of which 2 are visible" in text
    assert "2 active, 1 superseded" in text


def test_a_memory_tells_its_scores_as_they_were_written(store):
    """They are kept as float32, of which 0.9 is 0.8999999761581421 to Python."""
    found = store.get(store.add("x", importance=0.9, confidence=0.1, quality=0.7).id)
    assert (found.importance, found.confidence, found.quality) == (0.9, 0.1, 0.7)


def test_a_text_is_escaped_once_and_markup_not_at_all():
    assert mark("a < b", "em") == "<em>a &lt; b</em>"
    assert mark(Markup("<b>a</b>"), "em") == "<em><b>a</b></em>"
    assert pairs({"none": None, "zero": 0, "empty": ""}).count("<tr>") == 1
    assert "<bdi>\u202e</bdi>" in table(["a"], [["\u202e"]])
    assert ">0.5<" in table(["a"], [[0.5]])


def test_a_difference_of_long_texts_is_cut_to_what_differs(filled):
    """Comparing 100,000 words that repeat took minutes, and a notebook got megabytes."""
    words = [f"w{n % 997}" for n in range(100_000)]
    kept = filled.add(" ".join(words)).id
    before = filled.version
    filled.update(kept, content=" ".join([*words[:50_000], "changed", *words[50_000:]]))
    shown = filled.diff(before)._repr_html_()
    assert "<ins>changed" in shown
    assert shown.count("…") == 2
    assert len(shown) < 10_000
