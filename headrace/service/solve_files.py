"""Files that an answer is written to: looked at before the search, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from headrace.errors import UserError

PICTURES = (".svg", ".html", ".htm")


def check_out(path: Path) -> None:
    """Raises UserError, before any search, where the answer could not be written."""
    if path.exists() and not path.is_file():
        reason = "it is a folder" if path.is_dir() else "it is not a regular file"
        raise UserError(f"cannot write {path}: {reason}", hint="Give the name of a file.")
    if not path.parent.is_dir():
        hint = "Give a file in a folder that exists."
        raise UserError(f"cannot write {path}: there is no such folder", hint=hint)


def check_picture(path: Path) -> None:
    if path.suffix.lower() not in PICTURES:
        raise UserError(f'"{path}" is neither an .svg nor an .html file', hint="Name it map.svg or map.html.")
    check_out(path)


def write_whole(path: Path, text: str) -> None:
    """It is renamed into place, so that nobody ever reads half of it."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
