"""What a terminal shows while something takes its time: a spinner, or how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["shown"]

_PATIENCE = 0.5
"""Seconds in which nothing is shown of what is not counted: most of it is done before that, and
would only flicker."""


class _Counted(ProgressColumn):
    """A column that stands there once it is known how much there is to do."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> RenderableType:
        return Text() if task.total is None else self._column.render(task)


@contextmanager
def shown(what: str, console: Console) -> Iterator[Callable[..., None]]:
    """Show `what` on the console until the block ends; yields what takes (done, in all, what of).

    A spinner and the time that has gone by; once it was called also a bar, and the time that is
    left. Nothing of it stays. What is printed meanwhile stands above it.
    """
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *map(_Counted, (BarColumn(bar_width=None), MofNCompleteColumn(), TaskProgressColumn())),
        TimeElapsedColumn(),
        _Counted(TimeRemainingColumn()),
        console=console,
        transient=True,
        redirect_stdout=False,  # it may be a file, and is where the answer goes
    )
    task = bar.add_task(what, total=None)
    begin = Timer(_PATIENCE, bar.start)
    begin.daemon = True

    def told(done: int, total: int, of: str = what) -> None:
        begin.cancel()
        bar.start()  # does nothing where it was done
        bar.update(task, completed=done, total=total, description=of)

    begin.start()
    try:
        yield told
    finally:
        begin.cancel()
        begin.join()
        if bar.live.is_started:
            bar.stop()
