"""Durations, sizes and instants: read exactly, written back exactly."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.units import (
    counted,
    format_duration,
    format_instant,
    format_size,
    parse_duration,
    parse_instant,
    parse_size,
    unit_micros,
)

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("5 minutes", 300 * SECOND),
        ("1h 30m", 5400 * SECOND),
        ("250ms", 250_000),
        ("1.5 s", 1_500_000),
        ("0.000001 s", 1),
        ("1 Day", 86_400 * SECOND),
        ("2 weeks", 14 * 86_400 * SECOND),
        ("0 s", 0),
        ("-1 s", -SECOND),
        ("-1.5s", -1_500_000),
        ("7us", 7),
        ("1 hour2 minutes", 3720 * SECOND),
    ],
)
def test_parse_duration(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text", ["", "  ", "5", "minutes", "5 parsecs", "5 minutes and", "1.0000001 s", "1e3 s"]
)
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|finer"):
        parse_duration(text)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_duration_reads_back_as_it_was_written(micros: int) -> None:
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "0s"), (60 * SECOND, "60s"), (1_500_000, "1500ms"), (1, "1us"), (-SECOND, "-1s")]
)
def test_format_duration(micros: int, text: str) -> None:
    assert format_duration(micros) == text


@pytest.mark.parametrize(("unit", "micros"), [("s", SECOND), ("MIN", 60 * SECOND), ("hours", 3600 * SECOND)])
def test_units_by_any_of_their_names(unit: str, micros: int) -> None:
    assert unit_micros(unit) == micros


def test_a_month_is_no_unit_because_it_has_no_fixed_length() -> None:
    assert unit_micros("month") is None
    assert unit_micros("year") is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("512m", 512 << 20), ("4g", 4 << 30), ("16 GiB", 16 << 30), ("1.5k", 1536), ("10", 10), ("10 B", 10)],
)
def test_parse_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "g", "-4g", "4 gallons", "4gg"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 30, "3.0 GiB"), (5 << 40, "5.0 TiB")],
)
def test_format_size(size: int, text: str) -> None:
    assert format_size(size) == text


def test_an_instant_without_a_zone_is_utc() -> None:
    assert parse_instant("1970-01-01 00:00:01") == SECOND
    assert parse_instant("1970-01-01T01:00:00+01:00") == 0
    assert parse_instant("1969-12-31 23:59:59.999999") == -1


def test_what_is_not_an_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="not an instant"):
        parse_instant("yesterday")


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_an_instant_reads_back_as_it_was_written(moment: datetime) -> None:
    text = moment.isoformat(sep=" ")
    micros = parse_instant(text)
    assert format_instant(micros) == text
    whole = moment.replace(tzinfo=UTC, microsecond=0)
    assert micros == int(whole.timestamp()) * SECOND + moment.microsecond


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 queries"), (1, "1 query"), (11, "11 queries"), (41, "41 queries")]
)
def test_counts_of_one_and_of_more(number: int, text: str) -> None:
    assert counted(number, "query", "queries") == text
    assert counted(1_001, "row") == "1,001 rows"


@pytest.mark.parametrize("text", ["99999999999 weeks", "200000 weeks", "-400000 days"])
def test_a_duration_has_an_end(text: str) -> None:
    with pytest.raises(ValueError, match="longer than 365,000 days"):
        parse_duration(text)
    assert parse_duration("365000 days") == 365_000 * 86_400 * SECOND


def test_what_is_after_the_last_year_reads_as_its_end() -> None:
    assert format_instant(10**18) == "9999-12-31 23:59:59.999999"
