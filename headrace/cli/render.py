"""Print things: text in colour on a terminal, plain elsewhere, JSON where it is asked for.

Results go to standard output, errors and progress to standard error; with `--json` standard output holds
JSON and nothing else, errors included, so that a program needs to read one place only.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headrace.errors import HeadraceError, UserError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def out() -> Console:
    """Standard output. Nothing is highlighted by guessing; lines are cut to fit a terminal only."""
    console = Console(highlight=False, markup=False, soft_wrap=not sys.stdout.isatty())
    if not sys.stdout.isatty():
        console.width = 240
    return console


def err() -> Console:
    return Console(stderr=True, highlight=False, markup=False)


def print_json(data: object) -> None:
    sys.stdout.write(json.dumps(_plain(data), ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def _plain(data: object) -> object:
    """Data that JSON can say: instants as ISO text, and NaN and infinities by name."""
    if is_dataclass(data) and not isinstance(data, type):
        return _plain(asdict(data))
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else ("Infinity" if data > 0 else "-Infinity")
    if isinstance(data, datetime | date):
        return data.isoformat()
    return str(data) if isinstance(data, Path) else data


def print_error(error: HeadraceError, *, as_json: bool) -> None:
    """Where, what, the line underlined, what to do."""
    if as_json:
        print_json(error.to_dict())
        return
    text = Text()
    text.append(f"{error.kind}: ", style="bold red")
    for number, line in enumerate(error.render().splitlines()):
        style = "bold" if number == 0 else ("cyan" if line.startswith("hint: ") else "")
        text.append(visible(line) + "\n", style=style)
    err().print(text, end="", soft_wrap=True)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str] = frozenset()
) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(visible(cell)) for cell in row))
    return made


def visible(text: str) -> str:
    """Names and values come from files of anybody: a terminal must not obey them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def cell(value: object) -> str:
    """One value of a result as text."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return str(value)


def count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def write_files(texts: Mapping[Path, str]) -> None:
    """Raises UserError when a file cannot be written; none is then, where that can be seen before."""
    hint = "Give a file in a folder that exists."
    for path in texts:
        if path.is_dir() or not path.parent.is_dir():
            reason = "it is a folder" if path.is_dir() else "there is no such folder"
            raise UserError(f"cannot write {path}: {reason}", hint=hint)
    for path, text in texts.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}", hint=hint) from error
