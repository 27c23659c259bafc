"""Draw the README's picture: a real session of `lmem` on the sample conversation, as SVG.

    python tools/picture.py docs/assets/session.svg

Each command runs in a terminal of its own, as a person would see it. The picture has no script and
loads nothing.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "cli" / "demo" / "conversation.jsonl"
COLUMNS = 92
STEERING = re.compile(r"(\x1b\[\d*A|\x1b\[2K|\x1b\[\?25[lh]|\r|\n)")
COMMANDS = (
    "lmem import conversation.jsonl && lmem tag talks",
    "lmem search 'What is Mara allergic to?' --user mara --role user -k 3",
    "lmem consolidate --dry-run --show 1",
    "lmem consolidate --yes --show 0 --reason 'first pass'",
    "lmem search 'What is Mara allergic to?' --user mara --role user -k 1",
    "lmem revert 6 --yes --show 0",
    "lmem log --graph",
)
THEME = TerminalTheme(
    (24, 26, 31),
    (222, 224, 230),
    [(40, 44, 52), (224, 108, 117), (152, 195, 121), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (222, 224, 230)],
)  # fmt: skip
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
 aria-label="A session of lmem: import, search, consolidate, search again, revert, log">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas,
 "DejaVu Sans Mono", monospace; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}"
 height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def ran(command: str, place: Path, environment: dict[str, str]) -> str:
    """What a terminal shows of a command, colours included.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    here, there = pty.openpty()
    with subprocess.Popen(  # noqa: S602 - the commands stand above
        command, shell=True, cwd=place, env=environment, stdout=there, stderr=there, stdin=there
    ) as process:
        os.close(there)
        shown = b"".join(_read(here))
    os.close(here)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, shown)
    return settled(shown.decode().replace("\r\n", "\n"))


def settled(written: str) -> str:
    """What stands in the end: progress that was drawn over, or taken away, is not there."""
    lines, row = [""], 0
    for piece in STEERING.split(written):
        if piece == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif piece == "\r" or piece.endswith("K"):
            lines[row] = ""
        elif piece.endswith("A") and piece.startswith("\x1b"):
            row = max(0, row - int(piece[2:-1] or 1))
        elif not piece.endswith(("?25l", "?25h")):
            lines[row] += piece
    return "\n".join(lines)


def _read(terminal: int) -> list[bytes]:
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65_536)
        except OSError:  # the other end is closed
            return chunks
        if not chunk:
            return chunks
        chunks.append(chunk)


def session(place: Path) -> Text:
    """All commands, one after the other, on one store."""
    (place / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    environment = {
        **os.environ,
        "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
        "LMEM_STORE": "agent-memory",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    ran("lmem init agent-memory", place, environment)
    shown = Text()
    for command in COMMANDS:
        sys.stderr.write(f"{command}\n")
        shown.append("$ ", "bold green").append(f"{command}\n", "bold")
        shown.append(Text.from_ansi(ran(command, place, environment).strip("\n"))).append("\n\n")
    shown.rstrip()
    return shown


def main(path: str) -> None:
    """Run the session and write the picture to `path`."""
    with tempfile.TemporaryDirectory() as place:
        shown = session(Path(place))
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(shown)
    svg = console.export_svg(title="lmem", theme=THEME, code_format=FRAME, unique_id="lmem")
    Path(path).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
