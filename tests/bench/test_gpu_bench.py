"""`bench/gpu.py` runs without a GPU, and without the engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_THE_ENGINE = (
    "import runpy, sys; sys.modules['lance'] = sys.modules['pyarrow'] = None;"
    "sys.argv[1:1] = ['--device', 'cpu', '--rows', '3000', '--dimension', '32'];"
    "runpy.run_path('bench/gpu.py', run_name='__main__')"
)


@pytest.mark.slow
def test_every_measurement_is_one_json_line_and_agrees_with_the_cpu():
    command = [sys.executable, "-c", WITHOUT_THE_ENGINE]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = {line["bench"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) == {"self_join", "top_k", "train", "encode"}
    assert all(line["seconds"] > 0 and line["rows"] == 3_000 for line in lines.values())
    assert lines["self_join"]["same"] == lines["top_k"]["same"] == 1.0
    assert lines["encode"]["same_partition"] >= 0.999
    assert lines["train"]["error"] == lines["train"]["cpu_error"]
