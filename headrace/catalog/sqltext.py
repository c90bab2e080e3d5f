"""The SQL of a query, and where its first character stands, so that an error inside it has a place.

Line n, column c of the SQL is line `line + n - 1`, column `column + c - 1` of `file`. That holds for a
`|` block (each line loses the same indentation), for a text on one line, and for a file. It does not hold
for a text that YAML folds, which also lets a `--` comment swallow the lines after it: those are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.catalog.document import Data, Document, Trail
from headrace.catalog.problems import Problem, shown
from headrace.catalog.translate import wrong_type
from headrace.ids import did_you_mean


@dataclass(frozen=True, slots=True)
class Located:
    sql: str
    file: str
    line: int
    column: int


def read_sql(body: dict[str, Data], trail: Trail, document: Document, folder: Path) -> Located | Problem:
    """The SQL of a query body, from `sql` or from `file`."""
    if "sql" in body and "file" in body:
        message = f'{shown(trail)} has both "sql" and "file"'
        return Problem((*trail, "file"), message, "Keep one of them.", at_key=True)
    if "sql" in body:
        return _inline(body["sql"], (*trail, "sql"), document)
    if "file" in body:
        return _from_file(body["file"], (*trail, "file"), folder)
    hint = 'Add the text as "sql: |", or its file as "file: queries/name.sql".'
    return Problem(trail, f'{shown(trail)} has neither "sql" nor "file"', hint, at_key=True)


def _inline(sql: Data, trail: Trail, document: Document) -> Located | Problem:
    if sql is not None and not isinstance(sql, str):
        return wrong_type("SQL text", sql, trail)
    if sql is None or not sql.strip():
        return Problem(trail, f"{shown(trail)} is empty", "Write the query after it.")
    place = document.scalar(trail)
    if not place.keeps_lines:
        hint = 'Write "sql: |" and the query indented below it.'
        return Problem(trail, "SQL over several lines must be a block with |", hint)
    return Located(sql, document.file, place.line, place.column)


def _from_file(name: Data, trail: Trail, folder: Path) -> Located | Problem:
    if not isinstance(name, str):
        return wrong_type("the path of a file", name, trail)
    path = folder / name
    if not name or Path(name).is_absolute():
        hint = "Paths of SQL files start at the project's folder."
        return Problem(trail, f"{shown(trail)} must be a relative path", hint)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        beside = [p.name for p in path.parent.glob("*.sql")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, beside, f"SQL files in {path.parent}")
        return Problem(trail, f"there is no file {path}", hint)
    except OSError as error:
        return Problem(trail, f"{path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return Problem(trail, f"{path} is not UTF-8 text", "Save the file as UTF-8.")
    if not text.strip():
        return Problem(trail, f"{path} is empty", "Write the query in it.")
    return Located(text, str(path), 1, 1)
