"""Random programs against a store and a plain-Python model of it: both say the same at each step."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from proof_kit import SCOPE, Clock, contents, keys_held_twice, open_store, vector
from proof_strategies import USERS, details, filters, items, options, picks, ticks, timed, words
from store_model import Model, differing, happened, in_order, successor, whole

from lance_memory import ConsolidationPlan, Guard, LanceMemoryError, NotFoundError


class Line:
    """Main or a branch: two live handles, the model, and the newest version."""

    def __init__(self, name, handles, model):
        self.name = name
        self.handles = handles
        self.model = model
        self.newest = 0
        self.moments = {}
        self.cleaned = set()
        self.began = None


class Programs(RuleBasedStateMachine):
    """A store in a new directory, and the model beside it."""

    @initialize()
    def make(self):
        self.path = tempfile.mkdtemp(prefix="proof-")
        self.clock = Clock()
        self.plan = None
        self.lines = [Line("main", [self._open(), self._open()], Model())]
        self._noted(self.lines[0])

    def teardown(self):
        if not getattr(self, "sound", False):
            return  # it has failed already, and says why
        for line in self.lines:
            for version, rows in line.model.versions.items():
                found = contents(line.handles[0].at(version))
                assert found == whole(rows), (line.name, version, _told(found, whole(rows)))
            if len(self.lines) == 1:
                for version in sorted(line.cleaned)[:2]:
                    with pytest.raises(NotFoundError):
                        line.handles[0].at(version)
        shutil.rmtree(self.path)

    # -- steps ----------------------------------------------------------------------------

    def _open(self, branch="main"):
        return open_store(self.path, self.clock, branch=branch)

    def _line(self, pick, tick):
        """A line, and one of its handles; time goes on."""
        self.clock.tick(tick)
        line = self.lines[pick % len(self.lines)]
        return line, line.handles[pick // 2 % 2]

    def _does(self, line, predict, act):
        """Do it to the store and to the model: the same error, or the same contents.

        `predict` gets the model and what the store answered; None when it is only asked whether
        the store must refuse.
        """
        before = copy.deepcopy(line.model.rows)
        refusal = None
        try:
            predict(line.model, None)
        except (LanceMemoryError, ValueError) as error:
            refusal = type(error)
        line.model.rows = copy.deepcopy(before)
        if refusal is not None:
            with pytest.raises(refusal):
                act()
            assert line.handles[0].version == line.newest
            self._compared(line)
            return None
        result = act()
        predict(line.model, result)
        made = int(line.model.rows != before)
        assert result.version == line.newest + made, "a version was made for each change alone"
        self._noted(line)
        return result

    def _noted(self, line):
        """The versions made since, and the whole contents through each handle."""
        newest = line.handles[0].version
        line.model.record(range(line.newest + 1, newest + 1))
        line.moments.update(dict.fromkeys(range(line.newest + 1, newest + 1), self.clock.now))
        line.newest = newest
        self._compared(line)

    def _compared(self, line):
        self.sound = False
        self.sound = False
        self.sound = False
        expected = whole(line.model.rows)
        for handle in line.handles:
            found = contents(handle)
            assert found == expected, _told(found, expected)
        assert not keys_held_twice(line.model.rows, self.clock.now)
        self.sound = True
        self.sound = True
        self.sound = True

    def _several(self, line, chosen):
        ids = list(line.model.rows)
        return list(dict.fromkeys(ids[pick % len(ids)] for pick in chosen)) if ids else []

    def _ref(self, line, identifier):
        """The memory's key, where that names it alone; else its id."""
        key = line.model.rows[identifier]["key"]
        named = [r["id"] for r in line.model.live(self.clock.now) if r["key"] == key]
        return key if key is not None and named == [identifier] else identifier

    # -- writes ---------------------------------------------------------------------------

    @rule(pick=picks, tick=ticks, item=items)
    def add(self, pick, tick, item):
        line, handle = self._line(pick, tick)
        fields = timed(self.clock.now, item)
        self._added(line, [fields], lambda: handle.add(**fields), lambda result: [result.id])

    @rule(pick=picks, tick=ticks, batch=st.lists(items, max_size=6))
    def add_many(self, pick, tick, batch):
        line, handle = self._line(pick, tick)
        fields = [timed(self.clock.now, item) for item in batch]
        self._added(line, fields, lambda: handle.add_many(fields), lambda result: result.ids)

    @rule(pick=picks, tick=ticks, which=picks, item=items)
    def add_under_an_id(self, pick, tick, which, item):
        """An id of the caller's: known with the same content, refused with another."""
        line, handle = self._line(pick, tick)
        fields = {**timed(self.clock.now, item), "id": f"own-{which % 3}"}
        self._added(line, [fields], lambda: handle.add(**fields), lambda result: [result.id])

    @rule(pick=picks, tick=ticks, which=picks)
    def add_again(self, pick, tick, which):
        """A memory fed back to the store as it is."""
        line, handle = self._line(pick, tick)
        for identifier in self._several(line, [which]):
            row = line.model.rows[identifier]
            names = ("content", "key", "actor", "role", "event_at", *SCOPE)
            fields = {name: row[name] for name in names}
            self._added(line, [fields], partial(handle.add, **fields), lambda r: [r.id])

    def _added(self, line, batch, act, ids_of):
        now = self.clock.now

        def predict(model, result):
            fresh = model.expects_new(batch, now)
            if result is None:
                return
            given = ids_of(result)
            ids = [
                i if new else f"?{n}" for n, (i, new) in enumerate(zip(given, fresh, strict=True))
            ]
            named = [b.get("id", i) for b, i in zip(batch, ids, strict=True)]
            answers = model.add(batch, named, now)
            assert all(i in answer for i, answer in zip(given, answers, strict=True)), (
                given,
                answers,
            )

        self._does(line, predict, act)

    @rule(pick=picks, tick=ticks, fields=details, content=words, key=st.sampled_from(("k1", "k2")))
    def upsert(self, pick, tick, fields, content, key):
        line, handle = self._line(pick, tick)
        given = timed(self.clock.now, {**fields, "content": content, "key": key})
        now = self.clock.now

        def predict(model, result):
            _, known = model.replaced_by({**given}, now)
            model.upsert(given, "?" if result is None else result.id, now)
            assert result is None or (result.outcome == "already_there") == bool(known)
            assert result is None or result.id == (known or result.id)

        self._does(line, predict, lambda: handle.upsert(**given))

    @rule(pick=picks, tick=ticks, which=picks)
    def upsert_again(self, pick, tick, which):
        """What a row says, said again under its key."""
        line, handle = self._line(pick, tick)
        for identifier in self._several(line, [which]):
            row = line.model.rows[identifier]
            if row["key"] is not None:
                names = ("content", "key", "metadata", "tags", "importance", *SCOPE)
                self._upserted(line, handle, {name: row[name] for name in names})

    def _upserted(self, line, handle, given):
        now = self.clock.now
        self._does(
            line,
            lambda model, result: model.upsert(given, result.id if result else "?", now),
            lambda: handle.upsert(**given),
        )

    @rule(
        pick=picks,
        tick=ticks,
        which=picks,
        content=st.none() | words,
        fields=details,
        key=st.sampled_from(("same", "same", None, "k1", "k2")),
    )
    def update(self, pick, tick, which, content, fields, key):
        line, handle = self._line(pick, tick)
        for identifier in self._several(line, [which]):
            row = line.model.rows[identifier]
            values = {
                n: v
                for n, v in timed(self.clock.now, fields).items()
                if n not in ("user", "session")
            }
            values |= {} if content is None else {"content": content}
            values |= {} if key == "same" else {"key": key}
            if values.get("embedding") is None:
                values.pop("embedding", None)
            if values:
                now, ref = self.clock.now, self._ref(line, row["id"])
                self._does(
                    line,
                    lambda model, _, change=(identifier, values, now): model.update(*change),
                    partial(handle.update, ref, **values),
                )

    @rule(pick=picks, tick=ticks, chosen=st.lists(picks, min_size=1, max_size=3), content=words)
    def supersede(self, pick, tick, chosen, content):
        line, handle = self._line(pick, tick)
        ids, now = self._several(line, chosen), self.clock.now
        if ids:
            refs = [self._ref(line, i) for i in ids]
            self._does(
                line,
                lambda model, r: model.supersede(ids, content, r.ids[0] if r else "?", now),
                lambda: handle.supersede(refs, content),
            )

    @rule(pick=picks, tick=ticks, chosen=st.lists(picks, min_size=1, max_size=3))
    def retire(self, pick, tick, chosen):
        line, handle = self._line(pick, tick)
        ids, now = self._several(line, chosen), self.clock.now
        if ids:
            self._does(
                line,
                lambda model, _: model.retire(ids, "why", now),
                lambda: handle.retire(ids, reason="why"),
            )

    @rule(pick=picks, tick=ticks, user=st.sampled_from(USERS[1:]), gone=st.booleans())
    def retire_or_delete_a_users(self, pick, tick, user, gone):
        line, handle = self._line(pick, tick)
        now = self.clock.now

        def predict(model, _):
            ids = [r["id"] for r in model.matching(now, {"user": user})]
            model.delete(ids) if gone else model.retire(ids, "", now)

        verb = handle.delete if gone else handle.retire
        self._does(line, predict, lambda: verb(user=user))

    @rule(pick=picks, tick=ticks, chosen=st.lists(picks, min_size=1, max_size=3))
    def unretire(self, pick, tick, chosen):
        line, handle = self._line(pick, tick)
        retired = [r["id"] for r in line.model.rows.values() if r["state"] == "retired"]
        ids = [retired[c % len(retired)] for c in chosen] if retired else []
        ids = list(dict.fromkeys(ids or self._several(line, chosen)))
        now = self.clock.now
        if ids:
            self._does(
                line, lambda model, _: model.unretire(ids, now), lambda: handle.unretire(ids)
            )

    @rule(pick=picks, tick=ticks, chosen=st.lists(picks, min_size=1, max_size=3))
    def delete(self, pick, tick, chosen):
        line, handle = self._line(pick, tick)
        ids = self._several(line, chosen)
        if ids:
            self._does(line, lambda model, _: model.delete(ids), lambda: handle.delete(ids))

    @rule(pick=picks, tick=ticks)
    def delete_all(self, pick, tick):
        line, handle = self._line(pick, tick)
        ids = list(line.model.rows)
        if ids and pick % 3 == 0:
            self._does(line, lambda model, _: model.delete(ids), lambda: handle.delete(ids))

    # -- consolidate ----------------------------------------------------------------------

    @rule(pick=picks, tick=ticks, how=options, where=filters, own=st.booleans())
    def consolidate(self, pick, tick, how, where, own):
        """What `dry_run` shows is what is committed, ids aside."""
        line, handle = self._line(pick, tick)
        where = self._visible_only(where)
        transform = {"transform": _picky} if own else {}
        transform["guard"] = None if pick % 4 else Guard(probes=4)  # each probe is two searches
        shown = handle.consolidate(how, dry_run=True, **transform, **where)
        self._lawful(line, shown, where)
        result = {}

        def act():
            result["it"] = handle.consolidate(how, **transform, **where)
            return result["it"].write

        def predict(model, write):
            model.apply(shown if write is None else result["it"].plan)

        self._does(line, predict, act)
        assert _nameless(result["it"].plan) == _nameless(shown)

    @rule(pick=picks, tick=ticks, how=options, where=filters)
    def plan_for_later(self, pick, tick, how, where):
        line, handle = self._line(pick, tick)
        plan = handle.consolidate(how, dry_run=True, guard=None, **self._visible_only(where))
        loaded = ConsolidationPlan.from_json(plan.to_json())
        assert loaded == plan
        self.plan = (line, loaded)

    @precondition(lambda self: getattr(self, "plan", None))
    @rule(tick=ticks, other=st.booleans())
    def apply_then(self, tick, other):
        """Applies while its sources are as they were; else it is refused."""
        self.clock.tick(tick)
        line, plan = self.plan
        self._does(
            line, lambda model, _: model.apply(plan), lambda: line.handles[other].apply(plan)
        )

    def _visible_only(self, where):
        return {n: v for n, v in timed(self.clock.now, where).items() if n != "states"}

    def _lawful(self, line, plan, where):
        rows = line.model.rows
        wanted = {r["id"] for r in line.model.matching(self.clock.now, where)}
        taken = [source for cluster in plan.clusters for source in cluster.sources]
        assert len(set(taken)) == len(taken), "a memory is in two clusters"
        assert set(taken) <= wanted, "a memory that was not asked for"
        assert plan.selected == len(wanted)
        for cluster in plan.clusters:
            sources = [rows[i] for i in cluster.sources]
            assert 2 <= len(sources) <= plan.options.max_size
            for level in plan.options.boundary():
                assert len({row[level] for row in sources}) == 1, "a cluster crosses a scope"
            if cluster.derived is not None:
                expected = successor(sources, cluster.derived["content"], plan.at)
                row = Model.new_row(dict(cluster.derived), cluster.derived["id"], plan.at)
                assert row == Model.new_row(expected, cluster.derived["id"], plan.at)

    # -- versions -------------------------------------------------------------------------

    @rule(pick=picks, tick=ticks, number=st.sampled_from("123"), which=picks)
    def tag(self, pick, tick, number, which):
        line, handle = self._line(pick, tick)
        known = sorted(line.model.versions)
        version = known[which % len(known)]
        name = f"{line.name}-{number}"
        assert handle.tag(name, version, move=True) == version
        line.model.tags[name] = version
        assert line.handles[0].tags() == line.handles[1].tags() == line.model.tags

    def _past(self, line, which):
        """A version that is there, and one of its names."""
        known = sorted(line.model.versions)
        version = known[which % len(known)]
        tags = [name for name, v in line.model.tags.items() if v == version]
        return version, (tags[0] if tags and which % 2 else version)

    @rule(pick=picks, tick=ticks, which=picks)
    def look_back(self, pick, tick, which):
        line, handle = self._line(pick, tick)
        version, name = self._past(line, which)
        view = handle.at(name)
        assert view.version == version
        assert contents(view) == whole(line.model.versions[version])
        if not {e.version: e for e in handle.log(upkeep=True)}[version].upkeep:
            then = Model()
            then.rows = line.model.versions[version]
            expected = [r["id"] for r in in_order(then.visible(line.moments[version]))]
            assert [m.id for m in view.list()] == expected

    @rule(pick=picks, tick=ticks, which=picks, other=picks)
    def compare(self, pick, tick, which, other):
        line, handle = self._line(pick, tick)
        (a, name_a), (b, name_b) = self._past(line, which), self._past(line, other)
        before, after = line.model.versions[a], line.model.versions[b]
        found = handle.diff(name_a, name_b)
        assert [m.id for m in found.inserted] == sorted(after.keys() - before.keys())
        assert [m.id for m in found.removed] == sorted(before.keys() - after.keys())
        both = differing(before, after) & before.keys() & after.keys()
        assert [c.after.id for c in found.updated] == sorted(both)

    @rule(pick=picks, tick=ticks, which=picks, user=st.sampled_from((None, None, "ann")))
    def rollback(self, pick, tick, which, user):
        line, handle = self._line(pick, tick)
        version, name = self._past(line, which)
        scoped = handle if user is None else handle.scoped(user=user)
        now = self.clock.now
        probe = Model()
        probe.rows, probe.versions = line.model.rows, line.model.versions
        probe.rollback(version, now, user)
        shown = scoped.rollback(name, dry_run=True)
        here, there = line.model.rows, probe.rows
        assert set(shown.reappear) == there.keys() - here.keys()
        assert set(shown.disappear) == here.keys() - there.keys()
        assert set(shown.change) == differing(here, there) & here.keys() & there.keys()
        self._does(
            line,
            lambda model, _: model.rollback(version, now, user),
            lambda: scoped.rollback(name),
        )

    @rule(pick=picks, tick=ticks, which=picks, recent=st.booleans())
    def revert(self, pick, tick, which, recent):
        line, handle = self._line(pick, tick)
        known = sorted(line.model.versions)
        version = known[-1 - which % min(3, len(known))] if recent else known[which % len(known)]
        now = self.clock.now

        def predict(model, _):
            if version - 1 not in model.versions:
                raise NotFoundError("the version before is not there")
            model.revert(version, now)

        self._does(line, predict, lambda: handle.revert(version))

    @precondition(lambda self: len(getattr(self, "lines", ())) == 1)
    @rule(tick=ticks, which=picks)
    def branch(self, tick, which):
        self.clock.tick(tick)
        main = self.lines[0]
        version, name = self._past(main, which)
        start = Model()
        start.rows = main.model.versions[version]
        handle = main.handles[0].branch("try", name)
        line = Line("try", [handle, self._open("try")], start.fork())
        line.newest = handle.version - 1
        line.began = version
        self.lines.append(line)
        self._noted(line)

    # -- handles and upkeep ---------------------------------------------------------------

    @rule(pick=picks, tick=ticks)
    def reopen(self, pick, tick):
        line, handle = self._line(pick, tick)
        line.handles[line.handles.index(handle)] = self._open(line.name)
        self._compared(line)

    @rule(pick=picks, tick=ticks, clean=st.booleans())
    def upkeep(self, pick, tick, clean):
        """Every index is on from 4 vectors; answers stay, untagged older versions may go."""
        line, handle = self._line(pick, tick)
        age = timedelta(0) if clean else None
        handle.optimize(vector_index_from=4, clean_older_than=age)
        self._noted(line)
        if clean:
            starts = [one.began for one in self.lines if one is not line and line is self.lines[0]]
            kept = {line.newest, *line.model.tags.values(), *starts}
            line.cleaned |= line.model.versions.keys() - kept
            line.model.versions = {v: r for v, r in line.model.versions.items() if v in kept}

    # -- queries --------------------------------------------------------------------------

    @rule(pick=picks, tick=ticks, where=filters, size=st.integers(0, 4), offset=st.integers(0, 3))
    def list_and_count(self, pick, tick, where, size, offset):
        line, handle = self._line(pick, tick)
        given = timed(self.clock.now, where)
        expected = in_order(line.model.matching(self.clock.now, given))
        assert [m.id for m in handle.list(**given)] == [r["id"] for r in expected]
        assert handle.count(**given) == len(expected)
        page = handle.list(limit=size, offset=offset, **given)
        assert [m.id for m in page] == [r["id"] for r in expected][offset : offset + size]

    @rule(pick=picks, tick=ticks, where=filters, asked=words)
    def search(self, pick, tick, where, asked):
        line, handle = self._line(pick, tick)
        given = timed(self.clock.now, where)
        passing = {r["id"]: r for r in line.model.matching(self.clock.now, given)}
        said = {i: r for i, r in passing.items() if set(asked.split()) & set(r["content"].split())}
        by_words = handle.search(asked, mode="text", k=500, **given)
        assert _ids(by_words) == sorted(_collapsed(said))
        by_vector = handle.search(asked, mode="vector", k=500, **given)
        assert _ids(by_vector) == sorted(_collapsed(passing))
        both = handle.search(asked, k=500, **given)
        assert _ids(both) == sorted(_collapsed(passing))
        for hit in [*by_vector, *both]:
            true = float(vector(asked) @ np.array(passing[hit.memory.id]["embedding"]))
            assert hit.similarity == pytest.approx(true, abs=1e-4)
        scores = [hit.similarity for hit in by_vector]
        assert scores == sorted(scores, reverse=True)

    @rule(pick=picks, tick=ticks, which=picks)
    def get(self, pick, tick, which):
        line, handle = self._line(pick, tick)
        for identifier in self._several(line, [which]):
            row = line.model.rows[identifier]
            memory = handle.get(self._ref(line, identifier))
            assert (memory.id, memory.content) == (identifier, row["content"])
            assert memory.happened_at == happened(row)
            assert tuple(memory.embedding.tolist()) == row["embedding"]
            assert json.dumps(memory.metadata, sort_keys=True) == json.dumps(
                row["metadata"], sort_keys=True
            )


def _picky(cluster):
    """A transform that leaves some clusters alone and gives an empty text for others."""
    size = len(cluster[0].content) % 4
    return (None, "  ", cluster[-1].content, "made of " + cluster[0].content)[size]


def _nameless(plan):
    clusters = [
        replace(c, derived=None if c.derived is None else {**c.derived, "id": ""})
        for c in plan.clusters
    ]
    return replace(plan, op_id="", clusters=tuple(clusters))


def _collapsed(rows):
    return [i for i, row in rows.items() if row["superseded_by"] not in rows]


def _ids(result):
    return sorted(hit.memory.id for hit in result)


def _told(found, expected):
    lines = []
    for i in sorted(found.keys() | expected.keys()):
        a, b = found.get(i), expected.get(i)
        if a is None or b is None:
            lines.append(f"{i}: only in the {'model' if a is None else 'store'}: {a or b}")
        elif a != b:
            lines += [f"{i}.{n}: store {a[n]!r}, model {b[n]!r}" for n in a if a[n] != b[n]]
    return "\n".join(lines)


def _profile(examples, steps):
    """Fixed programs, not shrunk: shrinking takes longer than the whole test. The report has them."""
    return settings(
        phases=(Phase.generate,),
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_random_programs_agree_with_the_model():
    """Whatever is done in whatever order, the store holds what the model holds."""
    run_state_machine_as_test(Programs, settings=_profile(20, 20))


@pytest.mark.parametrize(
    "examples",
    [pytest.param(15, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.soak)],
)
def test_long_random_programs_agree_with_the_model(examples):
    """The same for longer programs."""
    run_state_machine_as_test(Programs, settings=_profile(examples, 60))
