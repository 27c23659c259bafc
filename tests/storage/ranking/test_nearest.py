"""Vector search finds what an exact comparison finds, whatever the filter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from lance_memory import FunctionEmbedder, MemoryStore
from lance_memory.index.exact import nearest_many, one_pass_pays
from lance_memory.record.filters import Filter, all_of, equals
from lance_memory.storage import Table
from lance_memory.storage.ranking.depth import EXACT_ROWS, depth, exact_rows
from lance_memory.storage.ranking.kept import KeptVectors

ROWS, DIMENSION = 20_000, 64
ACTIVE = equals("state", "active")


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def clustered(count, seed):
    """Unit vectors in 20 x 20 nested clusters, and the outer cluster of each."""
    rng = np.random.default_rng(seed)
    outer = np.random.default_rng(1).normal(size=(20, 1, DIMENSION))
    inner = outer + 0.7 * np.random.default_rng(2).normal(size=(20, 20, DIMENSION))
    cluster = rng.integers(400, size=count)
    noisy = inner.reshape(-1, DIMENSION)[cluster] + 0.6 * rng.normal(size=(count, DIMENSION))
    return unit(noisy), cluster // 20


def table_of(vectors, *, first=0, **columns):
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
    embedding = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    contents = [f"memory {first + i}" for i in range(len(vectors))]
    return pa.table({"content": contents, **columns, "embedding": embedding})


def opened(path, dimension=DIMENSION):
    embedder = FunctionEmbedder(
        lambda texts: np.ones((len(texts), dimension), np.float32), name="ones", dimension=dimension
    )
    return MemoryStore.open(path, embedder=embedder)


def snapshot_of(store):
    return Table.open(store.uri).latest()


class Exact:
    """Every row of a snapshot, compared one by one."""

    def __init__(self, snapshot):
        rows = snapshot.dataset.to_table(
            columns=["embedding", "state", "tenant", "user", "session"], with_row_address=True
        )
        flat = rows["embedding"].combine_chunks().flatten().to_numpy()
        self.vectors = unit(flat.reshape(len(rows), -1).astype(np.float64))
        self.addresses = rows["_rowaddr"].to_numpy()
        self.columns = rows.drop_columns(["embedding", "_rowaddr"])

    def passing(self, **equal):
        mask = np.ones(len(self.addresses), bool)
        for name, value in equal.items():
            mask &= np.array(self.columns[name].to_pylist()) == value
        return mask

    def nearest(self, query, mask, k=10):
        cosines = np.where(mask, self.vectors @ query, -2.0)
        best = np.argsort(-cosines)[:k]
        return self.addresses[best]


def recall(snapshot, exact, queries, *, k=10, **equal):
    predicate = all_of(*(equals(name, value) for name, value in equal.items()))
    mask = exact.passing(**equal)
    found = []
    for query in queries:
        rows = snapshot.nearest(query, k=k, predicate=predicate)
        assert len(rows) == min(k, mask.sum())
        assert rows["_distance"].to_pylist() == sorted(rows["_distance"].to_pylist())
        found.append(len({*rows["_rowaddr"].to_pylist()} & {*exact.nearest(query, mask, k)}) / k)
    return float(np.mean(found))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """20,000 rows, indexed; a tenth of them hidden, as many of each tenant."""
    rng = np.random.default_rng(3)
    vectors, cluster = clustered(ROWS, 4)
    store = opened(tmp_path_factory.mktemp("nearest") / "store")
    added = store.add_many(
        table_of(
            vectors,
            tenant=np.where(rng.random(ROWS) < 0.15, "spread", "other"),
            user=np.where(rng.random(ROWS) < 0.01, "few", "other"),
            session=np.where(cluster < 3, "clustered", "other"),
        )
    )
    store.retire(rng.choice(added.ids, ROWS // 10, replace=False).tolist())
    store.optimize()
    snapshot = snapshot_of(store)
    assert any(index.name == "embedding_idx" for index in snapshot.dataset.describe_indices())
    return snapshot, Exact(snapshot)


@pytest.fixture(scope="module")
def queries():
    return clustered(50, 5)[0]


@pytest.mark.parametrize(
    "equal",
    [
        {},
        {"state": "active"},
        {"tenant": "spread", "state": "active"},
        {"session": "clustered", "state": "active"},
        {"user": "few", "state": "active"},
        {"user": "few", "session": "clustered"},
    ],
    ids=lambda equal: "+".join(equal.values()) or "all",
)
def test_ten_nearest_under_a_filter_are_the_true_ones_and_the_page_is_full(indexed, queries, equal):
    assert recall(*indexed, queries, **equal) >= 0.98


@pytest.mark.parametrize("k", [1, 100])
def test_a_short_and_a_long_page_are_the_true_ones(indexed, queries, k):
    assert recall(*indexed, queries, k=k, state="active") >= 0.98


def test_where_few_rows_pass_the_answer_is_exact(indexed, queries):
    snapshot, exact = indexed
    mask = exact.passing(user="few")
    assert 0 < mask.sum() <= EXACT_ROWS
    for query in queries:
        rows = snapshot.nearest(query, k=10, predicate=equals("user", "few"))
        best = exact.nearest(query, mask)
        assert rows["_rowaddr"].to_pylist() == best.tolist()
        place = np.searchsorted(exact.addresses, best)
        cosines = exact.vectors[place] @ query
        np.testing.assert_allclose(1 - rows["_distance"].to_numpy(), cosines, atol=1e-5)


def test_many_at_once_are_answered_as_one_by_one(indexed, queries, monkeypatch):
    snapshot, exact = indexed
    mask = exact.passing(state="active")
    many = np.concatenate([queries, clustered(1_100, 6)[0]])  # more than one block of queries
    found = nearest_many(snapshot, many, k=10, predicate=ACTIVE)
    assert len(found) == len(many)
    for query, rows in zip(many[::20], found[::20], strict=True):
        assert rows["_rowaddr"].to_pylist() == exact.nearest(query, mask).tolist()
        one = snapshot.nearest(query, k=10, predicate=ACTIVE)
        assert rows.schema == one.schema
        np.testing.assert_allclose(
            rows["_distance"].to_numpy()[:5], one["_distance"].to_numpy()[:5], atol=1e-5
        )


def test_many_at_once_ask_for_more_rows_than_there_are(indexed, queries):
    snapshot, exact = indexed
    predicate = all_of(equals("tenant", "spread"), ACTIVE)
    passing = int(exact.passing(tenant="spread", state="active").sum())
    many = np.concatenate([queries] * 3)
    found = nearest_many(snapshot, many, k=passing + 5, predicate=predicate)
    assert [len(rows) for rows in found] == [passing] * len(many)
    assert nearest_many(snapshot, many[:0], k=3, predicate=predicate) == []


def test_a_question_without_a_direction_is_near_to_nothing_among_many(indexed, queries):
    snapshot, _ = indexed
    many = np.concatenate([queries, np.zeros((1, DIMENSION), np.float32)] * 3)
    found = nearest_many(snapshot, many, k=3, predicate=ACTIVE)
    assert [len(rows) for rows in found] == [*[3] * len(queries), 0] * 3


def test_many_at_once_pay_from_two_where_no_index_answers_them():
    assert not one_pass_pays(100_000, 1, indexed=False)
    assert one_pass_pays(100_000, 2, indexed=False)
    assert not one_pass_pays(100_000, 20, indexed=True)
    assert one_pass_pays(100_000, 100, indexed=True)


def test_superseded_rows_that_lie_nearest_do_not_hide_the_others(tmp_path):
    vectors, _ = clustered(12_000, 7)
    queries, _ = clustered(30, 8)
    store = opened(tmp_path / "store")
    ids = np.array(store.add_many(table_of(vectors)).ids)
    nearness = (vectors @ queries.T).max(axis=1)
    store.retire(ids[np.argsort(-nearness)[: len(ids) // 2]].tolist())
    store.optimize()
    snapshot = snapshot_of(store)
    assert recall(snapshot, Exact(snapshot), queries, state="active") >= 0.98


def test_rows_that_the_index_does_not_cover_are_found_and_deleted_ones_are_not(tmp_path):
    vectors, _ = clustered(6_000, 9)
    store = opened(tmp_path / "store")
    ids = store.add_many(table_of(vectors)).ids
    store.optimize()
    fresh = store.add("the newest", embedding=vectors[0])
    store.delete([ids[0]])
    snapshot = snapshot_of(store)
    for predicate in (None, ACTIVE):
        best = snapshot.nearest(vectors[0], k=3, predicate=predicate)
        found = snapshot.take(best["_rowaddr"].to_numpy(), ["id"])["id"].to_pylist()
        assert found[0] == fresh.id
        assert ids[0] not in found


def test_a_small_store_without_an_index_is_searched_exactly_after_every_write(tmp_path):
    vectors, _ = clustered(300, 10)
    store = opened(tmp_path / "store")
    ids = list(store.add_many(table_of(vectors[:200])).ids)
    table = Table.open(store.uri)
    assert len(table.latest().nearest(vectors[0], k=500)) == 200
    ids += store.add_many(table_of(vectors[200:], first=200)).ids
    store.delete(ids[:50])
    store.optimize()
    snapshot = table.latest()
    rows = snapshot.nearest(vectors[250], k=500)
    assert len(rows) == 250
    best = snapshot.take(rows["_rowaddr"].to_numpy()[:1], ["id"])["id"].to_pylist()
    assert best == [ids[250]]
    assert len(table.at(2).nearest(vectors[0], k=500)) <= 250  # an older version: its own rows


def test_a_row_without_a_direction_is_near_to_nothing(tmp_path):
    store = opened(tmp_path / "store", dimension=4)
    kept = store.add("one", embedding=[1.0, 0.0, 0.0, 0.0])
    dataset = snapshot_of(store).dataset
    rows = dataset.to_table()
    for name, vector in (("null", None), ("zero", [0.0] * 4)):
        column = pa.array([vector], rows.schema.field("embedding").type)
        place = rows.schema.get_field_index("embedding")
        other = rows.set_column(place, rows.schema.field("embedding"), column)
        other = other.set_column(0, rows.schema.field("id"), pa.array([name]))
        dataset.insert(other)
    snapshot = snapshot_of(store)
    assert snapshot.count() == 3
    found = snapshot.nearest(np.array([0.0, 1.0, 0.0, 0.0], np.float32), k=5)
    ids = snapshot.take(found["_rowaddr"].to_numpy(), ["id"])["id"].to_pylist()
    assert ids == [kept.id]


def test_vectors_replaced_in_place_by_another_program_are_read_again(tmp_path):
    store = opened(tmp_path / "store", dimension=2)
    store.add_many(table_of(np.array([[1.0, 0.0], [0.0, 1.0]])))
    table = Table.open(store.uri)
    query = np.array([1.0, 0.0], np.float32)
    before = table.latest().nearest(query, k=2)["_rowaddr"].to_pylist()
    dataset = table.own().dataset
    flipped = dataset.to_table(columns=["id"]).append_column(
        "embedding", pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))
    )
    dataset.drop_columns(["embedding"])
    dataset.merge(flipped, "id")
    after = table.latest().nearest(query, k=2)
    assert after["_rowaddr"].to_pylist() == before[::-1]


def test_whether_a_row_has_expired_is_known_for_every_version(tmp_path):
    store = opened(tmp_path / "store", dimension=2)
    now = datetime.now(UTC)
    store.add("stays", embedding=[1.0, 0.0])
    table = Table.open(store.uri)
    assert not table.latest().ranking_columns.latest_expiry(now + timedelta(days=9_999))
    store.add("goes", embedding=[1.0, 0.0], expires_at=now + timedelta(days=2))
    first = table.latest()
    assert not first.ranking_columns.latest_expiry(now + timedelta(days=1))
    assert first.ranking_columns.latest_expiry(now + timedelta(days=2))
    store.add("goes earlier", embedding=[1.0, 0.0], expires_at=now + timedelta(hours=1))
    assert table.latest().ranking_columns.latest_expiry(now + timedelta(days=1))
    assert not table.at(first.version).ranking_columns.latest_expiry(now + timedelta(days=1))


def test_while_nothing_has_expired_no_row_is_asked_for_its_end():
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    for states in ("visible", "live"):
        asked = Filter(states=states).predicate(moment)
        spared = Filter(states=states).predicate(None)
        assert asked.startswith(f"{spared} AND ")
        assert "expires_at" not in spared


# -- kept vectors -------------------------------------------------------------------------------


def at(fragment, *offsets):
    return np.array([(fragment << 32) + offset for offset in offsets], np.uint64)


class Disk:
    """Vectors that say their own address, and a note of what was read."""

    def __init__(self):
        self.read = []

    def __call__(self, addresses):
        self.read.append(addresses.tolist())
        return np.stack([addresses % 2**32, addresses >> np.uint64(32)], axis=1).astype(np.float32)


def test_kept_vectors_are_read_once_and_given_in_the_order_asked():
    kept, disk = KeptVectors(), Disk()
    files = {0: ("a",), 1: ("b",)}
    first = np.concatenate([at(1, 5), at(0, 7, 3)])
    assert kept.get(first, files, read=disk).tolist() == [[5, 1], [7, 0], [3, 0]]
    again = np.concatenate([at(0, 3, 4), at(1, 5)])
    assert kept.get(again, files, read=disk).tolist() == [[3, 0], [4, 0], [5, 1]]
    assert disk.read == [first.tolist(), at(0, 4).tolist()]


def test_kept_vectors_stay_within_their_bound_and_the_longest_unused_go_first():
    kept, disk = KeptVectors(most_bytes=4 * 8), Disk()  # four vectors of two numbers
    files = {0: ("a",)}
    for offsets in ((1, 2), (3, 4), (1, 2), (5,)):
        kept.get(at(0, *offsets), files, read=disk)
    assert len(kept) == 4
    kept.get(at(0, 1, 2, 5), files, read=disk)  # 3 or 4 made room for 5
    kept.get(at(0, 6, 7, 8, 9, 10), files, read=disk)  # too many to keep at all
    assert len(kept) == 4
    assert disk.read == [at(0, *o).tolist() for o in ((1, 2), (3, 4), (5,), (6, 7, 8, 9, 10))]


def test_kept_vectors_of_a_fragment_with_other_files_are_forgotten():
    kept, disk = KeptVectors(), Disk()
    both = np.concatenate([at(0, 1), at(1, 1)])
    kept.get(both, {0: ("a",), 1: ("b",)}, read=disk)
    kept.get(both, {0: ("a",), 1: ("c",)}, read=disk)
    assert disk.read == [both.tolist(), at(1, 1).tolist()]


def test_kept_vectors_are_right_for_many_threads_that_make_each_other_room():
    kept = KeptVectors(most_bytes=40 * 8)
    rng = np.random.default_rng(0)
    asked = [np.unique(rng.integers(200, size=12)) for _ in range(400)]

    def right(offsets):
        found = kept.get(at(0, *offsets.tolist()), {0: ("a",)}, read=Disk())
        return found[:, 0].tolist() == offsets.tolist()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, asked))
    assert len(kept) <= 40


# -- depth --------------------------------------------------------------------------------------


def test_the_fewer_rows_pass_the_deeper_the_index_is_searched():
    shares = [1.0, 0.5, 0.1, 0.01, 1e-6, 0.0]
    depths = [depth(10, share=share) for share in shares]
    assert [d.probes for d in depths] == sorted(d.probes for d in depths)
    assert [d.refine for d in depths] == sorted(d.refine for d in depths)
    assert (depths[0].probes, depths[0].refine) == (32, 8)
    assert depths[-1].refine == 32


def test_of_a_larger_table_more_rows_are_compared_exactly_up_to_a_bound():
    assert [exact_rows(n, 384) for n in (0, 100_000, 200_000, 1_000_000, 10**8)] == [
        *(2_000, 2_000, 4_000, 10_000, 10_000)
    ]
    assert [exact_rows(10**8, d) for d in (1_536, 3_072)] == [2_730, 2_000]


@pytest.mark.parametrize("k", [1, 10, 40, 1_000])
def test_at_least_two_rows_are_ranked_again_for_each_one_asked_for(k):
    assert depth(k, share=1.0).refine * k >= max(80, 2 * k)
