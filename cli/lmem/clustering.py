"""The options of commands that curate: how to cluster, what transforms, what is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lmem.options import duration

if TYPE_CHECKING:
    from lance_memory import Bounds, ConsolidateOptions, Execution, Guard, Transform

__all__ = ["Bounding", "Clustering", "Guarding", "Transforming"]

Name: TypeAlias = str | None

_PATIENCE = 120.0
"""Seconds to wait for a program or an endpoint, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """Which memories become one."""

    by: Annotated[
        str,
        typer.Option(
            help="What a cluster is of: similarity; the same session, run or tenant (scope "
            "levels); prefix, keys that begin alike; or window, a stretch of time."
        ),
    ] = "similarity"
    method: Annotated[str, typer.Option(help="Of similarity: greedy, components or average.")] = (
        "greedy"
    )
    min_similarity: Annotated[
        float, typer.Option(metavar="COSINE", help="The floor of similarity, -1..1.")
    ] = 0.85
    min_size: Annotated[int, typer.Option(help="Smaller clusters are left alone.")] = 2
    max_size: Annotated[int, typer.Option(help="Memories in one cluster at most.")] = 20
    window: Annotated[str, typer.Option(help="Length of a window, such as 12h.")] = "1d"
    separator: Annotated[
        str, typer.Option(help="A prefix of a key is what stands before its last one.")
    ] = "/"
    across: Annotated[
        list[str] | None,
        typer.Option(
            help="Scope level a cluster may cross: tenant, user, agent, session or run; repeatable."
        ),
    ] = None
    distinct: Annotated[
        bool,
        typer.Option(
            "--distinct/--no-distinct",
            help="Keep apart what differs in a number, a name or a negation.",
        ),
    ] = True
    max_dropped: Annotated[
        float,
        typer.Option(help="Share of numbers, names, dates, negations that may be lost, 0..1."),
    ] = 0.5
    on_failure: Annotated[
        str,
        typer.Option(
            help="Of one cluster, for the others: best_effort goes on, all_or_nothing writes none."
        ),
    ] = "best_effort"

    def options(self) -> ConsolidateOptions:
        """As the library's."""
        from lance_memory import ConsolidateOptions

        return ConsolidateOptions(
            by=self.by,
            method=self.method,
            min_similarity=self.min_similarity,
            min_size=self.min_size,
            max_size=self.max_size,
            window=duration(self.window, "--window"),
            separator=self.separator,
            across=tuple(self.across or ()),
            distinct=self.distinct,
            max_dropped=self.max_dropped,
            on_failure=self.on_failure,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transforming:
    """What makes one memory of a cluster, and how it is called."""

    transform: Annotated[
        Name,
        typer.Option(metavar="NAME", help="extractive, latest, merge-lines, or module:function."),
    ] = None
    transform_cmd: Annotated[
        Name,
        typer.Option(
            metavar="COMMAND",
            help='A program: a line {"id", "memories": [{"content", ...}]} in, '
            'a line {"id", "content"} out, flushed.',
        ),
    ] = None
    llm_url: Annotated[
        Name,
        typer.Option(metavar="URL", help="An OpenAI-compatible endpoint; often ends in /v1."),
    ] = None
    llm_model: Annotated[
        Name, typer.Option(metavar="NAME", help="The model, as the endpoint knows it.")
    ] = None
    llm_key_env: Annotated[
        Name, typer.Option(metavar="VARIABLE", help="Environment variable that holds the key.")
    ] = None
    workers: Annotated[int, typer.Option(help="Calls at a time.")] = 1
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="For one answer; else 120 of a program or an endpoint."
        ),
    ] = None
    retries: Annotated[int, typer.Option(help="After a failed call.")] = 0

    @property
    def named(self) -> bool:
        """Whether any was named."""
        return any(self._given())

    @contextmanager
    def opened(self) -> Iterator[Transform]:
        """The transform that was named, or the default; a program of it ends with the block."""
        made = self.made()
        try:
            yield made
        finally:
            if isinstance(made, AbstractContextManager):
                made.__exit__(None, None, None)

    def made(self) -> Transform:
        """The transform that was named, or the default."""
        from lance_memory import CommandTransform, LLMTransform, Retry, transform_named

        if sum(self._given()) > 1:
            raise typer.BadParameter("give one of --transform, --transform-cmd and --llm-url")
        if self.llm_url is None and (self.llm_model or self.llm_key_env):
            raise typer.BadParameter("--llm-model and --llm-key-env need --llm-url")
        if self.transform_cmd is not None:
            return CommandTransform(self.transform_cmd, timeout=self._seconds(_PATIENCE))
        if self.llm_url is not None:
            if not self.llm_model:
                raise typer.BadParameter("--llm-url needs --llm-model")
            return LLMTransform(
                self.llm_model,
                base_url=self.llm_url,
                api_key=self._key(),
                timeout=_PATIENCE if self.timeout is None else self.timeout,
                retry=Retry(attempts=self.retries + 1),
            )
        return transform_named(self.transform or "extractive")

    def execution(self, *, patience: float | None = None) -> Execution:
        """As the library's, with a timeout of `patience` seconds where none is given.

        A program and an endpoint keep the time themselves, and an endpoint is tried again by what
        asks it, which knows what may pass.
        """
        from lance_memory import Execution

        beside = self.transform_cmd is not None or self.llm_url is not None
        return Execution(
            workers=self.workers,
            timeout=None if beside else self._seconds(patience),
            retries=self.retries if self.llm_url is None else 0,
        )

    def _given(self) -> list[bool]:
        given = (self.transform, self.transform_cmd, self.llm_url)
        return [one is not None for one in given]

    def _seconds(self, otherwise: float | None) -> float | None:
        return otherwise if self.timeout is None else self.timeout

    def _key(self) -> str | None:
        if self.llm_key_env is None:
            return None
        key = os.environ.get(self.llm_key_env)
        if not key:
            raise typer.BadParameter(f"the environment variable {self.llm_key_env} is not set")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """How much recall a pass may cost."""

    max_loss: Annotated[
        float, typer.Option(help="Share of recall that a cluster may lose, 0..1.")
    ] = 0.02
    probes: Annotated[int, typer.Option(help="Questions asked before and after; 0: none.")] = 400
    k: Annotated[int, typer.Option("--k", help="Hits among which such a question looks.")] = 10

    def guard(self) -> Guard | None:
        """As the library's."""
        from lance_memory import Guard

        if not self.probes:
            return None
        return Guard(max_loss=self.max_loss, k=self.k, probes=self.probes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounding:
    """Where a pass ends, whatever is left to do."""

    max_rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="Memories to consider, the newest first; 0: all."),
    ] = None
    max_clusters: Annotated[
        int | None,
        typer.Option(metavar="N", help="Clusters to put one memory in the place of; 0: all."),
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="For finding and transforming; 0: any time."),
    ] = None

    def bounds(self, otherwise: Bounds | None = None) -> Bounds:
        """As the library's; what is not given is as in `otherwise`, or unbounded."""
        from lance_memory import Bounds

        values = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {name: value or None for name, value in values.items() if value is not None}
        return replace(otherwise or Bounds(), **given)
