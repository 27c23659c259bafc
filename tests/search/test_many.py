"""Many questions at once are answered as one by one."""

import numpy as np
import pytest

from lance_memory import InvalidInputError, Mode


@pytest.fixture
def library(store):
    random = np.random.default_rng(3)
    store.add_many(
        [
            {
                "content": " ".join(f"w{n}" for n in random.choice(30, 5, replace=False)),
                "session": f"s{i // 10}",
                "user": "u" if i % 3 else "v",
                "actor": "Ana" if i % 2 else "Bo",
                "state": "active" if i % 5 else "superseded",
            }
            for i in range(300)
        ]
    )
    return store


ASKED = ["w1 w2", "what did Ana say of w3?", "w4 w5 w6", "nothing of this", "w1 w2"]


def shown(result):
    hits = [(h.memory.id, pytest.approx(h.score), h.words) for h in result]
    return result.understood, result.mode, result.version, hits


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("where", [{}, {"user": "u"}, {"states": "any"}])
def test_many_questions_are_answered_as_one_by_one(library, mode, where):
    together = library.search_many(ASKED, k=7, offset=2, mode=mode, **where)
    alone = [library.search(text, k=7, offset=2, mode=mode, **where) for text in ASKED]
    assert [shown(one) for one in together] == [shown(one) for one in alone]


def test_vectors_stand_in_for_texts(library, embedder):
    vectors = embedder.embed(ASKED)
    together = library.search_many(vectors=vectors, k=3)
    alone = [library.search(vector=vector, k=3) for vector in vectors]
    assert [shown(one) for one in together] == [shown(one) for one in alone]
    both = library.search_many(ASKED, vectors=vectors, k=3)
    assert [shown(one) for one in both] == [
        shown(library.search(text, vector=vector, k=3))
        for text, vector in zip(ASKED, vectors, strict=True)
    ]


def test_questions_may_come_from_a_generator(library):
    together = library.search_many((text for text in ASKED), k=3)
    assert [shown(one) for one in together] == [shown(library.search(text, k=3)) for text in ASKED]


def test_no_questions_have_no_answers(library):
    assert library.search_many([]) == []
    assert library.search_many(vectors=np.empty((0, 16))) == []


def test_a_batch_that_makes_no_sense_says_why(library):
    with pytest.raises(InvalidInputError, match="search"):
        library.search_many("w1")
    with pytest.raises(InvalidInputError, match="needs texts or vectors"):
        library.search_many()
    with pytest.raises(InvalidInputError, match="2 queries, but 1 vector"):
        library.search_many(["a", "b"], vectors=np.ones((1, 16)))
    with pytest.raises(InvalidInputError, match="queries=5; it takes a list of texts"):
        library.search_many(5)
    with pytest.raises(InvalidInputError, match="vectors=5; it takes as many vectors"):
        library.search_many(vectors=5)
    with pytest.raises(InvalidInputError, match="different lengths"):
        library.search_many(vectors=[[1.0], [1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="2 queries, but 1 vector"):
        library.search_many((text for text in "ab"), vectors=np.ones((1, 16)))
    with pytest.raises(InvalidInputError, match="blank"):
        library.search_many(["a", " "])
