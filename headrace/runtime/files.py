"""Files written whole: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write, flush to disk, rename, and make the rename itself durable."""
    staged = path.with_name(f".{path.name}.tmp")
    with staged.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    staged.replace(path)
    sync_folder(path.parent)


def write_json(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, sort_keys=True))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under a second name, at once; a copy where the two are on different disks. What is in it
    is on disk then, whoever wrote it; its name is when its folder is synced.

    A target that is there already stays: it was put there by an earlier try with the same content."""
    _sync_file(source)
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return
    except OSError:
        staged = target.with_name(f".{target.name}.tmp")
        shutil.copyfile(source, staged)
        _sync_file(staged)
        staged.replace(target)


def _sync_file(path: Path) -> None:
    with path.open("rb") as held:
        os.fsync(held.fileno())
