"""export: memories as training data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.clustering import Transforming
from lmem.command import Call, Command
from lmem.options import At, Filters, Name, Scoped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Evaluation, ExportManifest, ExportOptions

__all__ = ["register"]

_NO_LEVEL = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """What an example is, and which ones repeat another."""

    as_: Annotated[
        str,
        typer.Option(
            "--as",
            help="plain, chat or preference: an example for each memory, each session, or each "
            "better and worse answer.",
        ),
    ] = "plain"
    file_type: Annotated[
        Name, typer.Option(help="Of the files in a directory: jsonl or parquet; else jsonl.")
    ] = None
    group_by: Annotated[
        str, typer.Option(metavar="LEVEL", help="Scope level that stays on one side of the split.")
    ] = "session"
    min_similarity: Annotated[
        float,
        typer.Option(metavar="COSINE", help="From here on two memories are near-duplicates."),
    ] = 0.95
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Remove no near-duplicates.")
    ] = False
    across: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="Scope level over which near-duplicates are looked for; repeatable; none: within "
            "one scope only. Else all.",
        ),
    ] = None
    max_turns: Annotated[
        int | None, typer.Option(help="Of chat: messages of one example at most.")
    ] = None
    margin: Annotated[
        float, typer.Option(help="Of preference: how much better rated the chosen answer is.")
    ] = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is held back: for validation, and from training."""

    validation: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the groups, into a file of its own, 0..1.")
    ] = 0.0
    seed: Annotated[int, typer.Option(help="Another number draws other groups.")] = 0
    evaluation: Annotated[
        Name,
        typer.Option(
            metavar="FILE", help="Texts to keep out: a line each, or the texts in .json, .jsonl."
        ),
    ] = None
    ngram: Annotated[
        int, typer.Option(help="Words in a row that give one of them away; 0: not asked.")
    ] = 13
    similarity: Annotated[
        float | None,
        typer.Option(metavar="COSINE", help="From here on a memory gives one away; else none."),
    ] = None

    def kept_out(self) -> Evaluation | None:
        """As the library's."""
        from lance_memory import Evaluation

        if self.evaluation is None:
            if self.similarity is not None:
                raise typer.BadParameter("--similarity needs --evaluation FILE to compare with")
            return None
        return Evaluation.read(
            self.evaluation, ngram=self.ngram or None, similarity=self.similarity
        )


def export(
    call: Call,
    path: Annotated[
        str, typer.Argument(help="A directory, or a file that ends in .jsonl or .parquet.")
    ],
    scope: Scoped,
    filters: Filters,
    at: At,
    *,
    shaping: Shaping,
    holding: Holding,
    transforming: Transforming,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an export that is there.")
    ] = False,
) -> None:
    """Write memories as training data, with a manifest.

    Plain texts, chats or preference pairs, without near-duplicates, and the same bytes again for
    the same --at TAG. A directory gets train.jsonl, with --validation validation.jsonl, and
    manifest.json. Of near-duplicates the best stays, or a transform, where one is given, makes
    one text of them.
    """
    view = call.view(scope, at.at)
    options = _options(shaping, holding, overwrite=overwrite)
    with (
        transforming.opened() if transforming.named else nullcontext() as transform,
        call.out.progress("exporting"),
    ):
        found = view.export(
            path,
            options,
            transform=transform,
            execution=transforming.execution(),
            dry_run=dry_run,
            **filters.where(),
        )
    directory = Path(path).parent if Path(path).name == found.files[0].name else Path(path)
    call.out.show(
        found,
        human=lambda: _drawn(call, found, directory),
        quiet=[directory / file.name for file in found.files],
    )
    for note in _notes(found, options):
        call.out.note(note)
    if dry_run:
        call.out.note("dry run: nothing was written")


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(export))


def _options(shaping: Shaping, holding: Holding, *, overwrite: bool) -> ExportOptions:
    from lance_memory import ExportOptions

    across: dict[str, tuple[str, ...]] = {}
    if shaping.across:
        levels = shaping.across
        across["across"] = () if levels == [_NO_LEVEL] else tuple(levels)
    return ExportOptions(
        format=shaping.as_,
        file_type=shaping.file_type,
        group_by=shaping.group_by,
        min_similarity=None if shaping.keep_duplicates else shaping.min_similarity,
        evaluation=holding.kept_out(),
        validation=holding.validation,
        seed=holding.seed,
        max_turns=shaping.max_turns,
        margin=shaping.margin,
        overwrite=overwrite,
        **across,
    )


def _notes(found: ExportManifest, options: ExportOptions) -> Iterator[str]:
    """What came out empty, and why that may be."""
    if options.format == "preference" and not found.counts.found:
        yield (
            "note: no pair was found; a pair is two answers to one question: one that corrects the "
            "other (`lmem supersede --relation updates`), or one rated better by --margin in "
            "quality"
        )
    held = [file for file in found.files if file.name.startswith("validation.")]
    if found.counts.found and any(not file.examples for file in held):
        yield (
            f"note: no group fell on the validation side; of {found.counts.groups} groups by "
            f"{options.group_by} few were drawn: give a larger --validation, another --seed, or "
            "another --group-by"
        )


def _drawn(call: Call, found: ExportManifest, directory: Path) -> RenderableType:
    """The files, and how the examples came to be as many."""
    counts, draw = found.counts, call.draw
    files = {
        str(directory / file.name): f"{draw.count(file.examples, 'example', 'examples')}, "
        f"{draw.count(file.bytes, 'byte', 'bytes')}"
        for file in found.files
    }
    drawn: RenderableType = draw.pairs(
        {
            **files,
            "version": found.version,
            "considered": f"{draw.count(counts.considered)}, "
            f"{draw.count(counts.groups, 'group', 'groups')}",
            "found": draw.count(counts.found, "example", "examples"),
            "low quality": -counts.low_quality or None,
            "across sides": -counts.across_sides or None,
            "near-duplicates": -counts.near_duplicates or None,
            "leaking": -counts.leaking or None,
            "contaminated": -counts.contaminated or None,
            "merged": counts.merged or None,
            "not merged": counts.declined or None,
            "content hash": found.content_hash,
        }
    )
    return drawn
