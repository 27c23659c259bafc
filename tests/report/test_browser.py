"""The page in a real browser: it asks for nothing, complains of nothing, and follows the scheme."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from lance_memory.report.palette import DARK, LIGHT

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_ITSELF = "not an origin"  # a browser asks on its own behalf, of its maker
SCHEMES = {"light": (LIGHT, "1"), "dark": (DARK, "0")}

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no Chromium; Debian has it in the package chromium"
)


def first_pixel(path: Path) -> str:
    """The colour of the upper left corner of an 8-bit PNG: in row 0 no filter changes pixel 0."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return "#" + zlib.decompress(packed)[1:4].hex()


def looked_at(page: Path, place: Path, *, width: int, scheme: str) -> tuple[str, set[str], Path]:
    """What the browser says of a page, the addresses that it asks for, and what it shows."""
    shot, network = place / f"{scheme}.png", place / f"{scheme}.json"
    words = [
        *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--enable-logging=stderr", "--v=0", f"--user-data-dir={place / scheme}"),
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme][1]}",
        *(f"--window-size={width},900", f"--log-net-log={network}", f"--screenshot={shot}"),
        page.as_uri(),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    events = json.loads(network.read_text(encoding="utf-8"))["events"]
    told = [event["params"] for event in events if "initiator" in event.get("params", {})]
    asked = {one["url"] for one in told if one["initiator"] != _ITSELF}
    return done.stderr, asked, shot


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 500)])
def test_a_browser_shows_it_and_asks_for_nothing(made, scheme, width, tmp_path):
    said, asked, shot = looked_at(made.path, tmp_path, width=width, scheme=scheme)
    assert "CONSOLE" not in said
    assert {url for url in asked if not url.startswith(("file:", "data:"))} == set()
    assert first_pixel(shot) == SCHEMES[scheme][0].ground


def test_the_browser_would_tell_of_a_request_and_of_an_error(tmp_path):
    """The test above can fail: a page that asks and complains is seen to."""
    page = tmp_path / "bad.html"
    script = "console.error('a complaint')"
    page.write_text(f"<img src='http://127.0.0.1:9/x'><script>{script}</script>", encoding="utf-8")
    said, asked, _ = looked_at(page, tmp_path, width=500, scheme="light")
    assert "a complaint" in said
    assert "CONSOLE" in said
    assert "http://127.0.0.1:9/x" in asked
