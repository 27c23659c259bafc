"""The measuring script of the embedders runs, and says what it promises to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_each_embedder_is_one_json_line_in_ratios_to_the_first() -> None:
    command = [sys.executable, ROOT / "bench" / "embedders.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["embedder"] for line in lines] == [
        "sentence-transformers, batches of 32",
        "sentence-transformers, batches of 8",
        "MiniLM",
        "MiniLM, all cached",
    ]
    for line in lines:
        assert min(line["query_p50_ms"], line["texts_per_s"]) > 0
    assert (lines[0]["query_speed_ratio"], lines[0]["texts_speed_ratio"]) == (1, 1)
    assert lines[-1]["texts_speed_ratio"] > 10
