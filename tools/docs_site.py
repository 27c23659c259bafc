"""What the site of docs/ needs beside its pages; the builder calls this by `hooks` of mkdocs.yml.

Three things. Pages that stand elsewhere in the repository (design/, CONTRIBUTING.md, ...) become
part of the site. The page of commands is made from `lmem` itself, so that it can be read in the
repository too: `python tools/docs_site.py` writes it. And a page that would make a browser ask
another host for anything is a warning, which ends a strict build.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")

ROOT = Path(__file__).parents[1]
COMMANDS = "reference/commands.md"
ELSEWHERE = (
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "design/*.md",
    "bench/*.md",
    "bench/results/*",
)
WIDTH = 80

INTRODUCTION = """\
# Commands

Every command of `lmem`, as `--help` prints it. Each is one verb of the library. The options of
`lmem` itself may stand before or after the command.

| exit code | means |
|---|---|
| 0 | done |
| 1 | failed, or the doctor found trouble |
| 2 | wrong usage, or not confirmed: off a terminal a destructive command needs `--yes` |
| 3 | not found |
| 4 | a conflict, or a plan that is stale |
| 5 | rejected by the write path |
| 130 | interrupted |

Data goes to stdout, everything else to stderr. `--format json` and `jsonl` are for programs,
`quiet` prints ids or versions alone.
"""

_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_LOADING = {"stylesheet", "preload", "icon", "preconnect", "prefetch", "modulepreload"}

log = logging.getLogger("mkdocs.plugins.docs_site")


# -- the page of commands -----------------------------------------------------------------


def commands_page() -> str:
    """All commands in the order of `lmem --help`, those of groups under their group."""
    sys.path.insert(0, str(ROOT / "cli"))
    from lmem.main import tree

    context = tree.make_context("lmem", [], resilient_parsing=True, terminal_width=WIDTH)
    parts = [INTRODUCTION, _block("lmem", tree, context, level=2)]
    return "\n".join([*parts, *_below(tree, context, level=2)])


def _below(group: Any, context: Any, *, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        words = inner.command_path
        yield _block(words, command, inner, level=level)
        if hasattr(command, "commands"):
            yield from _below(command, inner, level=level + 1)


def _block(words: str, command: Any, context: Any, *, level: int) -> str:
    help = command.get_help(context).rstrip()
    return f"{'#' * level} {words}\n\n```text\n{help}\n```\n"


# -- links --------------------------------------------------------------------------------


def mounted(markdown: str, page: str) -> str:
    """The links of a page as the site has them; `page` is its path in the repository.

    A page can be read in the repository too: there its links go to files, from where it stands. In
    the site the pages of docs/ are at the top, and files that are no page of it have no link.
    """

    def changed(found: re.Match[str]) -> str:
        words, link, part = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        if not in_site(target):
            return words[1:-1] if (ROOT / target).exists() else found[0]
        here = posixpath.dirname(place(page))
        return f"{words}({posixpath.relpath(place(target), here or '.')}{part})"

    parts = _FENCED.split(markdown)
    parts[::2] = [_LINK.sub(changed, part) for part in parts[::2]]
    return "".join(parts)


def in_site(path: str) -> bool:
    """Whether a file of the repository, of that path, is part of the site."""
    return path.startswith("docs/") or any(PurePosixPath(path).match(one) for one in ELSEWHERE)


def place(path: str) -> str:
    """Where a file of the repository is in the site."""
    return path.removeprefix("docs/")


# -- what a browser would load ------------------------------------------------------------


class Loads(HTMLParser):
    """Collects what a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Of an element that loads something."""
        given = dict(attrs)
        url = given.get(_LOADS.get(tag, ""))
        if url and (tag != "link" or set((given.get("rel") or "").split()) & _LOADING):
            self.urls.append(url)


def foreign(html: str) -> list[str]:
    """What the page would fetch from another host."""
    found = Loads()
    found.feed(html)
    return [url for url in found.urls if re.match(r"(https?:)?//", url)]


# -- called by the builder ----------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that do not stand in docs/."""
    from mkdocs.structure.files import File

    for pattern in ELSEWHERE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as the site has them."""
    uri = page.file.src_uri
    return mounted(markdown, uri if (ROOT / uri).is_file() else f"docs/{uri}")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Nothing is fetched from elsewhere when a page is read."""
    for url in foreign(output):
        log.warning("%s would load %s from another host", page.file.src_uri, url)
    return output


if __name__ == "__main__":
    (ROOT / "docs" / COMMANDS).write_text(commands_page(), encoding="utf-8")
