"""CSV files on Spark, with their columns by name.

Spark's reader of CSV takes columns by position, whatever the first line of a file says. So it is given the
columns of the first line of the first file, in that order, and is told to compare the first line of every
file with them (`enforceSchema`): a file that has another one fails the job, and is never misread. While there
is no file, the declared columns in their order are expected.

Files are read whole (`multiLine`), since a line break in quotes ends no line; one file is one task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headrace.catalog.model import FileSource, Format
from headrace.plan.types import DataType, Schema
from headrace.runtime.delimited import Field
from headrace.runtime.header import first_line, positions
from headrace.runtime.spark.session import Session

_NOTHING = "\ufdd0"
"""What Spark takes for NULL: by default an empty text, so that `""` would be NULL too. This is a character
that Unicode keeps out of texts."""
_PACKED = frozenset({".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"})
"""Files that Spark unpacks, by their names."""
_UNREAD = re.compile(r"FAILED_READ_FILE.*?reading file (\S+?)\.\s+SQLSTATE")


def csv_options(source: FileSource) -> dict[str, str]:
    """RFC 4180; nothing is NULL, and two quotes are an empty text."""
    return {
        "header": str(source.header).lower(),
        "enforceSchema": str(not source.header).lower(),
        "sep": source.delimiter,
        "escape": '"',
        "multiLine": "true",
        "nullValue": _NOTHING,
    }


def in_file_order(
    session: Session, source: FileSource, schema: Schema, files: Iterable[Path]
) -> list[tuple[str, DataType]]:
    """The columns that the files have, those included that are not declared. Raises UserError where a
    declared one is not there."""
    declared = [(column.name, column.type) for column in schema]
    if not source.header:
        return declared
    path, header = _first_header(session, source, files)
    if header is None:
        return declared
    inside = [one for one in declared if one[0] not in _folders(path)]
    places = positions(header, [name for name, _ in inside], path)
    known = dict(zip(places, inside, strict=True))
    found = [known.get(k, (name or _NOTHING, DataType.STRING)) for k, name in enumerate(header)]
    return found + [one for one in declared if one not in inside]


def _folders(path: str) -> set[str]:
    """The columns whose values Spark takes from the names of folders, `column=value`."""
    return {part.split("=")[0] for part in Path(path).parts[:-1] if "=" in part}


def _first_header(
    session: Session, source: FileSource, files: Iterable[Path]
) -> tuple[str, Sequence[Field] | None]:
    if "://" in source.path:
        return source.path, _asked(session, source, source.path)
    for file in files:
        packed = file.suffix in _PACKED
        header = _asked(session, source, str(file)) if packed else _seen(file, source.delimiter)
        if header is not None:
            return str(file), header
    return source.path, None


def _seen(file: Path, delimiter: str) -> list[Field] | None:
    try:
        return first_line(file, delimiter)
    except OSError:
        return None  # Spark will say what is wrong with the file.


def _asked(session: Session, source: FileSource, path: str) -> list[Field] | None:
    """The first line as Spark has it. It renames what is there twice or has no name; then no file fits."""
    reader = session.read.format("csv").options(**csv_options(source))
    try:
        return list(reader.load(path).columns)
    except Exception as error:
        if "UNABLE_TO_INFER_SCHEMA" in str(error):
            return None
        raise


def check_header(source: FileSource, schema: Schema, files: Iterable[Path]) -> None:
    """Raises UserError where the first of the files does not have the declared columns; touches nothing, and
    leaves to Spark what only Spark can read."""
    if source.format is not Format.CSV or not source.header:
        return
    first = next(iter(files), None)
    header = None if first is None or first.suffix in _PACKED else _seen(first, source.delimiter)
    if header is not None:
        positions(header, [name for name in schema.names if name not in _folders(str(first))], first)


def unread_file(message: str) -> Path | None:
    """The file that Spark says it could not read, if it says so."""
    found = _UNREAD.search(message)
    return None if found is None else Path(unquote(urlsplit(found[1]).path))


def about_header(file: Path, source: FileSource) -> str:
    """What to say of a file that Spark could not read: that its first line is not the one that was expected
    is what Spark keeps to itself. Nothing where there is nothing to say."""
    if source.format is not Format.CSV or not source.header or file.suffix in _PACKED:
        return ""
    names = ", ".join(name or "(nothing)" for name in _seen(file, source.delimiter) or ())
    return (
        f" Its first line names {names}. All CSV files of a stream must name what the first one did when the "
        "job was started (while there was none: the declared columns), in the same order."
    )
