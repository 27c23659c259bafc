"""Random memories, filters and options, out of small pools so that they meet often."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from proof_kit import START, vector

from lance_memory import ConsolidateOptions

WORDS = ("apple", "pear", "kiwi", "mango", "lemon", "plum")
USERS = ("", "ann", "o'bob")
KEYS = (None, None, "k1", "k2")
TAGS = ("red", "blue", "it's")
KINDS = ("episodic", "semantic", "profile")
METADATA = (
    {},
    {"n": 0},
    {"n": False},
    {"n": ""},
    {"n": None},
    {"n": 1, "deep": {"list": [1, 2.5, "x"]}},
    {"it's": "x' OR '1'='1", "n": 1},
)
SCALARS = (0, False, "", None, 1, True)

picks = st.integers(0, 10_000)
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True).map(" ".join)
ticks = st.sampled_from((1, 1, 1, 1, 40))
seconds = st.sampled_from((None, None, None, 5, 30, 100))
ages = st.sampled_from((None, None, None, 3, 86_400))
details = st.fixed_dictionaries(
    {},
    optional={
        "user": st.sampled_from(USERS),
        "session": st.sampled_from(("", "s1")),
        "kind": st.sampled_from(KINDS),
        "actor": st.sampled_from(("", "user")),
        "tags": st.lists(st.sampled_from(TAGS), max_size=3),
        "metadata": st.sampled_from(METADATA),
        "importance": st.sampled_from((0.0, 0.1, 1.0)),
        "expires_at": seconds,
        "event_at": ages,
        "embedding": st.sampled_from((None, "other")),
    },
)
items = st.builds(
    lambda fields, content, key, state: {
        **fields,
        "content": content,
        **({} if key is None else {"key": key}),
        **({} if state == "active" else {"state": state}),
    },
    details,
    words,
    st.sampled_from(KEYS),
    st.sampled_from(("active", "active", "active", "active", "pending", "contradicted")),
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "user": st.sampled_from(USERS[1:]),
        "session": st.just("s1"),
        "kinds": st.sampled_from(("episodic", ("semantic", "profile"))),
        "states": st.sampled_from(("any", ("active", "pending"), ("superseded", "retired"))),
        "tags": st.lists(st.sampled_from(TAGS), min_size=1, max_size=2, unique=True),
        "metadata": st.sampled_from(SCALARS).map(lambda value: {"n": value}),
        "key": st.just("k1"),
        "since": st.sampled_from((-10, -100, -86_400)),
        "until": st.sampled_from((0, -20, -86_000)),
    },
)
options = st.builds(
    ConsolidateOptions,
    by=st.sampled_from(("similarity", "similarity", "session", "window", "tenant", "prefix")),
    method=st.sampled_from(("greedy", "components", "average")),
    distinct=st.booleans(),
    min_similarity=st.sampled_from((-1.0, 0.2, 0.5)),
    max_size=st.sampled_from((2, 3, 20)),
    window=st.sampled_from((timedelta(seconds=30), timedelta(days=1))),
    across=st.sampled_from(((), (), ("user",), ("user", "session"))),
    max_dropped=st.just(1.0),
)


def timed(now, fields):
    """Seconds from now as times, and a stand-in for a vector as one."""
    given = {**fields}
    if given.get("expires_at") is not None:
        given["expires_at"] = now + timedelta(seconds=given["expires_at"])
    if given.get("event_at") is not None:
        given["event_at"] = START - timedelta(seconds=given["event_at"])
    for name in ("since", "until"):
        if name in given:
            given[name] = now + timedelta(seconds=given[name])
    if given.get("embedding") is not None:
        given["embedding"] = vector("another " + given.get("content", "")).tolist()
    return given
