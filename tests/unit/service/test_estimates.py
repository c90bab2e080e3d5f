"""Estimates: what is known is used, what is not is guessed as docs/project-file.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import Project, Query
from headrace.plan.logical import Filter, nodes
from headrace.service.binding import bind
from headrace.service.estimates import GUESS, any_share, distinct_of, expected_rate, groups, share
from headrace.service.weaving import member_of
from tests.unit.service.sample import STREAMS

PROJECT = """\
name: p
streams:
  plugs:
    columns: {ts: timestamp, property: string, value: double, plug: int, household: int, house: int}
    time: ts
    source: {kind: generator, shape: smart-plugs, houses: 7, households: 2, plugs: 3}
  made:
    columns: {ts: timestamp, a: int, b: string, c: double, d: boolean, e: int}
    time: ts
    source:
      kind: generator
      columns:
        a: {kind: uniform, low: 1, high: 6}
        b: {kind: choice, values: [x, y, z]}
        c: {kind: normal, mean: 0, stddev: 1}
        d: {kind: choice, values: [true, false]}
        e: {kind: constant, value: 4}
  files:
    columns: {ts: timestamp, k: int, n: bigint, ok: boolean, name: string}
    time: ts
    distinct: {k: 1000}
    source: {kind: files, path: in, format: json}
tables:
  rooms:
    columns: {id: int, floor: int}
    rows: [[1, 1], [2, 1], [3, 2]]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder: Path = tmp_path_factory.mktemp("p")
    (folder / "headrace.yaml").write_text(PROJECT)
    return load_project(folder)


@pytest.mark.parametrize(
    ("stream", "column", "number"),
    [
        ("plugs", "house", 7),
        ("plugs", "household", 2),
        ("plugs", "plug", 3),
        ("plugs", "property", 2),
        ("plugs", "value", GUESS),
        ("made", "a", 6),
        ("made", "b", 3),
        ("made", "c", GUESS),
        ("made", "d", 2),
        ("made", "e", 1),
        ("files", "k", 1000),
        ("files", "n", GUESS),
        ("files", "ok", 2),
        ("files", "rooms.id", 3),
        ("files", "rooms.floor", 2),
    ],
)
def test_different_values_of_a_column(project: Project, stream: str, column: str, number: int) -> None:
    assert distinct_of(project, stream)(column) == number


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("k = 5", 1 / 1000),
        ("k <> 5", 999 / 1000),
        ("k IN (1, 2, 3)", 3 / 1000),
        ("ok IN (TRUE, FALSE)", 1.0),
        ("n > 5", 1 / 3),
        ("n BETWEEN 1 AND 5", 1 / 9),
        ("k = n", 1 / 1000),
        ("name LIKE 'a%'", 1 / 10),
        ("name IS NULL", 1 / 20),
        ("name IS NOT NULL", 19 / 20),
        ("ok", 1 / 3),
        ("k = 5 AND n > 5", 1 / 3000),
        ("k = 5 OR n > 5", 1 - 999 / 1000 * 2 / 3),
        ("NOT (k = 5)", 999 / 1000),
    ],
)
def test_part_of_the_rows(project: Project, condition: str, part: float) -> None:
    plan = bind(project, Query(name="q", sql=f"SELECT ts FROM files WHERE {condition}"))
    (found,) = (node for node in nodes(plan) if isinstance(node, Filter))
    assert share((found.predicate,), distinct_of(project, "files")) == pytest.approx(part)


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        ("k", 1000),
        ("k, n", 1000 * GUESS),
        ("k % 10", 10),
        ("k + n", 1000 * GUESS),
        ("ok", 2),
        ("k > 5", 2),
        ("CASE WHEN n > 5 THEN 'high' WHEN n > 2 THEN 'middle' ELSE 'low' END", 3),
        ("CASE WHEN n > 5 THEN 'high' END", 2),
    ],
)
def test_groups(project: Project, keys: str, number: float) -> None:
    sql = f"SELECT count(*) AS c FROM files GROUP BY window(ts, '1 minute'), {keys}"
    member = member_of(project, Query(name="q", sql=sql))
    assert not isinstance(member, str), member
    assert groups(member.keys, distinct_of(project, "files")) == number


def test_no_keys_are_one_group(project: Project) -> None:
    assert groups((), distinct_of(project, "files")) == 1


def test_any_of_several(project: Project) -> None:
    assert any_share([0.5, 0.5]) == 0.75
    assert any_share([]) == 0


def test_the_rate_source_knows_its_rate() -> None:
    assert expected_rate(STREAMS["endless"]) == 10.0
    given = type(STREAMS["endless"]).model_validate({**STREAMS["endless"].model_dump(), "rate": 7.0})
    assert expected_rate(given) == 7.0
    assert expected_rate(STREAMS["files"]) == 1000.0
