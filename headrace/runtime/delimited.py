"""CSV text as Spark writes and reads it, which is not what Python's csv module takes it for.

A field in quotes escapes a quote, and the escape itself, with a backslash; outside quotes a backslash is
only a backslash. A field in quotes may hold line breaks. An empty field is NULL; an empty text is written
as two quotes, and the two can be told apart only before the quotes are taken off, so fields come with them
known: None for an empty field, a text (maybe empty) otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

Field = str | None


def read_delimited(text: str, delimiter: str) -> Iterator[list[Field]]:
    """The records of a text. Lines with nothing on them are passed over."""
    position, record = 0, list[Field]()
    while position < len(text):
        field, position = _field(text, position, delimiter)
        record.append(field)
        if position < len(text) and text[position] == delimiter:
            position += 1
            if position < len(text):
                continue
            record.append(None)
        position = _after_line(text, position)
        if record != [None]:
            yield record
        record = []


def _field(text: str, position: int, delimiter: str) -> tuple[Field, int]:
    """One field and the place behind it: a delimiter, a line end, or the end of the text."""
    if text.startswith('"', position):
        return _quoted(text, position + 1)
    end = position
    while end < len(text) and text[end] not in (delimiter, "\n", "\r"):
        end += 1
    return text[position:end] or None, end


def _quoted(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while position < len(text) and text[position] != '"':
        if text[position] == "\\" and text[position + 1 : position + 2] in ("\\", '"'):
            position += 1
        parts.append(text[position])
        position += 1
    return "".join(parts), min(position + 1, len(text))


def _after_line(text: str, position: int) -> int:
    """Past the rest of a line: nothing but its end, unless something stands behind a closing quote."""
    while position < len(text) and text[position] not in "\r\n":
        position += 1
    return position + (2 if text.startswith("\r\n", position) else 1)
