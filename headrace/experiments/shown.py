"""Tables as text cells, for the terminal and for Markdown: the parts of every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    left: int = 1
    """So many columns hold words; the others hold numbers."""


def section(table: TextTable) -> str:
    """A heading, the note and the table, as Markdown."""
    rule = ["---"] * table.left + ["--:"] * (len(table.columns) - table.left)
    lines = [_line(table.columns), "|" + "|".join(rule) + "|", *map(_line, table.rows)]
    note = f"{table.note}\n\n" if table.note else ""
    return f"## {table.title}\n\n{note}" + "\n".join(lines)


def pictures(table: TextTable, prefix: str, files: Mapping[str, Sequence[str]]) -> str:
    """Those of a table, which lie beside the report; `files` by what the table's title begins with."""
    shown = ((title, name) for title, names in files.items() for name in names)
    return "".join(
        f"\n\n![{title}]({prefix}{name}.png)" for title, name in shown if table.title.startswith(title)
    )


def timed_by(made: Mapping[str, str | float]) -> str:
    """The clock of the runs, in words."""
    if made.get("clock") == "cpu":
        return "their own CPU time, because the machine had other work"
    return "the wall clock"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in cells) + " |"
