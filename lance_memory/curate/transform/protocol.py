"""What a transform is: a cluster in, one memory or none out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from lance_memory.errors import InvalidInputError
from lance_memory.record.memory import Kind, Memory

__all__ = ["BatchTransform", "Derived", "Transform", "Transformed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What a transform makes of a cluster.

    Everything but the content is optional: scope, event times, importance, tags and the
    metadata that all sources agree on come from the sources.
    """

    content: str
    kind: Kind | str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tags, str) or not isinstance(self.tags, Sequence):
            raise InvalidInputError(f"tags is {self.tags!r}; it takes a list of texts")
        if not isinstance(self.metadata, Mapping):
            raise InvalidInputError(f"metadata is {self.metadata!r}; it takes a mapping")


Transformed: TypeAlias = Derived | str | None
"""A text stands for a `Derived` with nothing else; None leaves the cluster alone."""


class Transform(Protocol):
    """Makes one memory of a cluster (oldest member first). None leaves the cluster alone.

    The members are copies: what is done to them changes nothing in the store.
    """

    def __call__(self, cluster: Sequence[Memory], /) -> Transformed: ...


@runtime_checkable
class BatchTransform(Transform, Protocol):
    """A transform that is cheaper many at a time: a program, an endpoint that takes batches."""

    @property
    def batch_size(self) -> int:
        """Clusters in one call of `many`, at most."""
        ...

    def many(self, clusters: Sequence[Sequence[Memory]], /) -> Sequence[Transformed | Exception]:
        """One answer for each cluster, in order; an exception is the failure of that cluster."""
        ...
