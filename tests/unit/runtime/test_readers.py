"""What Spark 4.3 has answered to some texts; all of them are asked of it in tests/spark/test_readers.py."""

from __future__ import annotations

import math
from datetime import date, datetime

import pytest

from headrace.plan.types import DataType as T
from headrace.runtime.readers import CSV, INLINE, JSON, json_value, read

NOON = datetime(2024, 5, 1, 12, 0, 2)


@pytest.mark.parametrize(
    ("kind", "text", "of_json", "of_csv"),
    [
        (T.BOOLEAN, "True", None, True),
        (T.BOOLEAN, " true", None, None),
        (T.INT, "+2", None, 2),
        (T.INT, " 2", None, None),
        (T.INT, "2147483648", None, None),
        (T.DOUBLE, "2.5", None, 2.5),
        (T.DOUBLE, "1d", None, 1.0),
        (T.DOUBLE, "0x1p3", None, 8.0),
        (T.DOUBLE, "nan", None, None),
        (T.DOUBLE, "-INF", -math.inf, None),
        (T.DOUBLE, "-Inf", None, -math.inf),
        (T.DOUBLE, "+Infinity", math.inf, math.inf),
        (T.TIMESTAMP, "2024-5-1 12:0:2", NOON, NOON),
        (T.TIMESTAMP, "2024-05-01T14:00:02+02", NOON, NOON),
        (T.TIMESTAMP, "2024-05-01 14:00:02 Europe/Berlin", NOON, NOON),
        (T.TIMESTAMP, "20240501", None, None),
        (T.TIMESTAMP, "2024-05-01t12:00:02", None, None),
        (T.TIMESTAMP, "2024-05-01 12:00:02+19:00", None, None),
        (T.DATE, "2024-5-1 x", date(2024, 5, 1), date(2024, 5, 1)),
        (T.DATE, "2024-05-01x", None, None),
    ],
)
def test_texts(kind: T, text: str, of_json: object, of_csv: object) -> None:
    assert read(JSON[kind], text) == of_json
    assert read(CSV[kind], text) == of_csv


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (T.INT, "2", 2),
        (T.INT, "2.0", None),
        (T.INT, "true", None),
        (T.DOUBLE, "2", 2.0),
        (T.DOUBLE, "-Infinity", -math.inf),
        (T.BOOLEAN, "1", None),
        (T.STRING, "1.50", "1.50"),
        (T.STRING, '{"a":[1.0,true,"x"]}', '{"a":[1.0,true,"x"]}'),
        (T.TIMESTAMP, "1714564802", NOON),
        (T.TIMESTAMP, "1714564802.5", None),
        (T.DATE, "19844", None),
    ],
)
def test_tokens_of_json(kind: T, text: str, value: object) -> None:
    assert read(JSON[kind], json_value(text)) == value


def test_rows_of_the_project_file() -> None:
    given = [(T.INT, 2), (T.INT, "2"), (T.DOUBLE, 2), (T.DOUBLE, True), (T.BOOLEAN, " True")]
    assert [read(INLINE[kind], value) for kind, value in given] == [2, 2, 2.0, None, True]
    assert read(INLINE[T.TIMESTAMP], 1714564802.5) == NOON.replace(microsecond=500_000)
    assert read(INLINE[T.DATE], date(2024, 5, 1)) == date(2024, 5, 1)
    assert read(INLINE[T.STRING], 1.5) == "1.5"
