"""The overlays that are shipped: what they read, what only looks like it, and their rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lance_memory import Kind, Memory, Relationship
from lance_memory.ingest.overlay import OVERLAYS, Education, Support

NOW = datetime(2025, 6, 1, tzinfo=UTC)


def memory(content: str, number: int = 0, **more: Any) -> Memory:
    at = datetime(2025, 1, 1 + number, tzinfo=UTC)
    times = {"created_at": at, "updated_at": at, "state_at": at, "event_at": at}
    fixed = {"id": f"m{number}", "revision": 1, "content_hash": "", "user": "ann"}
    return Memory(content=content, **{**fixed, **times, **more})


def told(overlay: Education | Support, content: str) -> dict[str, Any]:
    metadata = overlay.additions([memory(content)], now=NOW).metadata
    return dict(metadata.get("m0", {}).get(overlay.name, {}))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("User scored 1450 on the SAT.", {"exam": "SAT", "score": 1450}),
        ("My SAT score was 1450.", {"exam": "SAT", "score": 1450}),
        ("I got 92% in my math final.", {"score": 92, "out_of": 100, "subject": "mathematics"}),
        ("She got 18/20 on the physics quiz.", {"score": 18, "out_of": 20, "subject": "physics"}),
        ("He received 7.5 out of 9 at the IELTS.", {"exam": "IELTS", "score": 7.5, "out_of": 9}),
        ("User earned a 6.5 on his biology essay.", {"score": 6.5, "subject": "biology"}),
        ("User is in the 10th grade.", {"grade": 10}),
        ("My son is starting 5th grade.", {"grade": 5}),
        ("I am in grade 11, and study Chemistry.", {"grade": 11, "subject": "chemistry"}),
        ("User struggles with calculus.", {"subject": "calculus"}),
        ("I have a history exam and an English class.", {"subject": "history"}),
        ("User takes A-levels in June.", {"exam": "A-levels"}),
    ],
)
def test_education_reads_exams_scores_grades_and_subjects(content, expected):
    assert told(Education(), content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "I got 3 cats.",
        "User scored 3 goals on Sunday.",
        "User got a 20% discount on a course.",
        "The final score was 3-1.",
        "The result of 2024 was fine.",
        "That is in the 5th grade of difficulty.",
        "We need a level of detail. A level playing field, too.",
        "I sat down and had to act.",
        "I have a history of migraines.",
        "My French neighbour plays loud music.",
        "I live in grade II listed flats.",
    ],
)
def test_education_leaves_look_alikes_alone(content):
    assert told(Education(), content) == {}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Ticket #7 is open.", {"ticket": "7"}),
        ("It is about case number 48213.", {"ticket": "48213"}),
        ("See ticket proj-12, please.", {"ticket": "PROJ-12"}),
        ("User runs version 3.2.1 of the app.", {"version": "3.2.1"}),
        ("It began with v2.10.", {"version": "2.10"}),
        ("We are on the Enterprise plan.", {"plan": "enterprise"}),
        ("User upgraded to the growth tier.", {"plan": "growth"}),
        ("Production is down, it is urgent.", {"severity": "critical"}),
        ("The export is broken since v1.4.", {"version": "1.4", "severity": "high"}),
        ("A minor thing: a typo in the footer.", {"severity": "low"}),
        ("It is not urgent, and cosmetic.", {"severity": "low"}),
    ],
)
def test_support_reads_tickets_versions_plans_and_severity(content, expected):
    assert told(Support(), content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "Bring food in case 250 guests come.",
        "I bought a ticket 12 days ago.",
        "The ticket 150 euros cost was too much.",
        "User is working on a business plan.",
        "Our team plans a free day.",
        "There was no outage and no data loss.",
        "It isn't broken any more, and not urgent.",
        "User has 2.5 children on average.",
    ],
)
def test_support_leaves_look_alikes_alone(content):
    assert told(Support(), content) == {}


def test_a_ticket_is_one_memory_about_all_that_name_it_in_the_scope_without_the_session():
    first = memory("Ticket #7 is open.", 1, tenant="acme", agent="bo", session="s1", run="r")
    second = memory("Ticket #7 blocks us.", 0, tenant="acme", agent="bo", session="s2")
    other = memory("Ticket #7 is fine.", 2, tenant="acme", user="bob")
    made = Support().additions([first, second, other, memory("No ticket.", 3)], now=NOW)
    common = {
        "key": "ticket:7",
        "content": "Ticket 7",
        "tenant": "acme",
        "kind": Kind.SEMANTIC,
        "tags": ["ticket"],
        "metadata": {"ticket": "7"},
        "source": "overlay",
    }
    about = [Relationship(relation="about", target=name) for name in ("m1", "m0", "m2")]
    at = second.happened_at
    assert made.rows == [
        {**common, "user": "ann", "agent": "bo", "event_at": at, "relationships": about[:2]},
        {**common, "user": "bob", "event_at": other.event_at, "relationships": about[2:]},
    ]
    assert made.metadata["m0"] == {"support": {"ticket": "7", "severity": "high"}}
    assert set(made.metadata) == {"m0", "m1", "m2"}


@pytest.mark.parametrize("overlay", [one for some in OVERLAYS.values() for one in some])
def test_the_same_memories_give_the_same_additions(overlay):
    """Whenever they are asked for: a job that is run again adds nothing else."""
    some = [memory("Ticket #7: I got 92% on the SAT.", n) for n in range(3)]
    assert overlay.additions(some, now=NOW) == overlay.additions(some, now=datetime.now(UTC))
    assert overlay.additions(some, now=NOW).metadata


@pytest.mark.parametrize("overlay", [one for some in OVERLAYS.values() for one in some])
@pytest.mark.parametrize("part", ["ticket case ", "SAT ", "a-", "1 ", "on the ", "got a 9"])
def test_no_text_keeps_an_overlay_busy(overlay, part):
    """Long repetitions are what patterns that backtrack drown in."""
    (found,) = [overlay.additions([memory(part * 20_000)], now=NOW)]
    assert len(found.rows) <= 1
