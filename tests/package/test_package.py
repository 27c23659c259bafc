"""What is released has what it needs, and nothing else. `make package` installs it, too."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package():
    spec = importlib.util.spec_from_file_location("package", ROOT / "tools" / "package.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(source, out):
    """The wheel and the sdist of a tree, made by the backend itself, which asks no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_a_release_has_what_it_needs_and_nothing_else(files, package):
    wheel, sdist = files
    assert (package.of_wheel(wheel), package.of_sdist(sdist)) == ([], [])


def test_the_wheel_has_every_file_of_the_packages(files, package):
    tree = {
        path.relative_to(root).as_posix()
        for root, name in ((ROOT, "lance_memory"), (ROOT / "cli", "lmem"))
        for path in (root / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    wheel, _ = files
    assert {name for name in package.names(wheel) if ".dist-info/" not in name} == tree


def test_the_sdist_makes_the_same_wheel(files, tmp_path):
    wheel, sdist = files
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    again, _ = build(unpacked, tmp_path / "dist")
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_the_metadata_names_the_command_the_licences_and_the_python(files):
    wheel, _ = files
    with zipfile.ZipFile(wheel) as packed:
        (place,) = {name.split("/")[0] for name in packed.namelist() if ".dist-info/" in name}
        metadata = packed.read(f"{place}/METADATA").decode()
        scripts = packed.read(f"{place}/entry_points.txt").decode()
    assert scripts.split() == ["[console_scripts]", "lmem", "=", "lmem.main:main"]
    for line in (
        "Name: lance-memory",
        "License-Expression: Apache-2.0",
        "License-File: lance_memory/embed/data/NOTICE",
        "Requires-Python: >=3.11",
        "Classifier: Typing :: Typed",
    ):
        assert line in metadata.splitlines()


@pytest.mark.parametrize(
    "planted", ["tests/test_a.py", "lance_memory/__pycache__/a.py", "lmem/a.pyc", "notes.txt"]
)
def test_what_does_not_belong_into_a_wheel_is_seen(planted, files, package, tmp_path):
    """Guards the check itself: it is only as good as what it refuses."""
    wheel = Path(shutil.copy(files[0], tmp_path))
    with zipfile.ZipFile(wheel, "a") as packed:
        packed.writestr(planted, "x")
    assert f"{wheel.name} has {planted}" in package.of_wheel(wheel)


@pytest.mark.parametrize("missing", ["lance_memory/py.typed", "licenses/LICENSE"])
def test_what_a_wheel_lacks_is_seen(missing, files, package, tmp_path):
    poor = tmp_path / files[0].name
    with (
        zipfile.ZipFile(files[0]) as packed,
        zipfile.ZipFile(poor, "w", zipfile.ZIP_DEFLATED) as left,
    ):
        for name in packed.namelist():
            if not name.endswith(missing):
                left.writestr(name, packed.read(name))
    assert package.of_wheel(poor) == [f"{poor.name} has no {missing}"]
