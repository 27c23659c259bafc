"""What the page says beside its pictures is what happened, in the words of the glossary."""

from lance_memory.report.sections.contents import duplicates, map_of
from lance_memory.report.sections.stories import difference, lineage, travel
from lance_memory.report.sections.versions import growth, passes
from lance_memory.reporting.gather import Asking, Steps, findings


def said(make, store, **asked):
    """What one section says: its note, then what stands beside each figure."""
    given = {"question": "", "ref": None, "before": None, "sample": 100, "seed": 0, **asked}
    part = make(findings(store, Asking(**given), Steps(None)))
    return [part.note, *(text for one in part.figures for text in (one.title, one.said))]


def repeated(store, user):
    """Three memories that a pass makes one of, and one that it leaves alone."""
    texts = [f"The bridge over the river is closed{'!' * i}" for i in range(3)]
    rows = [{"content": text, "user": user} for text in (*texts, "Ann repairs bicycles")]
    store.add_many(rows)


def test_a_pass_is_told_with_what_it_touched_and_what_it_did_to_the_whole(store):
    repeated(store, "ann")
    store.consolidate()
    version = store.version
    _, title, told = said(passes, store)
    assert title == "The memories that each pass touched, before and after it"
    first, probes = told.split(". ", 1)
    assert first == "1 pass saved 2 rows: 3 memories that it touched became 1"
    assert " probes (questions that were recorded, or words of the touched memories), " in probes
    whole = f"Version {version} took the store from 4 active memories to 2."
    assert told.endswith(whole)
    scoped = said(passes, store.scoped(user="ann"))[2]
    assert scoped.endswith("took this scope from 4 active memories to 2.")


def test_a_pass_that_was_reverted_saved_nothing(store):
    """Guards: passes that were undone were counted as saved."""
    repeated(store, "ann")
    first = store.consolidate()
    store.revert(first.version)
    assert said(passes, store)[2] == (
        "No row is saved any more; 1 pass was reverted, and is not counted. "
        f"Version {first.version} took the store from 4 active memories to 2; it was reverted."
    )
    second = store.consolidate()
    told = said(passes, store)[2]
    assert told.startswith(
        "1 pass saved 2 rows: 3 memories that it touched became 1; "
        "1 pass was reverted, and is not counted. Of "
    )
    assert told.endswith(f"Version {second.version} took the store from 4 active memories to 2.")


def test_a_correction_took_a_place_and_a_summary_was_made(store):
    """Guards: what superseded one memory was said to be made from it."""
    repeated(store, "ann")
    store.consolidate()
    summary = store.list(source="consolidated")[0]
    store.supersede([summary.id], "The bridge is open", relation="updates")
    assert said(lineage, store)[2].endswith(
        "” took the place of 1 memory, below it, with 3 more behind it."
    )
    assert said(lineage, store, ref=summary.id)[2].endswith(
        "” was made from 3 memories, below it; 1 memory took its place, above it."
    )
    source = store.lineage(summary.id).sources[0].memory.id
    assert said(lineage, store, ref=source)[2].endswith(
        "” was made from no other memory; 2 memories took its place, above it."
    )


def test_the_best_answer_is_compared_by_what_it_says(store):
    """Guards: a successor with the same text counted as another answer."""
    first = store.add("Mara lives in Porto", user="mara").id
    store.supersede([first], "Mara lives in Porto", relation="consolidates")
    told = said(travel, store, question="Mara lives in Porto")[2]
    assert (
        "what the best answer says never changed, though once another memory that says the same "
        "took its place. A letter" in told
    )
    store.supersede([store.list()[0].id], "Mara has moved to Lisbon", relation="updates")
    told = said(travel, store, question="Mara lives in Porto")[2]
    assert "what the best answer says changed once, and once another memory that says" in told


def test_what_is_not_compared_and_not_placed_is_told_with_the_reason(store):
    """Guards: a number of memories was missing from the comparison, and nothing said why."""
    repeated(store, "ann")
    store.add("Water the ferns", user="ann", kind="procedural", key="procedure:ferns")
    note = said(duplicates, store)[0]
    assert note == (
        "4 of 5 visible memories were compared; left out: 1 procedure or profile fact, found by "
        "name."
    )
    told = said(map_of, store)
    assert told[2].startswith("5 visible memories: 4 episodic, 1 procedural. The two axes hold ")
    assert not told[0].startswith("A sample")


def test_a_memory_without_an_embedding_is_missed_on_the_map(store):
    repeated(store, "ann")
    for memory in store.list()[:2]:
        store.update(memory.id, embedding=None)
    told = said(map_of, store)
    assert told[0].startswith(
        "2 visible memories have no embedding, and are not on the map. Principal components"
    )
    assert told[2].startswith("2 visible memories: 2 episodic. ")
    assert said(map_of, store, sample=3)[0].startswith("A sample of 3 of 4 visible memories. ")


def test_what_is_no_row_any_more_was_deleted(store):
    """One word for it, that of the glossary, wherever it stands."""
    repeated(store, "ann")
    start = store.version
    store.delete([store.list()[0].id])
    gone = said(difference, store, before=start)
    assert gone[2].endswith(": 0 inserted, 0 updated, 1 deleted.")
    assert "deleted 1." in said(growth, store)[4]
    spare = said(duplicates, store)[2]
    assert spare.endswith("; if each became one, 1 memory fewer would be visible.")
