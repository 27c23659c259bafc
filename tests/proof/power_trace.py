"""The order in which a process wrote, from its system calls, as moments of a disk that forgets."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from power_kit import Moment

CALLS = (
    "open,openat,creat,write,writev,pwrite64,pwritev,ftruncate,rename,renameat,renameat2,link,"
    "linkat,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,fdatasync"
)
_LINE = re.compile(r"(\d+) +(.*)")
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HANDLE = re.compile(r"^\d+<([^>]*)>")


def can_trace(folder):
    """Why system calls cannot be seen here; "" if they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    log = folder / "probe"
    done = subprocess.run(["strace", "-o", log, "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "this machine lets no process be traced"


def traced(command, log, **options):
    """Run a command, and write its system calls down."""
    watch = ["strace", "-f", "-y", "-xx", "-s", "10000000", "-e", f"trace={CALLS}", "-o", log]
    subprocess.run([*watch, *command], check=True, capture_output=True, **options)


@dataclass(eq=False)
class Node:
    """A file, whatever its names: what is in memory, and what is on the disk."""

    content: bytes = b""
    synced: bytes | None = None


class Disk:
    """The directory `root` as the calls make it."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        self.folders = {root}
        self.entered = {}  # directory -> names on the disk, each with its file, None: a directory

    def moment(self, acknowledged):
        names, synced = {}, {}
        for folder, entries in self.entered.items():
            names[folder] = frozenset(entries)
            for name, node in entries.items():
                if node is not None and node.synced is not None:
                    synced[folder / name] = node.synced
        for path, node in self.files.items():
            if node.synced is not None:
                synced.setdefault(path, node.synced)
        present = {**{f: None for f in self.folders if f != self.root}}
        present.update((path, node.content) for path, node in self.files.items())
        return Moment(synced, names, present, acknowledged)

    def sync(self, path):
        if path in self.folders:
            below = {f.name: None for f in self.folders if f.parent == path and f != path}
            files = {f.name: node for f, node in self.files.items() if f.parent == path}
            self.entered[path] = {**below, **files}
        elif path in self.files:
            self.files[path].synced = self.files[path].content


def moments(log, root, told):
    """Those before each sync below `root`, and after each line that was written to `told`."""
    disk, acknowledged, found = Disk(root), 0, []
    for name, words in _calls(log):
        handle = _HANDLE.match(words)
        paths = [Path(_bytes(text).decode("utf-8", "replace")) for text in _TEXT.findall(words)]
        own = Path(_bytes(handle[1]).decode()) if handle else None
        if own == told:
            acknowledged += 1
            found.append(disk.moment(acknowledged))
        elif name in ("fsync", "fdatasync"):
            if own in disk.files or own in disk.folders:
                found.append(disk.moment(acknowledged))
                disk.sync(own)
        elif own in disk.files:
            _write(disk.files[own], name, words)
        elif paths and root in paths[-1].parents:
            _name(disk, name, words, paths)
    return found


def _calls(log):
    """Each call that succeeded, when it had ended."""
    begun = {}
    for line in log.read_text().splitlines():
        process, text = _LINE.match(line).groups()
        if text.endswith("<unfinished ...>"):
            begun[process] = text.removesuffix("<unfinished ...>").rstrip()
            continue
        if text.startswith("<..."):
            text = begun.pop(process) + text[text.index("resumed>") + len("resumed>") :]
        call = _CALL.match(text)
        if call and int(call[3]) >= 0:
            yield call[1], call[2]


def _bytes(text):
    return bytes.fromhex(text.replace("\\x", "")) if "\\x" in text else text.encode()


def _write(node, name, words):
    if name == "ftruncate":
        size = int(words.rsplit(",", 1)[1])
        node.content = node.content[:size].ljust(size, b"\0")
        return
    data = b"".join(map(_bytes, _TEXT.findall(words)))
    if name == "pwrite64":
        start = int(words.rsplit(",", 1)[1])
        node.content = node.content[:start].ljust(start, b"\0") + data
    else:
        node.content += data  # every file is written from its beginning to its end


def _name(disk, name, words, paths):
    last = paths[-1]
    if name in ("open", "openat", "creat"):
        if "O_CREAT" in words and last not in disk.files:
            disk.files[last] = Node()
        elif "O_TRUNC" in words and last in disk.files:
            disk.files[last].content = b""
    elif name.startswith("mkdir"):
        disk.folders.add(last)
    elif name.startswith("rename"):
        disk.files[last] = disk.files.pop(paths[0])
    elif name.startswith("link"):
        disk.files[last] = disk.files[paths[0]]
    elif name.startswith("unlink") or name == "rmdir":
        disk.files.pop(last, None)
        disk.folders.discard(last)
