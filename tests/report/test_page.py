"""The page: whole in one file, readable by anybody, and nothing in it that a memory could steer."""

import html
import os
import re
import stat
from collections import Counter
from html.parser import HTMLParser

import pytest

from lance_memory import InvalidInputError, MissingExtraError, NotFoundError, StorageError, extras

SECTIONS = (
    "Growth and churn",
    "Lifecycle",
    "Duplicates and staleness",
    "Scope sizes",
    "Consolidation passes",
    "What is recalled, and what never is",
    "Map of the embeddings",
    "Lineage of one memory",
    "Two versions compared",
    "One question over time",
)
VOID = {"meta", "path", "rect", "line", "circle"}


class Read(HTMLParser):
    """Elements with their attributes, texts, and whether every element is closed in its turn."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open, self.wrong = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="session")
def read(made):
    return Read(made.html)


def test_it_has_every_section_in_order(made, read):
    titles = re.findall(r'<h2 id="[\w-]+">(.*?)</h2>', made.html)
    assert tuple(map(html.unescape, titles)) == SECTIONS
    assert made.result.sections == SECTIONS
    assert made.result.empty == ()
    assert made.result.bytes == made.path.stat().st_size
    assert made.result.version == made.store.version
    assert len(read.of("figure")) == 15


def test_nothing_in_it_runs_or_is_fetched(read):
    assert {tag for tag, _ in read.elements} <= {
        *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav"),
        *("section", "figure", "figcaption", "details", "summary", "div", "p", "span", "strong"),
        *("h1", "h2", "h3", "dl", "dt", "dd", "ul", "li", "a", "code"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *("svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clippath"),
    }
    for tag, attrs in read.elements:
        assert not {
            name for name in attrs if name.startswith("on") or name in ("src", "xlink:href")
        }
        assert attrs.get("href", "#").startswith("#"), (tag, attrs)
        assert "url(" not in attrs.get("style", "")
        assert all(
            "url(" not in (v or "") or re.fullmatch(r"url\(#[\w-]+\)", v) for v in attrs.values()
        )
    policy = [one["content"] for one in read.of("meta") if "http-equiv" in one]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_what_memories_say_is_text(made, read):
    """Whatever a memory, a scope or a reason says is shown as it is, and steers nothing."""
    told = "".join(read.texts)
    assert "<script>alert(1)</script><img src=x onerror=alert(2)> pear pie" in told
    assert "\"quoted\" & 'single' </svg></title></style> pear tart" in told
    assert "{{ 7 * 7 }} {% raw %} ]]> <!-- pear jam" in told
    assert "turned \\u202egnp.exe\\u202c and \\u2066hidden\\u2069 pear cake" in told
    assert "bob<b>" in told
    assert "<i>a pass</i>" in told
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", made.html)
    assert (read.wrong, read.open) == ([], [])


def test_it_can_be_read_without_seeing(read):
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    assert read.of("html") == [{"lang": "en"}]
    assert (len(read.of("h1")), len(read.of("main"))) == (1, 1)
    for attrs in read.of("section"):
        assert attrs["aria-labelledby"] in ids
    images = [attrs for attrs in read.of("div") if attrs.get("role") == "img"]
    assert len(images) == len(read.of("figure"))
    assert all(len(attrs["aria-label"]) > 20 for attrs in images)
    assert all(attrs["aria-hidden"] == "true" for attrs in read.of("svg"))
    assert all(attrs["scope"] == "col" for attrs in read.of("th"))
    targets = {attrs["href"].removeprefix("#") for attrs in read.of("a")}
    assert targets <= set(ids)


def test_drawings_are_in_the_colours_of_the_page(made, read):
    """Light and dark differ in variables alone, so no drawing may have a colour of its own."""
    painted = {
        attrs[name] for _, attrs in read.elements for name in ("fill", "stroke") if name in attrs
    }
    assert {value for value in painted if not value.startswith("var(--")} <= {"none", "transparent"}
    used = set(re.findall(r"var\((--[\w]+)\)", made.html))
    assert all(made.html.count(f"{name}:") == 2 for name in used)


def test_each_drawing_is_there_for_wide_and_for_narrow_windows(read):
    kinds = Counter(attrs["class"] for attrs in read.of("svg"))
    assert kinds == {"wide": 15, "narrow": 15}
    for attrs in read.of("svg"):
        width = float(attrs["viewbox"].split()[2])
        assert width <= (320 if attrs["class"] == "narrow" else 920), attrs


def test_its_numbers_are_those_of_the_store(made, read):
    stats = made.store.stats()
    tiles = re.findall(r"<li><strong>(.*?)</strong><span>(.*?)</span>", made.html)
    found = {what: number for number, what in tiles}
    assert found["visible memories"] == str(stats.visible)
    assert found["hidden, and kept"] == str(stats.rows - stats.visible)
    assert found["recorded queries"] == str(made.store.usage().queries)
    cells = re.findall(
        r'<td dir="auto">bob&lt;b&gt;</td><td dir="auto" class="right">(\d+)</td>', made.html
    )
    assert cells == [str(made.store.count(user="bob<b>"))]


def test_of_a_version_it_is_the_same_page_again(made, tmp_path):
    pages, then = [], made.store.at("start")
    for name in ("one", "two"):
        found = made.store.report(tmp_path / name, at="start", question="green tea", sample=3)
        assert (found.version, found.at) == (then.version, then.stats().at)
        pages.append((tmp_path / name).read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "pear" not in pages[0]  # nothing of what came later
    assert f"A sample of 3 of {then.count()} visible memories." in pages[0]


def test_a_scope_has_only_its_own(made, tmp_path):
    found = made.store.scoped(user="bob<b>").report(tmp_path / "bob.html", question="green tea")
    told = "".join(Read((tmp_path / "bob.html").read_text(encoding="utf-8")).texts)
    assert "Bob repairs" in told
    assert not re.search("Ann|pear|honey", told.replace("“green tea”", ""))
    assert "Growth and churn" in found.sections


def test_an_empty_store_has_a_page_that_says_so(store, tmp_path):
    found = store.report(tmp_path / "empty.html")
    assert found.sections == ()
    assert found.empty == SECTIONS
    told = "".join(Read((tmp_path / "empty.html").read_text(encoding="utf-8")).texts)
    assert "No version has written a memory yet." in told


def test_it_makes_no_version_and_records_no_query(made, tmp_path):
    before, asked = made.store.version, len(made.store.queries())
    made.store.scoped(user="nobody").report(tmp_path / "x.html", question="tea")
    assert (made.store.version, len(made.store.queries())) == (before, asked)


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(store, tmp_path):
    place = tmp_path / "report.html"
    place.write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="is there already"):
        store.report(place)
    assert place.read_text(encoding="utf-8") == "mine"
    with pytest.raises(InvalidInputError, match="is a directory"):
        store.report(tmp_path)
    with pytest.raises(InvalidInputError, match="is inside the store"):
        store.report(tmp_path / "store" / "report.html")
    with pytest.raises(StorageError, match="too long"):
        store.report(tmp_path / ("x" * 5_000))
    told = []
    store.report(place, overwrite=True, progress=lambda *step: told.append(step))
    assert place.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [done for done, _, _ in told] == list(range(9))
    assert {all for _, all, _ in told} == {8}


def test_a_new_file_is_for_its_owner_alone(made):
    if os.name == "posix":
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sample": 1}, InvalidInputError),
        ({"ref": "nobody"}, NotFoundError),
        ({"at": 99}, NotFoundError),
        ({"before": "no such tag"}, NotFoundError),
    ],
)
def test_what_is_not_there_leaves_no_file(made, options, error, tmp_path):
    with pytest.raises(error):
        made.store.report(tmp_path / "x.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_names_the_extra(store, tmp_path, monkeypatch):
    store.add("something to draw")

    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(extras.importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"lance-memory\[analysis\]"):
        store.report(tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == [tmp_path / "store"]
