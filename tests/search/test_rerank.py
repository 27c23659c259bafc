"""A second look at the first candidates."""

import lancedb.rerankers
import numpy as np
import pytest

from lance_memory import (
    InvalidInputError,
    LanceDBReranker,
    LateInteraction,
    MemoryStore,
    MiniLM,
    Ranking,
)


class Longest:
    """Prefers long texts, and remembers what it was asked."""

    def rerank(self, query, hits):
        self.seen = (query, len(hits))
        return [len(hit.memory.content) for hit in hits]


@pytest.fixture
def kettles(store):
    store.add_many([f"kettle {'x' * i}" for i in range(1, 31)])
    return store


def test_a_reranker_orders_the_first_hits_and_the_others_follow(kettles):
    chosen = Longest()
    plain = kettles.search("kettle", k=30)
    found = kettles.search("kettle", k=30, ranking=Ranking(reranker=chosen, rerank_depth=10))
    assert chosen.seen == ("kettle", 10)
    first = sorted(plain.hits[:10], key=lambda hit: -len(hit.memory.content))
    assert [h.memory.id for h in found] == [h.memory.id for h in [*first, *plain.hits[10:]]]
    assert found[0].score == 1
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert [h.parts.reranker is None for h in found] == [False] * 10 + [True] * 20


def test_pages_of_a_reranked_search_are_parts_of_it(kettles):
    ranking = Ranking(reranker=Longest(), rerank_depth=10)
    whole = [h.memory.id for h in kettles.search("kettle", k=30, ranking=ranking)]
    pages = [
        h.memory.id
        for offset in range(0, 30, 4)
        for h in kettles.search("kettle", k=4, offset=offset, ranking=ranking)
    ]
    assert pages == whole


def test_a_reranker_sees_the_question_without_known_names(store):
    store.add("a kettle boils", actor="Ana")
    chosen = Longest()
    store.search("What kettle did Ana boil?", ranking=Ranking(reranker=chosen))
    assert chosen.seen == ("What kettle did boil?", 1)


def test_nothing_found_is_not_reranked(store):
    chosen = Longest()
    assert len(store.search("kettle", ranking=Ranking(reranker=chosen))) == 0
    assert not hasattr(chosen, "seen")


@pytest.mark.parametrize(
    "given",
    [
        [1.0],
        [[1.0, 2.0]],
        [1.0, float("nan")],
        ["1.0", "2.0"],
        ["good", "bad"],
        [1.0, None],
        [[1.0], [1.0, 2.0]],
        (n for n in (1.0, 2.0)),
        None,
        5,
        {1: 2.0, 2: 1.0},
        [10**400, 1],
    ],
    ids=lambda given: str(given).partition(" at ")[0],
)
def test_a_reranker_that_answers_wrongly_is_named(store, given):
    store.add_many(["kettle one", "kettle two"])

    class Wrong:
        def rerank(self, query, hits):
            return given

    with pytest.raises(InvalidInputError, match=r"Wrong was given 2 hits"):
        store.search("kettle", ranking=Ranking(reranker=Wrong()))


@pytest.mark.parametrize("name", ["RRFReranker", "LinearCombinationReranker", "MRRReranker"])
def test_lancedbs_rerankers_plug_in(kettles, name):
    theirs = LanceDBReranker(getattr(lancedb.rerankers, name)())
    found = kettles.search("kettle xxx", k=30, ranking=Ranking(reranker=theirs))
    assert len(found) == 30
    assert found[0].memory.content == "kettle xxx"
    assert found[0].parts.reranker is not None


def test_lancedbs_rrf_and_ours_agree_on_the_order(kettles):
    bare = {"neighbours": 0, "actor_bonus": 0, "period_bonus": 0}
    theirs = LanceDBReranker(lancedb.rerankers.RRFReranker())
    one = kettles.search("kettle xx", k=10, ranking=Ranking(reranker=theirs, **bare))
    other = kettles.search("kettle xx", k=10, ranking=Ranking(fusion="rrf", **bare))
    assert one[0].memory.id == other[0].memory.id


def test_what_is_no_lancedb_reranker_is_refused():
    with pytest.raises(InvalidInputError, match="rerank_hybrid"):
        LanceDBReranker(object())


def test_late_interaction_prefers_what_matches_token_by_token(tmp_path):
    store = MemoryStore.open(tmp_path / "store", embedder=MiniLM())
    store.add_many(
        [
            "The blue bicycle stands in the shed behind the house, beside the old lawn mower.",
            "I like sheds.",
            "Bicycles are fun, everyone should have one.",
        ]
    )
    late = LateInteraction(store.embedder)
    found = store.search("Where is the blue bicycle?", ranking=Ranking(reranker=late))
    assert found[0].memory.content.startswith("The blue bicycle")
    marks = [hit.parts.reranker for hit in found]
    assert marks == sorted(marks, reverse=True)


def test_late_interaction_says_what_it_needs(embedder):
    with pytest.raises(InvalidInputError, match="token_vectors"):
        LateInteraction(embedder)
    with pytest.raises(InvalidInputError, match="weight=-1; it takes a number from 0 on"):
        LateInteraction(MiniLM(), weight=-1)


def test_late_interaction_survives_texts_without_tokens(store):
    class NoTokens:
        name, dimension = "none", 16

        def embed(self, texts):
            return np.ones((len(texts), 16), dtype=np.float32)

        def token_vectors(self, texts):
            return [np.empty((0, 16), dtype=np.float32) for _ in texts]

    store.add("kettle")
    ranking = Ranking(reranker=LateInteraction(NoTokens()))
    assert store.search("kettle", ranking=ranking)[0].score == 1


@pytest.mark.parametrize(
    "given",
    [[1e308, -1e308, 0.0], [5e-324, 0.0, 0.0], [-1e308] * 3, [True, False, True], [3, 2, 1]],
    ids=str,
)
def test_numbers_of_any_size_make_scores_within_0_and_1(store, given):
    store.add_many(["kettle one", "kettle two", "kettle three"])

    class Huge:
        def rerank(self, query, hits):
            return given

    scores = [hit.score for hit in store.search("kettle", ranking=Ranking(reranker=Huge()))]
    assert scores[0] == 1
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("weight", ["1", None, float("nan"), float("inf")])
def test_a_weight_of_late_interaction_is_a_number(weight):
    with pytest.raises(InvalidInputError, match="weight="):
        LateInteraction(MiniLM(), weight=weight)
