"""Places are where an editor would show them: file, line and column of the file the SQL stands in."""

from __future__ import annotations

import pytest

from headrace.catalog.model import Query
from headrace.errors import Span, UserError
from headrace.sql.bind import bind_query
from headrace.sql.place import Source
from tests.cases.catalog import STREAMS, TABLES

TEXT = "SELECT url,\n  wrong\nFROM clicks"


def _span(query: Query) -> Span:
    with pytest.raises(UserError) as caught:
        bind_query(query, STREAMS, TABLES)
    assert caught.value.span is not None
    assert caught.value.exit_code == 2
    return caught.value.span


def test_a_query_without_a_file_is_named() -> None:
    assert _span(Query(name="clicky", sql=TEXT)).where() == "<query clicky>:2:3"


def test_a_query_inside_a_project_file() -> None:
    """The SQL below stands in the file from line 11, column 7 on, as a YAML block does."""
    file = ["queries:"] + [""] * 9 + [f"      {line}" for line in TEXT.split("\n")]
    span = _span(Query(name="q", sql=TEXT, sql_file="headrace.yaml", sql_line=11, sql_column=7))
    assert span.where() == "headrace.yaml:12:9"
    line = file[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == "wrong"
    assert span.text == line
    assert span.underlined().split("\n")[1] == "        ^^^^^"


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT nope FROM clicks", "nope"),
        ("SELECT upper(bytes) FROM clicks", "upper(bytes)"),
        ("SELECT url FROM clicks ORDER BY url", "ORDER BY url"),
        ("SELECT CAST(url AS int) AS x FROM clicks", "CAST(url"),
        ("SELECT url FROM clicks WHERE bytes > 'x'", "bytes > 'x'"),
        ("SELECT url FROM clicks [ROWS 3]", "[ROWS"),
        ("SELECT url FROM clicks WHERE at > 'soon'", "'soon'"),
        ("SELECT count(*) AS n FROM bids GROUP BY window(price, '1 minute')", "price"),
    ],
)
def test_what_is_marked(sql: str, marked: str) -> None:
    span = _span(Query(name="q", sql=sql))
    assert span.text[span.column - 1 : span.end_column - 1] == marked


def test_a_span_stays_on_its_line() -> None:
    span = Source("ab\ncd", "f").span(1, 5)
    assert (span.line, span.column, span.end_column, span.text) == (1, 2, 3, "ab")
