"""The indices of a version as the engine describes them, and the names of ours."""

from __future__ import annotations

from typing import Any

from lance_memory.storage.engine import lance, translated

__all__ = ["TEXT_INDEX", "VECTOR_INDEX", "covered", "described"]

TEXT_INDEX = "content_idx"
VECTOR_INDEX = "embedding_idx"


def described(dataset: lance.LanceDataset) -> dict[str, Any]:
    """Index name → what the engine tells of it."""
    with translated("list the indices"):
        return {str(index.name): index for index in dataset.describe_indices()}


def covered(index: Any) -> set[int]:
    """The fragments whose rows are in the index; none, where there is no index."""
    segments = index.segments if index else ()
    return {int(fragment) for segment in segments for fragment in segment.fragment_ids}
