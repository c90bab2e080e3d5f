"""Copies of folders: whole, on disk, and compared file by file by their hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from headrace.runtime.files import sync_folder

_BLOCK = 1 << 20


def difference(source: Path, staged: Path) -> str:
    """Copy, and tell the first file in which the copy differs; empty: in none."""
    shutil.rmtree(staged, ignore_errors=True)
    try:
        shutil.copytree(source, staged)
        make_durable(staged)
        wanted, got = digests(source), digests(staged)
    except (FileNotFoundError, shutil.Error) as error:
        return str(error)[:300]
    return min((name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name)), default="")


def digests(folder: Path) -> dict[str, str]:
    """The hash of every file, by its path in the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as read:
        while block := read.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def make_durable(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("rb") as written:
                os.fsync(written.fileno())
    sync_folder(folder)
