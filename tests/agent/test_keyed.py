"""Writing where nobody else has meanwhile."""

from __future__ import annotations

import pytest

from lance_memory.agent.keyed import (
    KeptByAnotherError,
    StaleVersionError,
    of_key,
    persistently,
    refuse_stale,
)
from lance_memory.errors import AmbiguousError, ConflictError, InvalidInputError
from lance_memory.record.memory import Kind


class Attempt:
    """Loses so many races, each with that error, and then gets on."""

    def __init__(self, error, times):
        self.error, self.times, self.calls = error, times, 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error("another was faster")
        return "written"


def test_a_lost_race_is_run_again():
    attempt = Attempt(ConflictError, 3)
    assert (persistently(attempt), attempt.calls) == ("written", 4)


@pytest.mark.parametrize("error", [KeptByAnotherError, StaleVersionError])
def test_what_stays_true_is_said_at_once(error):
    """Guards against ten seconds of trying what cannot come right."""
    attempt = Attempt(error, 1)
    with pytest.raises(error):
        persistently(attempt)
    assert attempt.calls == 1


@pytest.mark.parametrize(
    ("standing", "expected", "told"),
    [
        (2, 1, "it: version 2 stands, and not version 1; nothing was written: read it again"),
        (2, 0, "it: version 2 stands, and not nothing"),
        (0, 1, "it: nothing stands, and not version 1"),
    ],
)
def test_another_version_than_the_one_read_is_refused_by_both(standing, expected, told):
    with pytest.raises(StaleVersionError, match=told) as caught:
        refuse_stale("it", standing, expected, id="x" if standing else None)
    assert caught.value.ids == (("x",) if standing else ())


def test_whichever_stands_is_a_choice_and_a_version_is_a_number():
    for standing, expected in ((2, 2), (0, 0), (2, None), (0, None)):
        refuse_stale("it", standing, expected, id=None)
    for wrong in (-1, True, "2", 1.5):
        with pytest.raises(InvalidInputError, match="expected_version="):
            refuse_stale("it", 2, wrong, id=None)


def test_scopes_that_read_alike_are_two(store):
    """Guards against telling scopes apart by how they are written: a name may hold any text."""
    alike = ({"agent": "a/session=x"}, {"agent": "a", "session": "x"})
    handles = [store.scoped(user="u", **levels) for levels in alike]
    for handle in handles:
        handle.add("what is kept", key="k", kind="profile")
    assert len({str(handle.scope) for handle in handles}) == 1
    with pytest.raises(AmbiguousError, match="in 2 scopes"):
        of_key(store.scoped(user="u"), "k", kind=Kind.PROFILE)
