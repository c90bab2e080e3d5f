"""What is wrong with a project, as data: checks collect problems, `first_error` makes one error of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.catalog.document import Document, Trail
from headrace.errors import NotSupported, Span, UserError


@dataclass(frozen=True, slots=True)
class Problem:
    trail: Trail
    """Where in the document; what is not there stands for the nearest thing around it."""
    message: str
    hint: str = ""
    at_key: bool = False
    """Whether the key is wrong, not its value."""
    refused: bool = False
    """Understood, and not supported."""

    def span(self, document: Document) -> Span:
        return document.at_key(self.trail) if self.at_key else document.at_value(self.trail)


def shown(trail: Trail) -> str:
    """A trail as people read it: `streams.plugs.source`, `links[0].between`."""
    text = ""
    for part in trail:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the project file"


def first_error(problems: Iterable[Problem], document: Document) -> UserError | None:
    """The problem that stands first in the file; the detail says how many more there are."""
    placed = [(problem.span(document), problem) for problem in problems]
    if not placed:
        return None
    span, problem = min(placed, key=lambda pair: (pair[0].line, pair[0].column))
    others = sorted({where.line for where, _ in placed} - {span.line})
    detail = _and_more(len(placed) - 1, others)
    kind = NotSupported if problem.refused else UserError
    return kind(problem.message, detail=detail, hint=problem.hint, span=span)


def _and_more(count: int, lines: list[int]) -> str:
    if count == 0:
        return ""
    more = f"{count} more {'problem' if count == 1 else 'problems'} in this file"
    if not lines:
        return f"{more}, on the same line."
    listed = ", ".join(map(str, lines[:8])) + (", ..." if len(lines) > 8 else "")
    return f"{more}, on line{'s' if len(lines) > 1 else ''} {listed}."
