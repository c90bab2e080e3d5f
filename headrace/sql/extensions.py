"""Window clauses that the SQL parser does not know, taken out of the token stream before it runs.

    FROM s [RANGE 5 MINUTES SLIDE 1 SECOND] AS a                                          CQL
    FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '5' MINUTES))   slide, then size
    FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES))

What is left is `FROM s AS a`; the clause is remembered under the offset of the stream's name, so that it is
found again when the name is bound. Tokens are dropped and never moved: every place stays the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import NotSupported, UserError
from headrace.sql.place import Source
from headrace.sql.spans import interval_micros

_CQL_REFUSED = {
    "ROWS": "[ROWS n], a window of a number of rows,",
    "NOW": "the window [NOW]",
    "UNBOUNDED": "the window [UNBOUNDED]",
    "PARTITION BY": "[PARTITION BY ...], a window for each key,",
}
_CQL_HINT = "Write [RANGE 5 MINUTES SLIDE 1 SECOND]."
_TVF_REFUSED = {"CUMULATE": "the window function CUMULATE", "SESSION": "the window function SESSION"}
_TVF_FORMS = {
    "HOP": "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '5' MINUTES)",
    "TUMBLE": "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES)",
}


class Form(StrEnum):
    """How a window was written: CQL windows hold for the whole query, SQL ones where they are named."""

    CQL = "cql"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window written next to a stream's name; `slide` None is a CQL range that only bounds a join."""

    form: Form
    range: int
    slide: int | None
    time: str | None
    """The column in DESCRIPTOR(...)."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Extracted:
    tokens: list[Token]
    windows: dict[int, WindowClause]


def extract_windows(tokens: list[Token], source: Source) -> Extracted:
    return _Extractor(tokens, source).run()


class _Extractor:
    """One pass over the tokens; `at` is the next one to look at."""

    def __init__(self, tokens: list[Token], source: Source) -> None:
        self.tokens = tokens
        self.source = source
        self.at = 0
        self.kept: list[Token] = []
        self.windows: dict[int, WindowClause] = {}

    def run(self) -> Extracted:
        while self.at < len(self.tokens):
            if self._is_cql():
                self._cql()
            elif self._is_table_function():
                self._table_function()
            else:
                self._keep(_as_name(self.tokens[self.at]))
                self.at += 1
        return Extracted(self.kept, self.windows)

    def _keep(self, token: Token) -> None:
        """A quote doubled inside a text is that quote; the tokenizer gives two texts that touch."""
        last = self.kept[-1] if self.kept else token
        texts = token.token_type is TokenType.STRING and last.token_type is TokenType.STRING
        quote = self.source.text[token.start : token.start + 1]
        if texts and last.end + 1 == token.start and self.source.text[last.end] == quote:
            text = f"{last.text}{quote}{token.text}"
            self.kept[-1] = Token(
                TokenType.STRING, text, last.line, token.col, last.start, token.end, last.comments
            )
        else:
            self.kept.append(token)

    def _word(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text.upper() if index < len(self.tokens) else ""

    def _is_cql(self) -> bool:
        return self._word() == "[" and self._word(1) in {"RANGE", *_CQL_REFUSED}

    def _is_table_function(self) -> bool:
        skip = 2 if self._word() == "TABLE" and self._word(1) == "(" else 0
        named = self._word(skip) in {*_TVF_FORMS, *_TVF_REFUSED}
        return named and self._word(skip + 1) == "(" and self._word(skip + 2) in {"TABLE", "DATA"}

    def _fail(self, message: str, hint: str) -> UserError:
        last = self.tokens[min(self.at, len(self.tokens) - 1)]
        return UserError(message, hint=hint, span=self.source.span(last.start, last.end + 1))

    def _expect(self, word: str, hint: str) -> Token:
        if self._word() != word:
            raise self._fail(f"expected {word} here", hint)
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, hint: str) -> Token:
        if self.at >= len(self.tokens):
            raise self._fail("the query ends in the middle of a window", hint)
        self.at += 1
        return self.tokens[self.at - 1]

    def _interval(self, hint: str) -> int:
        """[INTERVAL] 5 MINUTES | '5' MINUTES | '5 minutes'."""
        if self._word() == "INTERVAL":
            self.at += 1
        start = self.at
        amount = self._take(hint)
        if amount.token_type not in (TokenType.NUMBER, TokenType.STRING):
            self.at = start
            raise self._fail("expected a length of time here", hint)
        unit = "" if self._word() in {"", "]", ")", ",", "SLIDE"} else self._take(hint).text
        place = self.source.span(amount.start, self.tokens[self.at - 1].end + 1)
        return interval_micros(f"{amount.text} {unit}", place)

    def _cql(self) -> None:
        opening = self._take(_CQL_HINT)
        kind = self._take(_CQL_HINT)
        if kind.text.upper() in _CQL_REFUSED:
            place = self.source.span(opening.start, kind.end + 1)
            name = _CQL_REFUSED[kind.text.upper()]
            raise NotSupported(f"{name} is not supported", hint=_CQL_HINT, span=place)
        length = self._interval(_CQL_HINT)
        slide = None
        if self._word() == "SLIDE":
            self.at += 1
            slide = self._interval(_CQL_HINT)
        closing = self._expect("]", _CQL_HINT)
        self._remember(WindowClause(Form.CQL, length, slide, None, opening.start, closing.end + 1), opening)

    def _remember(self, clause: WindowClause, opening: Token) -> None:
        named = self.kept[-1] if self.kept else opening
        if named.token_type in (TokenType.R_PAREN, TokenType.L_BRACKET):
            place = self.source.span(clause.start, clause.end)
            hint = "Put the window behind the name of the stream, inside the subquery."
            raise NotSupported("a CQL window on a subquery is not supported", hint=hint, span=place)
        if named.start in self.windows:
            place = self.source.span(clause.start, clause.end)
            raise UserError("a stream has one window", hint="Remove one of the two.", span=place)
        self.windows[named.start] = clause

    def _table_function(self) -> None:
        start = self.tokens[self.at].start
        wrapped = self._word() == "TABLE"
        self.at += 2 if wrapped else 0
        function = self._take("")
        name = function.text.upper()
        if name in _TVF_REFUSED:
            place = self.source.span(function.start, function.end + 1)
            message = f"{_TVF_REFUSED[name]} is not supported"
            raise NotSupported(message, hint="Use HOP or TUMBLE.", span=place)
        hint = f"Write {_TVF_FORMS[name]}."
        self._expect("(", hint)
        self._expect("TABLE", hint)
        stream = self._take(hint)
        time = self._descriptor(hint)
        lengths = self._lengths(2 if name == "HOP" else 1, name, hint)
        closing = self._expect(")", hint)
        closing = self._expect(")", f"Write TABLE({_TVF_FORMS[name]}).") if wrapped else closing
        slide, length = lengths[0], lengths[-1]
        self.kept.append(_as_name(stream))
        clause = WindowClause(Form.SQL, length, slide, time.text, start, closing.end + 1)
        self.windows[stream.start] = clause

    def _descriptor(self, hint: str) -> Token:
        self._expect(",", hint)
        self._expect("DESCRIPTOR", hint)
        self._expect("(", hint)
        time = self._take(hint)
        self._expect(")", hint)
        return time

    def _lengths(self, count: int, name: str, hint: str) -> list[int]:
        lengths: list[int] = []
        while self._word() == ",":
            self.at += 1
            if len(lengths) == count:
                extra = self._take(hint)
                place = self.source.span(extra.start, extra.end + 1)
                raise NotSupported(f"{name} with an offset is not supported", hint=hint, span=place)
            lengths.append(self._interval(hint))
        if len(lengths) < count:
            raise self._fail(f"{name} takes {'a slide and a size' if count == 2 else 'a size'}", hint)
        return lengths


def _as_name(token: Token) -> Token:
    """`window` is a word of the language here (window(ts, ...), window.start), not the WINDOW clause."""
    if token.token_type is not TokenType.WINDOW:
        return token
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
