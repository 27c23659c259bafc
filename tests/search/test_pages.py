"""Pages are parts of one order, and a search looks no deeper than it has to."""

import importlib
from datetime import timedelta

import numpy as np
import pytest

from lance_memory import MemoryStore, Ranking, Recency
from lance_memory.record.filters import Filter
from lance_memory.search.depth import first_depth
from lance_memory.search.names import Mentions
from lance_memory.search.query import Mode, Page, Query
from lance_memory.search.question import Question

run_module = importlib.import_module("lance_memory.search.run")  # `search.run` is its function


class Longest:
    """Prefers long texts, and remembers how many it was given."""

    def __init__(self):
        self.seen = []

    def rerank(self, query, hits):
        self.seen.append(len(hits))
        return [len(hit.memory.content) for hit in hits]


@pytest.fixture(scope="module")
def many(tmp_path_factory, embedder, ticking):
    """1,200 memories of ever other age and importance; the words w1 and w2 in most."""
    clock = ticking()
    store = MemoryStore.open(
        tmp_path_factory.mktemp("pages") / "store", embedder=embedder, clock=clock
    )
    random = np.random.default_rng(11)
    store.add_many(
        {
            "content": f"w1 w2 w{random.integers(3, 30)} {'x' * random.integers(1, 30)} n{i}",
            "importance": float(random.random()),
            "event_at": clock.now - timedelta(days=int(random.integers(0, 900))),
            "tags": ["rare"] if i % 400 == 0 else [],
        }
        for i in range(1_200)
    )
    return store


@pytest.fixture
def depths(monkeypatch):
    """How deep the legs were asked, in turn."""
    asked = []
    real = run_module.legs

    def legs(*given, depth, **more):
        asked.append(depth)
        return real(*given, depth=depth, **more)

    monkeypatch.setattr(run_module, "legs", legs)
    return asked


def ids(found):
    return [hit.memory.id for hit in found]


def paged(store, *, size, until, **asked):
    pages = [
        store.search("w1 w2 w7", k=size, offset=offset, **asked) for offset in range(0, until, size)
    ]
    return [name for page in pages for name in ids(page)]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_search_that_cannot_fill_its_page_asks_once(many, depths, mode):
    found = many.search("w1 w2", k=10, mode=mode, tags="rare")
    assert (len(found), len(depths)) == (3, 1)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_page_behind_the_last_hit_asks_no_deeper_than_there_are_rows(many, depths, mode):
    assert len(many.search("n7", k=10, offset=5_000, mode=mode)) == 0
    assert len(depths) == 1


def test_what_is_collapsed_makes_a_search_look_deeper_and_no_deeper_than_what_passes(store, depths):
    sources = store.add_many(f"alpha beta n{i}" for i in range(150)).ids
    store.supersede(sources, "alpha beta")
    store.add_many(f"gamma {i}" for i in range(300))
    found = store.search("alpha beta", k=200, states=["active", "superseded"], mode="vector")
    assert len(found) == 200
    assert depths == [400]
    store.search("alpha beta", k=440, states=["active", "superseded"], mode="vector")
    assert depths[1:] == [1_600]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "ranking",
    [Ranking(recency=Recency(half_life=timedelta(days=30), floor=0)), Ranking(importance=1.0)],
    ids=["recency", "importance"],
)
def test_pages_of_a_search_with_factors_are_parts_of_it(many, mode, ranking):
    whole = many.search("w1 w2 w7", k=300, mode=mode, ranking=ranking)
    assert paged(many, size=30, until=300, mode=mode, ranking=ranking) == ids(whole)
    scores = [hit.score for hit in whole]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", list(Mode))
def test_factors_reorder_the_head_and_what_lies_deeper_keeps_the_legs_order(many, mode):
    ranking = Ranking(importance=1.0)
    plain = ids(many.search("w1 w2 w7", k=300, mode=mode))
    found = ids(many.search("w1 w2 w7", k=300, mode=mode, ranking=ranking))
    if mode != Mode.HYBRID:
        assert (set(found[:100]), found[100:]) == (set(plain[:100]), plain[100:])
    assert found[:100] != plain[:100]


@pytest.mark.parametrize("mode", list(Mode))
def test_the_parts_make_the_score_where_factors_count_too(many, mode):
    ranking = Ranking(importance=0.7, recency=Recency(half_life=timedelta(days=30)))
    found = many.search("w1 w2 w7", k=50, mode=mode, ranking=ranking)
    totals = [
        (p.vector + p.words + p.neighbours + p.actor + p.period) * p.recency * p.importance
        for p in (hit.parts for hit in found)
    ]
    assert [hit.score for hit in found] == pytest.approx([total / totals[0] for total in totals])


@pytest.mark.parametrize("mode", list(Mode))
def test_every_page_of_a_deeply_reranked_search_reranks_the_same(many, mode):
    chosen = Longest()
    ranking = Ranking(reranker=chosen, rerank_depth=250)
    whole = ids(many.search("w1 w2 w7", k=400, mode=mode, ranking=ranking))
    assert paged(many, size=50, until=400, mode=mode, ranking=ranking) == whole
    assert set(chosen.seen) == {250}


def test_pages_of_words_that_all_score_the_same_never_repeat(store):
    store.add_many(f"kettle n{i}" for i in range(1_000))
    pages = [
        name
        for offset in range(0, 200, 10)
        for name in ids(store.search("kettle", k=10, offset=offset, mode="text"))
    ]
    assert pages == ids(store.search("kettle", k=200, mode="text"))


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_scores_are_sorted_and_the_best_is_1_where_everything_points_away(store, embedder, mode):
    vectors = embedder.embed(["one two", "one three", "one four five"])
    asked = -vectors.sum(axis=0)
    store.add_many(
        {"content": f"c{i}", "embedding": vector.astype(np.float32)}
        for i, vector in enumerate(vectors)
    )
    found = store.search("zebra", vector=asked, mode=mode)
    assert found[0].similarity < 0
    scores = [hit.score for hit in found]
    assert scores[0] == 1
    assert scores == sorted(set(scores), reverse=True)
    similarities = [hit.similarity for hit in found]
    assert similarities == sorted(similarities, reverse=True)


def test_a_similarity_lies_within_its_bounds(store):
    store.add_many(f"same words n{i}" for i in range(50))
    for i in range(50):
        best = store.search(f"same words n{i}", k=1, mode="vector")[0]
        assert -1 <= best.similarity <= 1


# -- how deep the legs look


def depth_of(end, *, mode="vector", k=10, **ranking):
    page = Page.of(
        k=min(k, end), offset=max(0, end - k), where=Filter(), ranking=Ranking(**ranking)
    )
    asked = Query(text="x", vector=None, mode=Mode(mode))
    question = Question(query=asked, embed="x", words="x", mentions=Mentions(), periods=())
    return first_depth([question], page, rows=10**6)


def test_the_vector_leg_is_asked_in_steps_so_that_pages_within_one_agree():
    assert [depth_of(end) for end in (10, 20, 30, 40, 50, 160, 170)] == [
        16, 40, 40, 40, 160, 160, 640,
    ]  # fmt: skip
    assert all(80 % depth_of(end) == 0 for end in range(1, 41))


def test_the_first_page_of_one_leg_asks_for_hardly_more_than_it_shows():
    assert depth_of(10) <= 16
    assert depth_of(10, mode="text") == 10


def test_what_reorders_has_one_head_for_every_page():
    for more in ({"importance": 0.5}, {"reranker": Longest(), "rerank_depth": 50}):
        assert {depth_of(end, mode=mode, **more) for end in (10, 50, 100) for mode in Mode} == {100}
    assert depth_of(10, reranker=Longest(), rerank_depth=300) == 400
