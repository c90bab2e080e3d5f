"""CSV text as RFC 4180 has it, and as Spark reads it with the options of `spark/sources.py`.

A field in quotes may hold delimiters and line breaks, and a quote as two; a backslash is a character as any
other. A field with nothing in it is NULL, one of two quotes is an empty text: the two can be told apart only
before the quotes are taken off, so a field comes as None or as a text, maybe empty.

Two things go beyond the RFC, and are what Spark's parser does. The first line break of a text says how its
lines end; where that is not `\\n`, breaks of that kind within quotes become `\\n` too. A field with
something behind its closing quote is taken as it stands, up to the next delimiter or line end.

Known to differ: texts whose lines end in more than one way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Field = str | None
_BREAK = re.compile(r"\r\n|\r|\n")
_SPACES = "".join(map(chr, range(33)))


def read_delimited(text: str, delimiter: str) -> Iterator[list[Field]]:
    """The records of a text. Lines with nothing on them are passed over."""
    line = _BREAK.search(text)
    return _Reader(text if line is None else text.replace(line[0], "\n"), delimiter).records()


class _Reader:
    def __init__(self, text: str, delimiter: str) -> None:
        self._text, self._delimiter = text, delimiter
        self._end = re.compile(f"[{re.escape(delimiter)}\n]|\\Z")
        blanks = "".join(c for c in _SPACES if c not in ("\n", delimiter))
        self._blanks = re.compile(f"[{re.escape(blanks)}]*")

    def records(self) -> Iterator[list[Field]]:
        position, record = 0, list[Field]()
        while position < len(self._text):
            field, end = self._field(position)
            record.append(field)
            position = end + 1
            if self._text.startswith(self._delimiter, end):
                if position < len(self._text):
                    continue
                record.append(None)
            if record != [None]:
                yield record
            record = []

    def _field(self, position: int) -> tuple[Field, int]:
        """One field and the place behind it: a delimiter, a line end, or the end of the text."""
        if self._text.startswith('"', position):
            return self._quoted(position + 1)
        end = self._ends(position)
        return self._text[position:end] or None, end

    def _ends(self, position: int) -> int:
        found = self._end.search(self._text, position)
        assert found is not None, "the end of the text is always found"
        return found.start()

    def _quoted(self, position: int) -> tuple[str, int]:
        text, parts = self._text, list[str]()
        while (quote := text.find('"', position)) >= 0:
            parts.append(text[position:quote])
            if not text.startswith('"', quote + 1):
                return self._closed("".join(parts), quote)
            parts.append('"')
            position = quote + 2
        return "".join((*parts, text[position:])), len(text)

    def _closed(self, value: str, quote: int) -> tuple[str, int]:
        blanks = self._blanks.match(self._text, quote + 1)
        end = self._ends(quote + 1)
        if blanks is not None and blanks.end() == end:
            return value, end
        return f'"{value}{self._text[quote:end]}', end
