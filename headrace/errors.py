"""One error tree. Every error carries a message, and where it helps a detail, a hint and a place.

HeadraceError
  UserError        the input is wrong; exit code 2, no traceback
    NotSupported   the input is understood and refused, by name
  EngineError      an engine we drive (Spark, DuckDB) failed on valid input; exit code 1
  InternalError    our own bug; exit code 1, with a traceback
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text the user wrote. Lines and columns count from 1; `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_column: int
    text: str = ""
    """The whole source line, for underlining; empty when it is not known."""

    def where(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def underlined(self) -> str:
        """The source line with the place marked below it."""
        if not self.text:
            return ""
        before, marked = self.text[: self.column - 1], self.text[self.column - 1 : self.end_column - 1]
        # A tab is as wide as the terminal has it, so it is a tab below itself, too.
        below = "".join(one if one == "\t" else " " * _cells(one) for one in before.ljust(self.column - 1))
        return f"{self.text}\n{below}{'^' * max(1, sum(map(_cells, marked)))}"


def _cells(character: str) -> int:
    """How many places of a terminal it takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class HeadraceError(Exception):
    """Base of all errors that Headrace raises on purpose."""

    exit_code = 1
    kind = "error"

    def __init__(self, message: str, *, detail: str = "", hint: str = "", span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span

    def render(self) -> str:
        """The error as plain text: place, message, underlined source, detail, hint."""
        parts = [f"{self.span.where()}: {self.message}" if self.span else self.message]
        if self.span and self.span.text:
            parts.append("\n".join(f"    {line}" for line in self.span.underlined().splitlines()))
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, object]:
        """The error as data, for `--json`."""
        place = None
        if self.span:
            place = {"file": self.span.file, "line": self.span.line, "column": self.span.column}
        return {
            "error": self.kind,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "place": place,
        }


class UserError(HeadraceError):
    """The user's input is wrong."""

    exit_code = 2
    kind = "user error"


class SiteSilent(UserError):
    """A site that the project names does not answer. It may be the wrong address, or it may answer later."""


class StateUnusable(UserError):
    """The state file cannot be read or written now: another process holds it, or the disk is full."""


class NotSupported(UserError):
    """The input is well formed, and Headrace says by name what it does not do."""

    kind = "not supported"


class EngineError(HeadraceError):
    """Spark, Java or DuckDB failed while doing what we asked."""

    kind = "engine error"


class InternalError(HeadraceError):
    """Our own bug: an invariant does not hold."""

    kind = "internal error"
