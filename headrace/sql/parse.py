"""SQL text -> one SELECT of the parser's tree, and the window clauses next to its stream names.

Functions stay calls by the name the user wrote: the parser's own rewriting of them (log10(x) as a logarithm
to base 10, year(ts) through a date) would change what is said in messages and, here and there, what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import NotSupported, UserError
from headrace.plan.types import DataType
from headrace.sql.extensions import WindowClause, extract_windows
from headrace.sql.place import Source

_SHAPE = "A query is one SELECT ... FROM ...; streams, tables and sinks are declared in the project file."
_KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT")
_NO_ITEM = frozenset(
    {
        TokenType.COMMA,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.R_PAREN,
        TokenType.SEMICOLON,
    }
)
"""What no item of a list starts with, and no name is unless it is quoted."""
_IN_CAST = re.compile(r"\b(?:TRY_)?CAST\s*\((?:[^()]|\([^()]*\))*\bAS\s+$", re.IGNORECASE)
"""What stands before the type of a cast."""
_OPENS = frozenset({TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.L_PAREN})
"""What the first item of a list follows."""


class _Parser(SparkParser):
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {}


@dataclass(frozen=True, slots=True)
class Parsed:
    select: exp.Select
    windows: dict[int, WindowClause]


def parse(source: Source) -> Parsed:
    tokens = _tokens(source)
    _check_start(tokens, source)
    extracted = extract_windows(tokens, source)
    _check_commas(extracted.tokens, source)
    _check_aliases(extracted.tokens, source)
    try:
        found = _Parser(dialect=Spark).parse(extracted.tokens, source.text)
    except ParseError as error:
        raise _syntax_error(error, source) from None
    statements = [s for s in found if s is not None]
    if len(statements) != 1:
        raise NotSupported("several statements in one query are not supported", hint=_SHAPE)
    return Parsed(_one_select(statements[0], source), extracted.windows)


def _tokens(source: Source) -> list[Token]:
    try:
        tokens: list[Token] = Spark().tokenize(source.text)
    except TokenError:
        raise _unclosed(source) from None
    _check_single_statement(tokens, source)
    return tokens


_QUOTED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|(?P<open>/\*|['"`])""", re.DOTALL
)


def _unclosed(source: Source) -> UserError:
    """The first quote or comment that has no end."""
    found = next((m for m in _QUOTED.finditer(source.text) if m["open"]), None)
    place = source.span(found.start() if found else 0, len(source.text))
    if found is not None and found["open"] == "/*":
        return UserError("a comment is not closed", hint="Add */.", span=place)
    return UserError("a quoted text is not closed", hint="Add the closing quote.", span=place)


def _check_single_statement(tokens: list[Token], source: Source) -> None:
    for token, after in pairwise(tokens):
        if token.token_type is TokenType.SEMICOLON and after.token_type is not TokenType.SEMICOLON:
            place = source.span(after.start, after.end + 1)
            message = "several statements in one query are not supported"
            raise NotSupported(message, hint="Declare one query for each.", span=place)


def _check_start(tokens: list[Token], source: Source) -> None:
    if not tokens:
        raise UserError("the query is empty", hint=_SHAPE, span=source.span(0, 0))
    first = tokens[0]
    if first.text.upper() in {"SELECT", "WITH", "("}:
        return
    place = source.span(first.start, first.end + 1)
    if first.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        raise UserError(f'a query starts with SELECT, not with "{first.text}"', hint=_SHAPE, span=place)
    raise NotSupported(f"{first.text.upper()} is not supported", hint=_SHAPE, span=place)


def _check_commas(tokens: list[Token], source: Source) -> None:
    """The parser lets `SELECT a, FROM s` and `a,,b` pass; it is more likely a column that got lost."""
    hint = "Remove it or add a column."
    kinds = [*(token.token_type for token in tokens), TokenType.SEMICOLON]
    for token, before, after in zip(tokens, [TokenType.COMMA, *kinds], kinds[1:], strict=False):
        if token.token_type is TokenType.COMMA and (after in _NO_ITEM or before in _OPENS):
            side = "follows" if after in _NO_ITEM else "stands before"
            place = source.span(token.start, token.end + 1)
            raise UserError(f"nothing {side} this comma", hint=hint, span=place)


def _check_aliases(tokens: list[Token], source: Source) -> None:
    """The parser lets `FROM s AS` pass, and takes the name for what was meant."""
    kinds = [*(token.token_type for token in tokens), TokenType.SEMICOLON]
    for token, after in zip(tokens, kinds[1:], strict=True):
        if token.token_type is TokenType.ALIAS and after in _NO_ITEM:
            place = source.span(token.start, token.end + 1)
            raise UserError(
                "no name follows this AS", hint="Write a name after it, or remove it.", span=place
            )


def _syntax_error(error: ParseError, source: Source) -> UserError:
    found = error.errors[0] if error.errors else {}
    line, column = found.get("line"), found.get("col")
    word = str(found.get("highlight") or "")
    span = None
    if isinstance(line, int) and isinstance(column, int):
        before = sum(len(text) + 1 for text in source.text.split("\n")[: line - 1])
        start = max(0, before + column - max(1, len(word)))
        span = source.span(start, start + max(1, len(word)))
        if word and _IN_CAST.search(source.text[:start]):
            hint = f"The types are {', '.join(t for t in DataType if t is not DataType.INTERVAL)}."
            return UserError(f'type "{word}" does not exist', hint=hint, span=span)
    description = str(found.get("description", ""))
    if description.startswith("Expecting"):
        wanted = description.removeprefix("Expecting").strip()
        message = f'the SQL cannot be read: expected {wanted} near "{word}"'
    elif description.startswith("Invalid expression"):
        message = f'the SQL cannot be read: "{word}" does not fit here'
    else:
        message = f'the SQL cannot be read: something is missing after "{word}"'
    return UserError(message, hint=_SHAPE, span=span)


def _one_select(statement: exp.Expr, source: Source) -> exp.Select:
    inner = statement
    while isinstance(inner, exp.Subquery | exp.Paren) and isinstance(inner.this, exp.Expr):
        inner = inner.this
    if isinstance(inner, exp.Select):
        return inner
    if isinstance(inner, exp.SetOperation):
        hint = "Declare one query for each part."
        raise source.refusal(inner, f"{inner.key.upper()} is not supported", hint)
    raise source.refusal(inner, f"{inner.key.upper()} is not supported", _SHAPE)
