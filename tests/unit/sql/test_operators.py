"""Lowered sugar means what the user wrote: both texts, run by DuckDB over all combinations of NULLs."""

from __future__ import annotations

import duckdb
import pytest

from headrace.errors import NotSupported, UserError
from headrace.plan.expr import Literal
from headrace.plan.text import format_expr
from headrace.plan.types import DataType
from tests.unit.sql.binding import condition, value

CONDITIONS = (
    "bytes BETWEEN 1 AND 3",
    "bytes NOT BETWEEN user AND 3",
    "bytes IN (1, 3, NULL)",
    "bytes NOT IN (1, 2)",
    "bytes NOT IN (1, NULL)",
    "ok IS TRUE",
    "ok IS NOT TRUE",
    "ok IS FALSE",
    "ok IS NOT FALSE",
    "ok IS NULL",
    "ok IS NOT NULL",
    "NOT (ok AND bytes > 2)",
    "ok OR bytes > 2 AND user = 1",
    "(ok OR bytes > 2) AND NOT user = 1",
    "bytes <> user",
    "bytes != 2 OR bytes IS NULL",
    "url LIKE 'a%'",
    "url NOT LIKE 'a%'",
    "NOT url LIKE '%b'",
    "NOT ok IS NOT TRUE",
    "- bytes < -1",
)
VALUES = (
    "CASE bytes WHEN 1 THEN 'one' WHEN user THEN 'same' ELSE url END",
    "CASE WHEN ok THEN 1 WHEN NOT ok THEN 2 END",
    "CASE WHEN ok THEN NULL ELSE bytes END",
    "IF(ok, bytes, 0)",
    "IFNULL(bytes, 7)",
    "COALESCE(NULL, bytes, user)",
    "NULLIF(bytes, 2)",
    "bytes - user - 1",
    "bytes - (user - 1)",
    "bytes * (user + 2) - 3",
    "CAST(ok AS int)",
    "abs(-bytes)",
)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        """CREATE TABLE clicks AS SELECT * FROM
        (VALUES (NULL), (TRUE), (FALSE)) a(ok), (VALUES (NULL), (1), (2), (3)) b(bytes),
        (VALUES (NULL), (1::BIGINT), (3)) c("user"), (VALUES (NULL), ('ab'), ('b')) d(url)"""
    )
    return connection


def _run(rows: duckdb.DuckDBPyConnection, text: str) -> list[object]:
    text = text.replace("user", '"user"')
    found = rows.execute(f'SELECT {text} FROM clicks ORDER BY ok, bytes, "user", url').fetchall()
    assert len(found) == 108
    return [row[0] for row in found]


@pytest.mark.parametrize("text", CONDITIONS)
def test_condition_keeps_its_meaning(rows: duckdb.DuckDBPyConnection, text: str) -> None:
    assert _run(rows, format_expr(condition(text))) == _run(rows, text)


@pytest.mark.parametrize("text", VALUES)
def test_value_keeps_its_meaning(rows: duckdb.DuckDBPyConnection, text: str) -> None:
    assert _run(rows, format_expr(value(text))) == _run(rows, text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bytes + 1", DataType.BIGINT),
        ("bytes / 2", DataType.DOUBLE),
        ("bytes * 1.5", DataType.DOUBLE),
        ("floor(bytes)", DataType.BIGINT),
        ("round(bytes, 2)", DataType.DOUBLE),
        ("length(url)", DataType.INT),
        ("hour(at)", DataType.INT),
        ("year(CAST(at AS date))", DataType.INT),
        ("EXTRACT(DAY FROM DATE '2024-05-01')", DataType.INT),
        ("at + INTERVAL 1 DAY", DataType.TIMESTAMP),
        ("CAST(at AS date)", DataType.DATE),
        ("bytes > 1", DataType.BOOLEAN),
        ("COALESCE(NULL, 1)", DataType.INT),
        ("CAST(NULL AS string)", DataType.STRING),
        ("CASE WHEN ok THEN bytes ELSE 1.5 END", DataType.DOUBLE),
    ],
)
def test_types(text: str, kind: DataType) -> None:
    assert value(text).type is kind


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("2147483647", Literal(2147483647, DataType.INT)),
        ("2147483648", Literal(2147483648, DataType.BIGINT)),
        ("-2147483648", Literal(-2147483648, DataType.INT)),
        ("-9223372036854775808", Literal(-9223372036854775808, DataType.BIGINT)),
        ("1.0", Literal(1.0, DataType.DOUBLE)),
        ("5L", Literal(5, DataType.BIGINT)),
        ("DATE '1970-01-02'", Literal(1, DataType.DATE)),
        ("DATE '1969-12-31'", Literal(-1, DataType.DATE)),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", Literal(1_500_000, DataType.TIMESTAMP)),
        ("TIMESTAMP '1970-01-01T02:00:00+02:00'", Literal(0, DataType.TIMESTAMP)),
        ("'it''s'", Literal("it's", DataType.STRING)),
        ("''''", Literal("'", DataType.STRING)),
        (r"'it\'s'", Literal("it's", DataType.STRING)),
        (r"'a\nb\\c'", Literal("a\nb\\c", DataType.STRING)),
        (r"'\u0041\q'", Literal("Aq", DataType.STRING)),
        (r"'\%\_'", Literal(r"\%\_", DataType.STRING)),
        ('"it\'s ""x"""', Literal('it\'s "x"', DataType.STRING)),
    ],
)
def test_literals(text: str, literal: Literal) -> None:
    assert value(text) == literal


def test_a_flag_the_binder_does_not_know_is_refused() -> None:
    with pytest.raises(NotSupported, match="SYMMETRIC"):
        condition("bytes BETWEEN SYMMETRIC 3 AND 1")


@pytest.mark.parametrize(
    "text", ["round(bytes, 13)", "round(bytes, -1)", "date_trunc('week', at)", "date_trunc(url, at)"]
)
def test_arguments_that_must_be_constants(text: str) -> None:
    with pytest.raises(UserError) as caught:
        value(text)
    assert caught.value.span is not None
