"""`lmem`: a thin command line over lance_memory, one command for each verb."""

from __future__ import annotations

import os
import sys


def _interrupted() -> SystemExit:
    """Said before there is a command that could say it."""
    sys.stderr.write("interrupted: nothing was written\n")
    return SystemExit(130)


try:
    from collections.abc import Sequence
    from io import TextIOWrapper
    from pathlib import Path
    from typing import Annotated, Any, cast

    import typer
    from typer.core import TyperGroup
    from typer.main import get_command

    from lmem import (
        context,
        curate,
        distill,
        doctor,
        dream,
        export,
        forget,
        index,
        ingest,
        jobs,
        lineage,
        log,
        migrate,
        move,
        observe,
        procedures,
        profile,
        quota,
        reads,
        report,
        retention,
        share,
        usage,
        versions,
        waiting,
        workspace,
        writes,
    )
    from lmem.ending import answered, own
    from lmem.errors import report as told
    from lmem.options import Common
    from lmem.output import Format
except KeyboardInterrupt:
    raise _interrupted() from None

__all__ = ["main", "tree"]


class Tree(TyperGroup):
    """The commands; Ctrl-C outside of them, while words are parsed, is told and not passed over."""

    def make_context(self, *given: Any, **options: Any) -> Any:
        """Of the options before the command."""
        try:
            return super().make_context(*given, **options)
        except KeyboardInterrupt:
            raise typer.Abort from None

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # commands tell of theirs
            raise typer.Abort from None


app = typer.Typer(
    name="lmem",
    cls=Tree,
    help="Git for an AI agent's memory: every write is a version that can be read and undone.",
    epilog=(
        "Exit codes: 0 done, 1 failed, 2 usage or not confirmed, 3 not found, "
        "4 conflict or stale plan, 5 rejected by the write path, 130 interrupted."
    ),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    invoke_without_command=True,
)


@app.callback()
def lmem(
    context: typer.Context,
    *,
    store: Annotated[
        str,
        typer.Option(metavar="PATH", envvar="LMEM_STORE", help="Directory or URI of the store."),
    ] = "memory",
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="For a store in an object store; repeatable. Secrets: $LMEM_STORAGE_OPTIONS.",
        ),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="How to answer; quiet prints ids or versions.")
    ] = Format.HUMAN,
    branch: Annotated[str, typer.Option(metavar="NAME", help="Line of versions.")] = "main",
    author: Annotated[
        str, typer.Option(metavar="NAME", envvar="LMEM_AUTHOR", help="Who writes, for the log.")
    ] = "",
    durability: Annotated[
        str,
        typer.Option(
            metavar="process|power",
            envvar="LMEM_DURABILITY",
            help="What a write survives: a killed process, or also a power cut.",
        ),
    ] = "process",
    embedder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            envvar="LMEM_EMBEDDER",
            help="What embeds, of the store's model: minilm, MODULE:NAME, ... (see reembed).",
        ),
    ] = "",
    ledger: Annotated[
        str,
        typer.Option(
            metavar="PATH|URL",
            envvar="LMEM_LEDGER",
            help="Where jobs and counters are: a directory, or redis://...; else in the store.",
        ),
    ] = "",
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Git for an AI agent's memory: every write is a version that can be read and undone.

    The options here may also stand after the command. Data goes to stdout, messages to stderr.
    """
    context.obj = Common(
        store=store,
        storage_option=storage_option,
        format=format,
        branch=branch,
        author=author,
        durability=durability,
        embedder=embedder,
        ledger=ledger,
    )
    if version:
        from importlib.metadata import version as installed

        print(f"lmem {installed('lance-memory')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


try:
    tree = cast("TyperGroup", get_command(app))
    for group in (
        writes,
        ingest,
        waiting,
        jobs,
        reads,
        usage,
        observe,
        context,
        lineage,
        curate,
        dream,
        distill,
        retention,
        quota,
        export,
        report,
        move,
        log,
        versions,
        index,
        migrate,
        doctor,
        forget,
        share,
        procedures,
        profile,
        workspace,
    ):
        group.register(tree)
except KeyboardInterrupt:
    raise _interrupted() from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default the process's; its exit code."""
    if arguments is None:
        own()
    try:
        code = _code(arguments)
    except KeyboardInterrupt:
        code = told(typer.Abort())
    answered()
    return code


def _code(arguments: Sequence[str] | None) -> int:
    try:
        _open_closed()
        _write_utf8()
        words = sys.argv[1:] if arguments is None else list(arguments)
        _check_encoding(words)
        code = tree.main(words, prog_name="lmem", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 (nothing lies above to tell the user)
        return told(error)
    return code if isinstance(code, int) else 0


def _open_closed() -> None:
    """Let streams that were closed lead nowhere; the next files would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (as long as the process)


def _write_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _check_encoding(words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise typer.BadParameter(f"the argument {word[:60]!r} is not UTF-8") from error


if __name__ == "__main__":
    raise SystemExit(main())
