"""No example gives a text of the evaluation set away, and clean ones stay."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lance_memory import (
    Evaluation,
    ExportOptions,
    FunctionEmbedder,
    InvalidInputError,
    MemoryStore,
)
from lance_memory.curate.export.contamination import Screen, words
from lance_memory.curate.export.manifest import Contamination

QUESTION = (
    "In which year did the lighthouse keeper of Cabo Raso write down that the great storm "
    "had taken three boats, and who was told of it first?"
)
LEAK = "the lighthouse keeper of Cabo Raso write down that the great storm had taken"  # 14 words


def none(texts):
    raise AssertionError("no vector is asked for")


def matched(evaluation, *texts, embed=none):
    found = Screen(evaluation, embed).match(texts)
    return found and (found.by, found.evaluation, found.found)


def first(text, count):
    return " ".join(text.split()[:count])


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        (QUESTION, True),
        (f"He said: {first(LEAK, 13)}, or so.", True),
        (first(LEAK, 12), False),
        (first(LEAK, 13).upper().replace(" ", "\n\t-- "), True),
        (first(LEAK, 6) + " once " + " ".join(LEAK.split()[6:]), False),
        ("The lighthouse keeper wrote of a storm and of three boats.", False),
    ],
)
def test_thirteen_words_in_a_row_give_a_text_away(text, leaks):
    found = matched(Evaluation(texts=["unrelated", QUESTION]), "clean", text)
    assert (found and found[:2]) == (("ngram", 1) if leaks else None)


def test_the_number_of_words_is_a_choice():
    eight = " ".join(LEAK.split()[:8])
    assert matched(Evaluation(texts=[QUESTION]), eight) is None
    assert matched(Evaluation(texts=[QUESTION], ngram=8), f"so {eight} then") == (
        *("ngram", 0),
        eight.casefold(),
    )


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("What is the capital of Portugal?", True),
        ("what is the capital of portugal", True),
        ("What is the capital of Portugal? Lisbon.", False),
        ("yes", True),
        ("yes, please", False),
        ("nine words are one run of their own here", True),
        ("said that nine words are one run of their own here, once", True),
    ],
)
def test_a_short_text_is_looked_for_whole(text, leaks):
    texts = [
        "What is the capital of Portugal?",
        "Yes!",
        "Nine words are one run of their own here.",
    ]
    assert (matched(Evaluation(texts=texts), text) is not None) is leaks


def test_words_are_found_without_spaces_and_marks():
    assert words("Ｈello, WORLD_42 – ação") == ["hello", "world", "42", "ação"]
    chinese = "灯塔看守人写下那场大风暴夺走了三艘船"
    assert words(chinese) == list(chinese)
    assert matched(Evaluation(texts=[chinese]), f"他说{chinese[:13]}。") == (
        *("ngram", 0),
        " ".join(chinese[:13]),
    )


def test_words_in_a_row_are_looked_for_within_one_memory():
    half, rest = " ".join(LEAK.split()[:7]), " ".join(LEAK.split()[7:])
    assert matched(Evaluation(texts=[QUESTION]), half, rest) is None


def test_a_cosine_at_the_floor_gives_a_text_away():
    axes = np.eye(4, dtype=np.float32)
    near = np.array([0.9, np.sqrt(1 - 0.81), 0, 0], dtype=np.float32)
    screen = Screen(
        Evaluation(texts=["a", " ", "b"], ngram=None, similarity=0.9), lambda t: axes[: len(t)]
    )
    assert screen.match(["x"], [3 * near]).found == "0.9000"
    assert screen.match(["x", "y"], [axes[2], axes[1]]).evaluation == 2  # the blank one has none
    assert screen.match(["x"], [axes[3]]) is None


@pytest.fixture
def planted(store):
    """A verbatim leak, a reworded one, and clean memories."""
    store.add(f"Note to self. {LEAK} much", key="verbatim", session="a")
    store.add("boats three taken storm great", key="reworded", session="b")
    store.add_many(
        [{"content": f"clean{n} words{n} of thing{n}", "session": f"c{n}"} for n in range(20)]
    )
    return store


REWORDED = "great storm three boats taken"


def test_planted_leaks_go_and_clean_rows_stay(planted, tmp_path):
    evaluation = Evaluation(texts=[QUESTION, REWORDED], similarity=0.99)
    made = planted.export(tmp_path / "x.jsonl", ExportOptions(evaluation=evaluation))
    assert made.contaminations == (
        Contamination(
            source_ids=(planted.get("verbatim").id,),
            by="ngram",
            evaluation=0,
            found=" ".join(LEAK.casefold().split()[:13]),
        ),
        Contamination(
            source_ids=(planted.get("reworded").id,), by="cosine", evaluation=1, found="1.0000"
        ),
    )
    rest = sorted(m.content for m in planted.list() if m.key is None)
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["text"] for line in lines) == rest
    assert (made.counts.contaminated, made.counts.examples) == (2, 20)


def test_a_paraphrase_is_found_by_the_default_model(tmp_path):
    """Measured cosines: 0.90 and 0.85 for the paraphrases, at most 0.42 for the others."""
    store = MemoryStore.open(tmp_path / "minilm")
    told = [
        "The keeper of the lighthouse at Cabo Raso noted how three boats were lost to the storm.",
        "When did the man at the light of Cabo Raso record the loss of three boats in the storm?",
        "We went for a walk to the lighthouse and had lunch there.",
        "A storm is coming, so bring the boat in.",
    ]
    store.add_many({"content": text, "session": f"s{n}"} for n, text in enumerate(told))
    question = (
        "In which year did the Cabo Raso lighthouse keeper write down that the storm had taken "
        "three boats?"
    )
    options = ExportOptions(evaluation=Evaluation(texts=[question], similarity=0.75))
    made = store.export(tmp_path / "x.jsonl", options)
    assert [c.by for c in made.contaminations] == ["cosine", "cosine"]
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == told[2:]


def test_without_a_floor_vectors_are_not_asked(planted, tmp_path, reopen):
    def fails(texts):
        raise AssertionError("no vector is asked for")

    blind = reopen(
        tmp_path / "store", embedder=FunctionEmbedder(fails, name="words-16", dimension=16)
    )
    evaluation = Evaluation(texts=[QUESTION, REWORDED])
    made = blind.export(tmp_path / "x.jsonl", ExportOptions(evaluation=evaluation))
    assert [c.by for c in made.contaminations] == ["ngram"]


def test_a_text_without_a_vector_is_embedded_to_be_compared(store):
    evaluation = Evaluation(texts=["boats three taken"], ngram=None, similarity=0.99)
    screen = Screen(evaluation, store.embedder.embed)
    assert screen.match(["taken three boats"], [None]).by == "cosine"
    assert screen.match(["something else"], [None]) is None


def test_one_turn_takes_its_conversation_along(store, tmp_path):
    for session, answer in (("a", LEAK), ("b", "at nine")):
        store.add_many(
            [
                {"content": f"when is it, {session}?", "role": "user", "session": session},
                {"content": answer, "role": "assistant", "session": session},
            ]
        )
    options = ExportOptions(format="chat", evaluation=Evaluation(texts=[QUESTION]))
    made = store.export(tmp_path / "x.jsonl", options)
    assert (made.counts.found, made.counts.contaminated, made.counts.examples) == (2, 1, 1)
    assert LEAK not in (tmp_path / "x.jsonl").read_text()


def test_a_merged_text_is_screened_with_its_sources(store, tmp_path):
    store.add_many([{"content": "echo echo", "session": "a"}, {"content": "echo", "session": "b"}])
    options = ExportOptions(evaluation=Evaluation(texts=[QUESTION]))
    made = store.export(tmp_path / "x.jsonl", options, transform=lambda cluster: f"echo {LEAK}")
    assert [(c.by, len(c.source_ids)) for c in made.contaminations] == [("ngram", 2)]


def test_texts_are_read_from_lines_json_and_json_lines(tmp_path):
    (tmp_path / "e.txt").write_text("\ufefffirst one\n\n second: é\u2028x \n", encoding="utf-8")
    (tmp_path / "e.jsonl").write_text('{"q": "a", "n": 3, "c": ["b", {"d": "c"}]}\n\n"d"\n')
    (tmp_path / "e.json").write_text('[{"q": "a", "blank": " "}, "b"]')
    read = {p.suffix: Evaluation.read(p).texts for p in tmp_path.iterdir()}
    assert read == {
        ".txt": ["first one", "second: é\u2028x"],
        ".jsonl": ["a", "b", "c", "d"],
        ".json": ["a", "b"],
    }
    assert Evaluation.read(tmp_path / "e.json", ngram=8, similarity=0.9) == Evaluation(
        texts=["a", "b"], ngram=8, similarity=0.9
    )


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("e.jsonl", b'{"a": "x"}\n{nonsense', "holds no texts that can be read"),
        ("e.txt", b"\xff\xfe\x00x", "holds no texts that can be read"),
        ("e.json", b"[" * 100_000, "holds no texts that can be read"),
        ("e.txt", b"\n \n", "no text that is not blank"),
    ],
)
def test_a_file_that_holds_no_texts_is_refused(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInputError, match=message):
        Evaluation.read(tmp_path / name)


def test_the_manifest_names_the_texts_by_hash_and_not_by_place(store, tmp_path):
    store.add("one")
    (tmp_path / "secret-place.txt").write_text("a question")
    given = [Evaluation(texts=["a question"]), Evaluation.read(tmp_path / "secret-place.txt")]
    told = [
        store.at(store.version)
        .export(tmp_path / f"{n}.jsonl", ExportOptions(evaluation=e))
        .to_json()
        for n, e in enumerate(given)
    ]
    other = Evaluation(texts=["another question"])
    told.append(store.export(tmp_path / "2.jsonl", ExportOptions(evaluation=other)).to_json())
    hashes = [json.loads(text)["parameters"]["evaluation"]["sha256"] for text in told]
    assert hashes[0] == hashes[1] != hashes[2]
    assert "question" not in "".join(told)
    assert "secret-place" not in "".join(told)
