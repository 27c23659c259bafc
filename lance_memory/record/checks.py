"""What must hold of rows, column by column."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.errors import RejectedError
from lance_memory.record.memory import Kind, Scope, State
from lance_memory.record.rows import EMBEDDING, one_array
from lance_memory.record.times import EARLIEST, LATEST
from lance_memory.record.values import TIMES, named

__all__ = ["check", "check_scope", "check_vectors"]


def check(rows: pa.Table, given: AbstractSet[str], *, unseen: AbstractSet[str]) -> None:
    """Check the columns that the caller gave; defaults are right by construction.

    Args:
        rows: the rows.
        given: the columns that the caller gave.
        unseen: those that came as Arrow arrays, so that nobody has looked at each value yet.

    Raises:
        RejectedError: says which rows hold what, and what is expected.
    """
    for checks, columns in ((_VALUE_CHECKS, unseen), (_CHECKS, given)):
        for column in sorted(columns & checks.keys()):
            checks[column](rows, column)


def check_scope(rows: pa.Table, scope: Scope) -> None:
    """Refuse rows that lie outside the scope."""
    for level, name in scope.given().items():
        outside = pc.not_equal(rows[level], name)
        _refuse(outside, rows, level, f"lies outside the handle's scope ({scope})")


def _refuse(mask: pa.ChunkedArray, rows: pa.Table, column: str, why: str) -> None:
    """Reject the rows where `mask` is true."""
    bad = np.flatnonzero(mask.to_numpy()).tolist()
    if bad:
        value = rows[column][bad[0]]
        found = str(value.cast(pa.string()))[:120]  # as_py cannot say every time
        told = repr(found) if pa.types.is_string(value.type) else found
        raise RejectedError(f"{named(bad)}: {column}={told} {why}", rows=bad)


def _written(rows: pa.Table, column: str) -> None:
    blank = pc.equal(pc.utf8_trim_whitespace(rows[column]), "")
    _refuse(pc.fill_null(blank, fill_value=False), rows, column, "is blank; it takes a text")


def _kind(rows: pa.Table, column: str) -> None:
    _member(rows, column, list(Kind))


def _state(rows: pa.Table, column: str) -> None:
    _member(rows, column, list(State))


def _member(rows: pa.Table, column: str, known: list[str]) -> None:
    unknown = pc.invert(pc.is_in(rows[column], pa.array(known, pa.string())))
    _refuse(unknown, rows, column, f"is not known; there are: {', '.join(known)}")


def _score(rows: pa.Table, column: str) -> None:
    score = rows[column]
    good = pc.and_(pc.greater_equal(score, 0.0), pc.less_equal(score, 1.0))
    _refuse(pc.fill_null(pc.invert(good), fill_value=False), rows, column, "is not within 0..1")


def _tags(rows: pa.Table, column: str) -> None:
    bad = [i for i, tags in enumerate(rows[column].to_pylist()) if not all(map(_said, tags or ()))]
    if bad:
        found = rows[column][bad[0]].as_py()
        raise RejectedError(
            f"{named(bad)}: {column} is {found!r}; each tag is a text that is not blank", rows=bad
        )


def _said(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def _unique(rows: pa.Table, column: str) -> None:
    values = rows[column].to_pylist()
    if len(set(values)) == len(values):
        return
    first: dict[str, int] = {}
    bad = [i for i, value in enumerate(values) if first.setdefault(value, i) != i]
    raise RejectedError(
        f"{named(bad)}: {column}={values[bad[0]]!r} stands twice in the batch (first in row "
        f"{first[values[bad[0]]]}); give each memory its own, or none",
        rows=bad,
    )


def _valid_to(rows: pa.Table, column: str) -> None:
    _time(rows, column)
    backwards = pc.less(rows["valid_to"], rows["valid_from"])
    _refuse(pc.fill_null(backwards, fill_value=False), rows, column, "comes before valid_from")


def _time(rows: pa.Table, column: str) -> None:
    far = pc.or_(pc.less(rows[column], _EARLIEST), pc.greater_equal(rows[column], _LATEST))
    _refuse(pc.fill_null(far, fill_value=False), rows, column, "lies outside the years 1 to 9998")


def _revision(rows: pa.Table, column: str) -> None:
    odd = pc.or_(pc.less(rows[column], 1), pc.greater(rows[column], 2**62))
    _refuse(odd, rows, column, "is no revision; it counts from 1")


def _vectors(rows: pa.Table, column: str) -> None:
    array = one_array(rows[column])
    width = array.type.list_size
    present = array.drop_null() if array.null_count else array
    first, size = present.offset * width, len(present) * width
    vectors = present.values.slice(first, size).to_numpy(zero_copy_only=False).reshape(-1, width)
    there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    check_vectors(vectors, column, there=there)


def check_vectors(
    vectors: NDArray[np.float32], column: str, *, there: NDArray[np.bool_] | None = None
) -> None:
    """Refuse vectors float32 [n, d] that have no direction.

    Args:
        vectors: those that are there.
        column: whose.
        there: which rows have one, bool [rows]; None: all.

    Raises:
        RejectedError: names the first such row.
    """
    suspect, width = _suspects(vectors), vectors.shape[1]
    if not len(suspect):
        return
    rows = np.arange(len(vectors)) if there is None else np.flatnonzero(there)
    for place in suspect.tolist():
        vector, row = vectors[place], int(rows[place])
        if not np.isfinite(vector).all():
            found = "holds NaN or infinity"
        elif not vector.any():
            found = "is all zero, which has no direction"
        else:
            found = "is too long or too short for a cosine in float32"
        raise RejectedError(
            f"{named([row])}: {column} {found}; it takes {width} finite numbers, not all zero, "
            "best of length one",
            rows=[row],
        )


def _suspects(vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    """Rows whose squared length is no sound float32 number, in one pass."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if len(squares) and squares.min() > _SHORTEST and squares.max() < _LONGEST:
            return _NONE
        return np.flatnonzero(~((squares > _SHORTEST) & (squares < _LONGEST)))


_NONE = np.empty(0, dtype=np.intp)
_SHORTEST, _LONGEST = np.float32(1e-30), np.float32(1e30)  # of the squared length

_EARLIEST, _LATEST = (pa.scalar(one, pa.timestamp("us", "UTC")) for one in (EARLIEST, LATEST))

_VALUE_CHECKS: dict[str, Callable[[pa.Table, str], None]] = {
    **dict.fromkeys(("id", "key", "content"), _written),
    "tags": _tags,
}

_CHECKS: dict[str, Callable[[pa.Table, str], None]] = {
    **dict.fromkeys(TIMES, _time),
    "revision": _revision,
    "id": _unique,
    "kind": _kind,
    "state": _state,
    "importance": _score,
    "confidence": _score,
    "quality": _score,
    "valid_to": _valid_to,
    EMBEDDING: _vectors,
}
