"""What limits can be, and how they are written."""

from __future__ import annotations

import pytest

from lance_memory import InvalidInputError, Limit, MemoryStore, Quota, Quotas

WRONG = {
    "rows": (5, None, -1, {"hard": 5}),
    "bytes": (5.0, "5"),
    "longest_wait": (-0.1, 5.1, None, True, float("nan")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_quota_refuses_what_it_cannot_mean(name):
    for value in WRONG[name]:
        with pytest.raises(InvalidInputError):
            Quota(**{name: value})


@pytest.mark.parametrize("soft_hard", [(5, 4), (-1, None), (None, -1), (True, None), (None, 2.5)])
def test_a_limit_is_whole_and_its_soft_one_not_above_the_hard_one(soft_hard):
    soft, hard = soft_hard
    with pytest.raises(InvalidInputError):
        Limit(soft=soft, hard=hard)


def test_the_pressure_grows_evenly_from_the_soft_limit_to_the_hard_one():
    limit = Limit(soft=80, hard=100)
    assert [limit.pressure(used) for used in (0, 80, 85, 90, 100, 120)] == [0, 0, 0.25, 0.5, 1, 1]
    assert [Limit(soft=80).pressure(90), Limit(hard=80).pressure(90)] == [0, 0]
    assert Limit(soft=80, hard=80).pressure(80) == 0


def test_limits_are_readable_where_they_are_printed():
    quota = Quota(rows=Limit(soft=1, hard=2_000), bytes=Limit(hard=3))
    assert [str(Limit()), str(Limit(soft=5)), str(Quota())] == ["no limit", "soft 5", "no limits"]
    assert str(quota) == "rows soft 1, hard 2,000; bytes hard 3"
    quotas = Quotas(default=quota, tenants={"acme": Quota()})
    assert str(quotas) == f"by default {quota}; 1 tenant with their own"


def test_json_gives_back_the_quota_it_was_made_of():
    quota = Quota(rows=Limit(soft=1, hard=2), bytes=Limit(hard=3), longest_wait=0.5)
    assert Quota.from_json(quota.to_json()) == quota
    assert (
        Quota.from_json({"bytes": 3, "longest_wait": 0.5, "rows": {"soft": 1, "hard": 2}}) == quota
    )
    both = Quotas.from_json({"default": {"rows": 5}, "tenants": {"acme": quota.to_json()}})
    assert both == Quotas(default=Quota(rows=Limit(hard=5)), tenants={"acme": quota})
    assert Quotas.from_json({}) == Quotas()


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"rows": 5},
        {"default": 5},
        {"default": {"memories": 5}},
        {"default": {"rows": {"max": 5}}},
        {"default": {"rows": "5"}},
        {"tenants": ["acme"]},
        {"tenants": {"acme": 5}},
    ],
)
def test_json_that_is_no_quotas_is_refused(values):
    with pytest.raises(InvalidInputError):
        Quotas.from_json(values)


@pytest.mark.parametrize("quotas", [5, {"acme": Quota()}, Limit(hard=5), Quotas])
def test_a_store_takes_a_quota_or_quotas(quotas, tmp_path, embedder):
    with pytest.raises(InvalidInputError, match="a Quota or Quotas"):
        MemoryStore.open(tmp_path / "store", embedder=embedder, quotas=quotas)
    assert not (tmp_path / "store").exists()
