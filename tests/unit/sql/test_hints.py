"""Every refusal says what to write instead."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.plan.functions import AGGREGATES, SCALARS
from headrace.plan.types import DataType
from headrace.sql.hints import mismatch_hint
from tests.unit.sql.binding import bind

WRONG = (
    ("bytes FROM clicks WHERE url > 1", "in quotes"),
    ("bytes + url AS z FROM clicks", "||"),
    ("ok - 1 AS z FROM clicks", "numbers"),
    ("sum(url) AS z FROM clicks GROUP BY window(at, '1 minute')", "declare"),
    ("stddev(ok) AS z FROM clicks GROUP BY window(at, '1 minute')", "CAST(b AS int)"),
    ("sum(bytes, 1) AS z FROM clicks GROUP BY window(at, '1 minute')", "sum(x)"),
    ("avg(at) AS z FROM clicks GROUP BY window(at, '1 minute')", "unix_seconds"),
    ("abs(bytes, 1) AS z FROM clicks", "abs(x)"),
    ("substring(url) AS z FROM clicks", "substring(s, 1, 3)"),
    ("CASE WHEN ok THEN 1 ELSE 'a' END AS z FROM clicks", "in quotes"),
    ("at + 5 AS z FROM clicks", "INTERVAL"),
    ("at - at AS z FROM clicks", "unix_seconds(a) - unix_seconds(b)"),
    ("bytes FROM clicks WHERE CAST(at AS date) = 'notadate'", "2024-05-01"),
    ("1e999 AS z FROM clicks", "1.797e308"),
    ("round(bytes, bytes) AS z FROM clicks", "round(x, 2)"),
    ("round(bytes, 99) AS z FROM clicks", "round(x, 2)"),
    ("bytes FROM clicks WHERE bytes IN ()", "x IN (1, 2)"),
    ("bytes FROM clicks WHERE bytes IN (1, 'a')", "in quotes"),
    ("bytes FROM clicks WHERE url LIKE 5", "LIKE 'a%'"),
    ("bytes FROM clicks WHERE url LIKE '%' ESCAPE '!'", "no escape character"),
    ("greatest() AS z FROM clicks", "greatest(a, b)"),
    ("greatest(bytes, url) AS z FROM clicks", "in quotes"),
    ("hour(CAST(at AS date)) AS z FROM clicks", "CAST(d AS timestamp)"),
    ("upper(bytes) AS z FROM clicks", "CAST(x AS string)"),
)


@pytest.mark.parametrize(("sql", "hint"), WRONG)
def test_the_hint_says_what_to_write(sql: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        bind(f"SELECT {sql}")
    assert hint in caught.value.hint and caught.value.span is not None


@pytest.mark.parametrize("sql", ["CAST(bytes AS nosuch)", "TRY_CAST(abs(bytes) AS nosuch)"])
def test_a_type_that_does_not_exist(sql: str) -> None:
    with pytest.raises(UserError, match='type "nosuch" does not exist') as caught:
        bind(f"SELECT {sql} AS z FROM clicks")
    assert "boolean, int, bigint" in caught.value.hint and "interval" not in caught.value.hint
    assert caught.value.span is not None


@pytest.mark.parametrize("function", [*SCALARS, *AGGREGATES])
@pytest.mark.parametrize("types", [(), *((t,) for t in DataType), (DataType.BOOLEAN, DataType.INTERVAL)])
def test_every_function_has_one(function: str, types: tuple[DataType, ...]) -> None:
    assert mismatch_hint(function, types).endswith(".")
