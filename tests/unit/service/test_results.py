"""Results of a query that was added to a running tree are compared from the instant on that it is valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.service.changes import NewQuery, add_query
from headrace.service.layout import state_file
from headrace.service.project import open_project
from headrace.service.results import verify_results
from headrace.state.store import Seen, Store
from tests.unit.cli.entry import COUNTS, make_project, publish_counts

NOON = 1_714_564_800_000_000
"""2024-05-01 12:00:00, the start of the second window of COUNTS."""


def _valid_from(folder: Path, query: str, instant: int) -> None:
    with Store(state_file(open_project(folder))) as store:
        store.want(query, query, "local", "f", "running", "now")
        store.observe([Seen(query, "running", 1, 0, 0, 0, None, "", instant)], "now")


def test_windows_before_that_are_not_missed(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, COUNTS[1:])
    assert not verify_results(open_project(folder), "counts").equal
    _valid_from(folder, "counts", NOON)
    verdict = verify_results(open_project(folder), "counts")
    assert (verdict.equal, verdict.expected, verdict.published) == (True, 4, 4)
    assert verdict.valid_from == "2024-05-01 12:00:00"


@pytest.mark.parametrize("rows", [COUNTS, COUNTS[2:]], ids=["one too many", "one lost"])
def test_what_is_wrong_is_still_found(tmp_path: Path, rows: list[tuple[str, str, int, int, float]]) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, rows)
    _valid_from(folder, "counts", NOON)
    assert not verify_results(open_project(folder), "counts").equal


def test_a_query_that_does_not_give_its_windows_start(tmp_path: Path) -> None:
    """And has a HAVING: the windows are taken away below both."""
    folder = make_project(tmp_path / "p")
    sql = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k HAVING count(*) < 2"
    add_query(folder, NewQuery("few", sql, sink="json"))
    _valid_from(folder, "few", NOON)
    results = folder / "results" / "few"
    results.mkdir(parents=True)
    lines = [json.dumps({"k": k, "n": n}) for k, n in ((2, 1), (1, 1), (2, 1))]
    (results / "part-000000.json").write_text("\n".join(lines) + "\n")
    verdict = verify_results(open_project(folder), "few")
    assert (verdict.equal, verdict.expected) == (True, 3), verdict.difference
