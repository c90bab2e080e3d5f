"""The check of moves sees rows that came in the wrong order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from tests.moves_order import disorder

_START = datetime(2026, 1, 1, tzinfo=UTC)


def windows(*rows: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "window_end": [_START + timedelta(seconds=second) for second, _ in rows],
            "plug": [plug for _, plug in rows],
        }
    )


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        ([windows((10, 1), (20, 1), (10, 2)), windows((30, 1), (20, 2))], []),
        ([windows((10, 1), (20, 2)), windows((10, 2), (20, 1))], [2]),
        ([windows((10, 1)), windows((10, 1))], [1]),
        ([windows((30, 1), (30, 2)), windows((40, 3)), windows((20, 1), (10, 2))], [1, 2]),
    ],
    ids=["in order", "one goes back", "one comes twice", "a later file"],
)
def test_windows_come_by_their_ends(parts: list[pa.Table], keys: list[int]) -> None:
    told = disorder("tops", parts, [], apart=0)
    assert [line.split("key ")[1].split()[0] for line in told] == [str(key) for key in keys]


def test_files_of_one_batch_may_have_windows_in_any_order() -> None:
    parts = [windows((20, 1)), windows((10, 1)), windows((40, 1)), windows((30, 1))]
    assert len(disorder("tops", parts, [], apart=0)) == 1
    assert disorder("tops", parts, [], apart=0, together=2) == []
    assert len(disorder("tops", [*parts, windows((40, 1))], [], apart=0, together=2)) == 1


def test_rows_of_joins_come_when_the_later_of_the_two_has() -> None:
    files = [pa.table({"value": [float(number)]}) for number in range(6)]

    def pairs(*rows: tuple[float, float]) -> pa.Table:
        return pa.table(
            {"a.plug": [1] * len(rows), "a.value": [a for a, _ in rows], "b.value": [b for _, b in rows]}
        )

    parts = [pairs((0.0, 1.0), (2.0, 1.0)), pairs((3.0, 0.0), (1.0, 4.0))]
    assert disorder("join", parts, files, apart=0) == []
    back = [*parts, pairs((1.0, 2.0))]
    assert len(disorder("join", back, files, apart=1)) == 1
    assert disorder("join", back, files, apart=2) == []
