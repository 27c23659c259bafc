"""The indices of a version as the engine describes them, and the names of ours."""

from __future__ import annotations

from typing import Any

from lance_memory.storage.engine import lance, translated

__all__ = ["TEXT_INDEX", "VECTOR_INDEX", "covered", "described", "left_over", "segments"]

TEXT_INDEX = "content_idx"
VECTOR_INDEX = "embedding_idx"


_UNKNOWN = "<unknown>"
"""What the engine calls a column that the table does not have."""


def described(dataset: lance.LanceDataset) -> dict[str, Any]:
    """Index name → what the engine tells of it; none that `left_over` has."""
    with translated("list the indices"):
        return {
            str(index.name): index
            for index in dataset.describe_indices()
            if _UNKNOWN not in index.field_names
        }


def segments(index: Any) -> list[lance.Index]:
    """The segments of an index, in the form that a commit removes them by."""
    return [
        lance.Index(
            uuid=str(segment.uuid),
            name=str(index.name),
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            base_id=segment.base_id,
        )
        for segment in index.segments
    ]


def left_over(dataset: lance.LanceDataset) -> list[lance.Index]:
    """The segments of indices over a column that is gone, which pylance 14.0.2 trips over.

    To build or fold one while the column goes, in another process, is no conflict for the engine.
    """
    with translated("list the indices"):
        gone = [i for i in dataset.describe_indices() if _UNKNOWN in i.field_names]
    return [segment for index in gone for segment in segments(index)]


def covered(index: Any) -> set[int]:
    """The fragments whose rows are in the index; none, where there is no index."""
    segments = index.segments if index else ()
    return {int(fragment) for segment in segments for fragment in segment.fragment_ids}
