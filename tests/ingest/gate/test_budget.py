"""L4: what a tenant may have ingested in a calendar month, counted once however often it is tried."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from gate_kit import Gate

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.gate import Blocked, Budget, GatePolicy, standard_layers
from lance_memory.ingest.gate.budget import COUNTED, SPACE, estimated_tokens
from lance_memory.ingest.gate.layer import digest

TEXT = "I live in Rome, near the old bridge."  # 36 bytes: 9 tokens


def bounded(*, last=0, **budget):
    return Gate(GatePolicy(budget=Budget(**budget), last=last))


def outcomes(gate, conversations, around, **surroundings):
    """One call each: "." passed, "4" blocked by L4."""
    passed = [gate([one], around(**surroundings)) for one in conversations]
    assert [one.degraded for one in passed] == [()] * len(passed)
    return "".join("." if one.items else one.decisions[0].verdict[1] for one in passed)


def spent(ledger, *, tenant="acme", month="2025-03"):
    key = f"{month}/{digest(tenant)}"
    return tuple(ledger.counted(SPACE, f"{key}/{what}") for what in ("calls", "tokens"))


def test_a_tenant_has_so_many_calls_a_month(talk, around, ledger):
    gate = bounded(calls=3)
    told = [talk(TEXT, user=user) for user in "abcde"]
    assert outcomes(gate, told, around, ledger=ledger) == "...44"
    assert outcomes(gate, [talk(TEXT, tenant="other")] * 2, around, ledger=ledger) == ".."
    assert spent(ledger) == (3, 27)


def test_a_tenant_has_so_many_tokens_a_month(talk, around, ledger):
    gate = bounded(tokens=20)
    told = [talk(TEXT), talk(TEXT), talk(TEXT), talk("So.")]
    gate = Gate(GatePolicy(budget=Budget(tokens=20), last=0, least_quality=0.0))
    assert outcomes(gate, told, around, ledger=ledger) == "..4."
    assert spent(ledger) == (3, 19)


def test_a_budget_of_none_at_all_blocks_everything(talk, around, ledger):
    assert outcomes(bounded(calls=0), [talk(TEXT)], around, ledger=ledger) == "4"
    assert outcomes(bounded(tokens=0), [talk(TEXT)], around, ledger=ledger) == "4"
    assert spent(ledger) == (0, 0)


def test_tenants_may_have_budgets_of_their_own(talk, around, ledger):
    policy = GatePolicy(
        budget=Budget(calls=1), budgets={"free": Budget(), "tiny": Budget(calls=0)}, last=0
    )
    found = {
        tenant: outcomes(Gate(policy), [talk(TEXT, tenant=tenant)] * 2, around, ledger=ledger)
        for tenant in ("free", "tiny", "acme", "")
    }
    assert found == {"free": "..", "tiny": "44", "acme": ".4", "": ".4"}


def test_a_month_is_a_calendar_month_in_utc(talk, around, ledger):
    gate = bounded(calls=1)
    moments = [
        datetime(2025, 3, 31, 23, 59, tzinfo=UTC),
        datetime(2025, 4, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))),
        datetime(2025, 4, 1, tzinfo=UTC),
        datetime(2026, 3, 1, tzinfo=UTC),
    ]
    found = [outcomes(gate, [talk(TEXT)], around, ledger=ledger, now=now) for now in moments]
    assert found == [".", "4", ".", "."]


def test_the_decision_has_what_was_used_and_what_is_the_limit(talk, around, ledger):
    gate = bounded(calls=5, tokens=20)
    outcomes(gate, [talk(TEXT)] * 2, around, ledger=ledger)
    decision = gate([talk(TEXT, ref="third")], around(ledger=ledger)).decisions[0]
    figures = {
        "asked": 9.0,
        "calls_used": 2.0,
        "calls_limit": 5.0,
        "tokens_used": 18.0,
        "tokens_limit": 20.0,
    }
    assert decision == Decision(
        step="gate", verdict="L4", reason="budget_exhausted", event="third", figures=figures
    )


def test_a_job_that_is_run_again_counts_once(talk, around, ledger):
    gate = bounded(calls=3)
    batch = [talk(TEXT, user=user) for user in "ab"]
    first = gate(batch, around(ledger=ledger, job="j"))
    assert [gate(batch, around(ledger=ledger, job="j")) for _ in range(3)] == [first] * 3
    assert spent(ledger) == (2, 18)
    assert outcomes(gate, batch, around, ledger=ledger) == ".4"
    assert gate(batch, around(ledger=ledger, job="j")) == first


def test_a_job_that_is_run_again_after_midnight_counts_once(talk, around, ledger):
    gate, last = bounded(calls=9), datetime(2025, 3, 31, 23, 59, tzinfo=UTC)
    for moment in (last, last + timedelta(minutes=2)):
        gate([talk(TEXT)], around(ledger=ledger, job="j", now=moment))
    assert (spent(ledger), spent(ledger, month="2025-04")) == ((1, 9), (0, 0))


def test_jobs_are_remembered_for_two_days(talk, around, ledger):
    gate, start = bounded(calls=9), around().now
    for day in range(6):
        gate([talk(TEXT)], around(ledger=ledger, now=start + timedelta(days=day)))
    assert len(list(ledger.items(COUNTED))) == 2
    assert spent(ledger) == (6, 54)


def test_what_other_layers_block_costs_nothing(talk, around, ledger):
    class Closed:
        code, reason, alone = "L5", "closed", False

        def look(self, asked, around):
            return self

        def judge(self, place):
            return Blocked()

        def settle(self, place, *, passed): ...
        def settled(self, job, *, safe): ...
        def close(self): ...

    policy = GatePolicy(budget=Budget(calls=9))
    gate = Gate(policy, layers=(*standard_layers(policy), Closed()))
    assert outcomes(gate, [talk("hi"), talk(TEXT)], around, ledger=ledger) == "25"
    assert spent(ledger) == (0, 0)
    assert list(ledger.items(COUNTED)) == []
    assert outcomes(Gate(policy), [talk(TEXT)] * 2, around, ledger=ledger) == ".3"
    assert spent(ledger) == (1, 9)


def test_an_input_that_a_budget_blocked_is_no_duplicate_later(talk, around, ledger):
    assert outcomes(bounded(last=5, calls=0), [talk(TEXT)] * 2, around, ledger=ledger) == "44"
    assert outcomes(bounded(last=5, calls=1), [talk(TEXT)] * 2, around, ledger=ledger) == ".3"


def test_registered_events_are_counted(talk, around, ledger):
    told = [talk("93", source="exams")] * 2
    assert outcomes(bounded(calls=1), told, around, ledger=ledger) == ".4"


def test_callers_share_a_budget_to_the_last_call(talk, around, ledger):
    gate = bounded(calls=10)
    with ThreadPoolExecutor(8) as pool:
        passed = list(
            pool.map(lambda n: gate([talk(TEXT)], around(ledger=ledger, job=str(n))), range(40))
        )
    assert sum(len(one.items) for one in passed) == 10
    assert spent(ledger) == (10, 90)


def test_tokens_are_counted_as_the_caller_says(talk, around, ledger):
    policy = GatePolicy(budget=Budget(tokens=15), last=0)
    gate = Gate(policy, tokens=lambda texts: [len(text.split()) for text in texts])
    assert outcomes(gate, [talk(TEXT)] * 2, around, ledger=ledger) == ".4"
    assert spent(ledger) == (1, 8)


def test_the_estimate_is_a_quarter_of_the_bytes_rounded_up():
    assert estimated_tokens(["", "a", "four", "fives", "我住在", "\ud800"]) == [0, 1, 1, 2, 3, 1]


def test_without_a_budget_the_ledger_is_not_asked(talk, around):
    assert Gate(GatePolicy(last=0))([talk(TEXT)], around()).degraded == ()


@pytest.mark.parametrize("budget", [{"calls": -1}, {"tokens": 1.5}, {"calls": True}])
def test_a_budget_takes_whole_numbers_from_0_on(budget):
    with pytest.raises(InvalidInputError, match="whole number"):
        Budget(**budget)
