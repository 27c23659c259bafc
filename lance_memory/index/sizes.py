"""How large an index is made, from the number of rows and the dimension."""

from __future__ import annotations

from lance_memory.index.model import IvfPqSpec, Metric

__all__ = ["RQ_BITS", "partitions_for", "sample_rows", "spec_for", "sub_vectors_for"]

_ROWS_PER_PARTITION = 4_096
"""Measured at 100k x 384: 24, 98 and 256 partitions answer equally fast and equally well, and
the fewer there are, the larger the share that a search reads under a filter."""

_ROWS_PER_CENTROID = 256
"""What k-means needs of each centroid, in faiss and in Lance alike: more changes little."""

_SAMPLE_BYTES = 384 * 2**20
"""What is trained on takes at most so much: 262,144 rows of 384 dimensions, 32,768 of 3,072."""

RQ_BITS = 3
"""Of a RaBitQ code. 100k x 384, recall@10 at refine 4 / size: 1 bit 0.98 / 6 MB, 3 bits 0.9995 /
17 MB, 5 bits the same / 26 MB; 3 bits also answer fastest. See design/007."""


def partitions_for(rows: int) -> int:
    """Cells of the inverted file: about 4,096 rows each."""
    return max(1, rows // _ROWS_PER_PARTITION)


def sub_vectors_for(dimension: int) -> int:
    """Parts of a vector, a byte each: 8 dimensions a part where they divide, or 4, or 1.

    At 100k x 384 that recalls 0.90 before refining and 0.999 after; 16 dimensions, the default
    of LanceDB, 0.86 and 0.985.
    """
    return next(dimension // width for width in (8, 4, 1) if dimension % width == 0)


def sample_rows(spec: IvfPqSpec, dimension: int) -> int:
    """How many rows to train on at most: 256 of each centroid, of whichever k-means has more.

    Fewer where they would take more than 384 MB, but as many as k-means has to have.
    """
    wanted = min(_SAMPLE_BYTES // (4 * dimension), _ROWS_PER_CENTROID * spec.rows_needed)
    return max(spec.rows_needed, wanted)


def spec_for(
    rows: int,
    dimension: int,
    *,
    partitions: int | None = None,
    sub_vectors: int | None = None,
    seed: int = 0,
) -> IvfPqSpec:
    """The sizes for so many vectors; what is given stays as it is.

    Raises:
        InvalidInputError: a size below 1.
    """
    return IvfPqSpec(
        partitions=partitions_for(rows) if partitions is None else partitions,
        sub_vectors=sub_vectors_for(dimension) if sub_vectors is None else sub_vectors,
        metric=Metric.COSINE,
        seed=seed,
    )
