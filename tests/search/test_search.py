from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from lance_memory import InvalidInputError, MemoryStore, Mode, SearchResult
from lance_memory.search.query import brief
from lance_memory.storage import Snapshot

MODES = ("vector", "text", "hybrid")


def contents(hits):
    return [hit.memory.content for hit in hits]


@pytest.fixture
def kitchen(store):
    store.add_many(
        [
            "the kettle stands on the shelf",
            "a kettle boils water",
            "cats sleep all day",
            "error E4711 in module seven",
        ]
    )
    return store


@pytest.fixture(scope="module")
def many(tmp_path_factory, embedder, ticking):
    """400 memories over 40 words, 60 more of which every second is hidden and nearest."""
    store = MemoryStore.open(
        tmp_path_factory.mktemp("many") / "store", embedder=embedder, clock=ticking()
    )
    random = np.random.default_rng(7)
    store.add_many(
        [" ".join(f"w{n}" for n in random.choice(40, 6, replace=False)) for _ in range(400)]
        + [
            {
                "content": f"w1 w2 w3 x{i}",
                "state": "retired" if i % 2 else "active",
                "tags": ["near"],
            }
            for i in range(60)
        ]
    )
    return store


def test_a_result_says_where_how_and_why(kitchen):
    found = kitchen.search("kettle water", k=2)
    assert isinstance(found, SearchResult)
    assert (found.version, found.mode, found.degraded, len(found)) == (
        kitchen.version,
        Mode.HYBRID,
        {},
        2,
    )
    assert contents(found)[0] == "a kettle boils water"
    assert [h.memory.id for h in found] == [found[0].memory.id, found[1].memory.id]
    best = found[0]
    assert 0 <= best.score <= 1
    assert -1 <= best.similarity <= 1
    assert best.words > 0
    assert best.explain() == (
        "score 1.000 from vector 0.500 + words 0.500 = 1.000 "
        f"(cosine {best.similarity:.3f}, BM25 {best.words:.2f})"
    )


def test_a_leg_that_did_not_see_a_memory_says_so(kitchen):
    text = kitchen.search("kettle", mode="text")[0]
    vector = kitchen.search("kettle", mode="vector")[0]
    assert (text.similarity, vector.words) == (None, None)
    assert "not by vector" in text.explain()
    assert "not by words" in vector.explain()


def test_a_similarity_is_the_cosine_and_falls_with_distance(kitchen, embedder):
    """C20, C51."""
    query = "kettle boils"
    (asked,) = embedder.embed([query])
    found = kitchen.search(query, mode="vector")
    for hit in found:
        (other,) = embedder.embed([hit.memory.content])
        cosine = asked @ other / np.linalg.norm(asked) / np.linalg.norm(other)
        assert hit.similarity == pytest.approx(cosine, abs=1e-5)
    similarities = [hit.similarity for hit in found]
    assert similarities == sorted(similarities, reverse=True)
    assert kitchen.search("cats sleep all day", mode="vector")[0].similarity == pytest.approx(
        1, abs=1e-5
    )


def test_what_only_matches_by_words_is_found_in_hybrid_mode(store, embedder):
    """C17."""
    far = -embedder.embed(["E4711 failed"])[0]
    store.add_many([f"E47 failed again {i}" for i in range(120)])
    target = store.add("module seven says E4711", embedding=far)
    assert "module seven says E4711" in contents(store.search("E4711 failed", k=10))
    assert store.get(target.id).embedding.tolist() == far.tolist()


def test_a_given_vector_takes_the_place_of_the_querys(kitchen, embedder):
    (cats,) = embedder.embed(["cats sleep all day"])
    assert contents(kitchen.search(vector=cats, k=1)) == ["cats sleep all day"]
    assert kitchen.search(vector=list(map(float, cats))).mode == Mode.VECTOR
    both = kitchen.search("E4711", vector=cats, k=2)
    assert set(contents(both)) == {"cats sleep all day", "error E4711 in module seven"}


def test_a_memory_without_an_embedding_is_found_by_words(store):
    stored = store.add("a kettle")
    store.update(stored.id, embedding=None)
    store.add("a pot")
    assert contents(store.search("kettle", mode="text")) == ["a kettle"]
    assert contents(store.search("kettle"))[0] == "a kettle"
    assert store.stats().without_embedding == 1


@pytest.mark.parametrize("mode", MODES)
def test_k_of_zero_gives_nothing_and_k_beyond_all_gives_all(kitchen, mode):
    """C24."""
    assert (len(kitchen.search("kettle", k=0, mode=mode)), kitchen.search("kettle", k=0).hits) == (
        0,
        (),
    )
    expected = {"vector": 4, "hybrid": 4, "text": 2}[mode]
    assert len(kitchen.search("kettle", k=10**6, mode=mode)) == expected
    assert len(kitchen.search("kettle", offset=10**6, mode=mode)) == 0


@pytest.mark.parametrize("paging", [{"k": 2**63}, {"k": 10**30}, {"offset": 10**30}], ids=str)
def test_a_k_beyond_all_counting_gives_all_or_is_refused(kitchen, paging):
    try:
        found = kitchen.search("kettle", **paging)
    except InvalidInputError:
        return
    assert len(found) == (0 if "offset" in paging else 4)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"query": ""}, "the query is blank"),
        ({"query": " \n\t\u3000"}, "the query is blank"),
        ({}, "needs a text or a vector"),
        ({"query": "x", "k": -1}, "k=-1; it takes a whole number from 0 on"),
        ({"query": "x", "offset": -1}, "offset=-1; it takes a whole number from 0 on"),
        ({"query": "x", "k": 2.5}, "k=2.5; it takes a whole number"),
        ({"query": "x", "k": "3"}, "k='3'; it takes a whole number"),
        ({"query": "x", "k": None}, "k=None; it takes a whole number"),
        ({"query": "x", "offset": None}, "offset=None; it takes a whole number"),
        ({"query": "x", "mode": "psychic"}, "there are: vector, text, hybrid"),
        ({"query": 5}, "query"),
        ({"vector": [1.0] * 16, "mode": "text"}, "mode 'text' needs a query text"),
        ({"vector": [1.0] * 15}, r"shape \[15\]; the store's have 16"),
        ({"vector": [[1.0] * 16]}, r"shape \[1, 16\]; the store's have 16"),
        ({"vector": []}, "the store's have 16"),
        ({"vector": [float("nan")] * 16}, "finite and not all zero"),
        ({"vector": [float("inf")] + [1.0] * 15}, "finite and not all zero"),
        ({"vector": [0.0] * 16}, "no direction"),
        ({"vector": [1e300] * 16}, "finite"),
        ({"vector": ["a"] * 16}, "vector"),
        ({"vector": "text"}, "vector"),
        ({"query": "a\ud800"}, "surrogate|Unicode|query"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_a_search_that_makes_no_sense_says_why(kitchen, asked, message):
    """C23, C24."""
    with pytest.raises(InvalidInputError, match=message):
        kitchen.search(**asked)


@pytest.mark.parametrize("exponent", [-40, -25, 25])
def test_the_length_of_a_query_vector_does_not_matter_or_is_refused(kitchen, embedder, exponent):
    (cats,) = embedder.embed(["cats sleep all day"])
    vector = cats.astype(np.float64) * 10.0**exponent
    try:
        found = kitchen.search(vector=vector, k=1)
    except InvalidInputError:
        return
    assert contents(found) == ["cats sleep all day"]
    assert found[0].similarity == pytest.approx(1, abs=1e-3)


# -- C18 ------------------------------------------------------------------------------------

QUERIES = [
    "it's",
    "don't 'quote' me",
    "well-known",
    "-",
    "--",
    "a:b",
    "content:x",
    "field:",
    '"',
    '"kettle',
    "'",
    "*",
    "ket*",
    "?",
    "NOT",
    "NOT kettle",
    "kettle AND",
    "OR",
    "AND OR NOT",
    "(",
    "((a)",
    "[a TO b]",
    "{",
    "+kettle -water",
    "a^2",
    "a~1",
    "\\",
    "/x/",
    "&&",
    "||",
    "!",
    "😀",
    "👩‍👩‍👧",
    "the of and",
    "the",
    ".",
    "...",
    "\0",
    "\u200b",
    "x' OR '1'='1",
    ";DROP TABLE memories",
    "%",
    "_",
    "`",
    "a\nb",
    "kettle " * 2_000,
    "x" * 100_000,
    "שלום",
    "١٢٣",
    "<script>",
    "${x}",
    "null",
    "None",
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: repr(q)[:20])
def test_nothing_in_a_query_is_an_operator(kitchen, query):
    for mode in MODES:
        found = kitchen.search(query, mode=mode, k=10)
        assert found.degraded == {}
        said = contents(found)
        assert len(set(said)) == len(said) <= 4
        if mode != "text":
            assert len(said) == 4


@pytest.mark.parametrize(
    "query",
    [
        "NOT kettle",
        "kettle*",
        '"kettle"',
        "-kettle",
        "+kettle",
        "(kettle",
        "kettle:",
        "kettle'",
        "KETTLE",
        "kettle?!",
        "content:kettle",
        "kettles",
    ],
)
def test_words_between_signs_are_words(kitchen, query):
    assert sorted(contents(kitchen.search(query, mode="text"))) == [
        "a kettle boils water",
        "the kettle stands on the shelf",
    ]


@pytest.mark.parametrize("query", ["the of and", "***", "\u200b", "😶"])
def test_a_query_that_means_nothing_in_words_gives_an_empty_result(kitchen, query):
    found = kitchen.search(query, mode="text")
    assert (found.hits, found.mode, found.version) == ((), Mode.TEXT, kitchen.version)


# -- C19 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "queries"),
    [
        (
            "Preciso de autenticação em duas etapas",
            ["autenticacao", "autenticação", "AUTENTICAÇÃO", "etapas"],
        ),
        ("我喜欢喝绿茶", ["绿茶", "喜欢"]),
        ("東京でラーメンを食べた", ["東京", "ラーメン"]),
        ("나는 서울에서 비빔밥을 먹었다", ["서울", "서울은", "비빔밥", "비빔밥이 어땠어?"]),
        ("회의는 월요일입니다", ["회의", "월요일", "월요일에"]),
        ("집에서 쉬었다", ["집", "집은", "집에서", "집으로"]),
        ("물이 차갑다", ["물을", "물은", "물"]),
        ("책이 많다", ["책을", "책", "책도 있어?"]),
        ("비빔밥을 먹었다", [unicodedata.normalize("NFD", "비빔밥")]),
        ("Der Müller grüßt", ["muller", "Müller", "grüßt"]),
        ("kiểm thử phần mềm", ["kiem", "mềm"]),
        ("emoji 😀 kettle", ["kettle"]),
    ],
)
def test_words_of_other_languages_are_found(store, content, queries):
    store.add_many([content, "something else entirely", "전혀 다른 이야기"])
    for query in [*queries, *queries]:
        assert contents(store.search(query, mode="text")) == [content], query


@pytest.mark.parametrize("indexed", [False, True])
def test_a_korean_noun_of_one_syllable_is_no_beginning_of_other_words(store, indexed):
    store.add_many(["집에서 쉬었다", "집중이 안 된다", "집안 청소"])
    if indexed:
        store.optimize()
    assert contents(store.search("집이", mode="text")) == ["집에서 쉬었다"]


def test_fresh_korean_words_are_read_once_for_a_version(store, monkeypatch):
    store.add_many(["회의는 월요일입니다", "비빔밥을 먹었다", *(f"kettle n{i}" for i in range(50))])
    read = []
    real = Snapshot._contents_outside

    def contents_outside(snapshot, index):
        read.append(snapshot.version)
        return real(snapshot, index)

    monkeypatch.setattr(Snapshot, "_contents_outside", contents_outside)
    assert contents(store.search_many(["회의에서", "비빔밥이"], mode="text")[1]) == [
        "비빔밥을 먹었다"
    ]
    store.search("월요일에", mode="text")
    assert read == [store.version]


# -- C15 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_pages_are_full_and_never_repeat_or_skip(many, mode):
    whole = [h.memory.id for h in many.search("w1 w2 w3", k=1_000, mode=mode)]
    pages = []
    for offset in range(0, len(whole) + 10, 10):
        page = [h.memory.id for h in many.search("w1 w2 w3", k=10, offset=offset, mode=mode)]
        assert len(page) == min(10, max(0, len(whole) - offset))
        pages += page
    assert len(set(pages)) == len(pages)
    assert set(pages) == set(whole)


@pytest.mark.parametrize("mode", MODES)
def test_hidden_memories_take_no_place_of_a_page(many, mode):
    found = many.search("w1 w2 w3", k=30, mode=mode)
    assert (len(found), {h.memory.state for h in found}) == (30, {"active"})
    assert len(many.search("w1 w2 w3", k=30, mode=mode, tags="near")) == 30
    assert len(many.search("w1 w2 w3", k=99, mode=mode, tags="near", states="any")) == 60


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_collapsed_sources_take_no_place_of_a_page(store, mode):
    ids = store.add_many(f"alpha beta n{i}" for i in range(150)).ids
    store.supersede(ids, "alpha beta")
    store.add_many(f"alpha gamma delta {i}" for i in range(12))
    found = store.search("alpha beta", k=10, mode=mode, states="any")
    assert len(found) == 10
    assert {h.memory.state for h in found} == {"active"}


def test_a_source_never_stands_next_to_its_summary_but_is_reachable(store):
    """C02."""
    old = store.add("lives in Rome").id
    new = store.supersede(old, "lives in Oslo").ids[0]
    assert [h.memory.id for h in store.search("lives in")] == [new]
    assert [h.memory.id for h in store.search("lives in", states=["active", "superseded"])] == [new]
    assert [h.memory.id for h in store.search("lives in", states="superseded")] == [old]


@pytest.mark.parametrize("state", ["pending", "superseded", "retired", "contradicted"])
@pytest.mark.parametrize("mode", MODES)
def test_hidden_memories_are_not_searched_unless_asked_for(store, state, mode):
    store.add("a kettle", state=state)
    assert contents(store.search("kettle", mode=mode)) == []
    assert contents(store.search("kettle", mode=mode, states=state)) == ["a kettle"]


def test_rows_are_found_at_once_by_every_leg(store):
    """C22."""
    store.add("first")
    store.optimize()
    store.add("a late kettle")
    for mode in MODES:
        assert contents(store.search("late kettle", k=1, mode=mode)) == ["a late kettle"]


def test_the_same_question_has_the_same_answer(many):
    one, two = (many.search("w1 w5 w9", k=50) for _ in range(2))
    assert [(h.memory.id, h.score) for h in one] == [(h.memory.id, h.score) for h in two]


def test_a_search_over_nothing_is_empty(store):
    for mode in MODES:
        assert store.search("anything", mode=mode).hits == ()


@pytest.mark.parametrize("joint", [" ", ",", ";", " - ", "/", "，", "\n"])
def test_of_a_long_question_the_first_thousand_words_are_asked_however_they_are_joined(joint):
    words = [f"w{i}" for i in range(5_000)]
    assert brief(joint.join(words * 2)) == " ".join(words[:1_000])
    assert len(brief("字" * 50_000)) == 8_000


def test_a_long_question_keeps_its_words_whole():
    words = [
        "it's",
        "3.14",
        "naïve",
        "e\u0301cole",
        "हिन्दी",
        "don’t",
        *(f"w{i}" for i in range(200)),
    ]
    assert brief(" ".join(words)).split() == words


@pytest.mark.parametrize("name", ["limit", "top_k", "n"])
def test_other_names_of_k_are_told_its_name(kitchen, name):
    with pytest.raises(InvalidInputError, match="how many is k="):
        kitchen.search("kettle", **{name: 3})


def test_in_a_session_of_python_a_result_is_short_and_has_the_ids(kitchen):
    result = kitchen.search("kettle water", k=1)
    memory = result[0].memory
    hit = f"<Hit 1.000 'a kettle boils water'; (all), id {memory.id}>"
    assert repr(result[0]) == hit
    assert repr(result) == f"<SearchResult [{hit}]; mode hybrid, version {kitchen.version}>"
