"""Where things stand in the user's SQL.

A place is a pair of offsets into the SQL text; a Span is that place in the file the text came from. The
parser keeps offsets on names, literals and function names, so the place of any other node is from the
first to the last offset found inside it. A span never leaves its first line: that is what gets underlined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from headrace.errors import NotSupported, Span, UserError


@dataclass(frozen=True, slots=True)
class Source:
    """The SQL text of one query, and where in which file it starts."""

    text: str
    file: str
    line: int = 1
    column: int = 1

    def span(self, start: int, end: int) -> Span:
        """The place from offset `start` up to but without `end`."""
        start = max(0, min(start, len(self.text)))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        return Span(
            file=self.file,
            line=self.line + self.text.count("\n", 0, start),
            column=start - line_start + self.column,
            end_column=max(start + 1, min(end, line_end)) - line_start + self.column,
            text=" " * (self.column - 1) + self.text[line_start:line_end].rstrip("\r"),
        )

    def span_of(self, node: exp.Expr) -> Span:
        """The place of a node, or of the nearest node around it whose place is known."""
        found: exp.Expr | None = node
        while found is not None:
            offsets = _offsets(found)
            if offsets is not None:
                return self.span(self._opened(found, offsets[0]), self._closed(found, offsets[1]))
            found = found.parent
        return self.span(0, len(self.text))

    def _opened(self, node: exp.Expr, start: int) -> int:
        """Where the words in front of a node begin, which the parser does not keep either."""
        for kind in type(node).__mro__:
            words = _LEADING.get(kind)
            if words is not None:
                found = re.search(rf"(?:{words})\s*$", self.text[:start], re.IGNORECASE)
                return start if found is None else found.start()
        return start

    def _closed(self, node: exp.Expr, end: int) -> int:
        """A call ends with its parenthesis, which the parser does not keep."""
        if not isinstance(node, exp.Anonymous | exp.Cast | exp.Subquery | exp.Paren):
            return end
        after = end
        while after < len(self.text) and self.text[after] in " (*":
            after += 1
        return after + 1 if self.text[after : after + 1] == ")" else end

    def error(self, node: exp.Expr, message: str, hint: str = "") -> UserError:
        return UserError(message, hint=hint, span=self.span_of(node))

    def refusal(self, node: exp.Expr, message: str, hint: str = "") -> NotSupported:
        return NotSupported(message, hint=hint, span=self.span_of(node))


_LEADING: dict[type[object], str] = {
    exp.Select: r"\bSELECT(?:\s+DISTINCT)?",
    exp.SetOperation: r"\bSELECT",
    exp.Subquery: r"\(\s*SELECT",
    exp.Exists: r"\bEXISTS\s*\(\s*SELECT",
    exp.Case: r"\bCASE(?:\s+WHEN)?",
    exp.If: r"\bIF\s*\(",
    exp.Cast: r"\bCAST\s*\(",
    exp.Extract: r"\bEXTRACT\s*\(\s*\w+\s+FROM",
    exp.Order: r"\bORDER\s+BY",
    exp.Limit: r"\bLIMIT",
    exp.Offset: r"\bOFFSET",
    exp.Qualify: r"\bQUALIFY",
    exp.Having: r"\bHAVING",
    exp.Lateral: r"\bLATERAL(?:\s+VIEW)?(?:\s*\(\s*SELECT)?",
    exp.Values: r"\bVALUES\s*\(",
    exp.Rollup: r"\bROLLUP\s*\(",
    exp.Cube: r"\bCUBE\s*\(",
    exp.GroupingSets: r"\bGROUPING\s+SETS\s*\(\s*\(",
    exp.With: r"\bWITH(?:\s+RECURSIVE)?",
    exp.Not: r"\bNOT|!",
    exp.Neg: "-",
    exp.Paren: r"\(",
    exp.Alias: r"\b(?:NULL|TRUE|FALSE|INTERVAL\s+\S+(?:\s+\w+)?)\s+AS",
}
"""The words a node begins with, where they are no names or literals."""


def _offsets(node: exp.Expr) -> tuple[int, int] | None:
    """First offset and the one after the last, of everything inside the node."""
    metas = [part.meta for part in node.walk() if "start" in part.meta]
    if not metas:
        return None
    return min(m["start"] for m in metas), max(m["end"] for m in metas) + 1


def offset_of(node: exp.Expr) -> int | None:
    """Where a name starts."""
    start = node.meta.get("start")
    return start if isinstance(start, int) else None
