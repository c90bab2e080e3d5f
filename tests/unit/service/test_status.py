"""The status of what is spread over sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.status_text import print_status
from headrace.service.status import status_of
from tests.unit.service.spread_world import World


def test_what_makes_streams_is_told_with_them_and_their_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.run()
    found = status_of(world.project, lambda _: {})
    makers = {maker.id: maker for maker in world.plan.makers}
    rows = {job["job"]: job for job in found["jobs"] if job["kind"] == "part"}
    assert set(rows) == set(makers) != set()
    for name, row in rows.items():
        assert row["makes"] == makers[name].writes and row["queries"]
    # By hand: `pair` and `other` are joins of a and b, `counted` is fed by a filter of a; `near` stays whole.
    assert {query for row in rows.values() for query in row["queries"]} == {"pair", "other", "counted"}
    assert all(job["makes"] is None for job in found["jobs"] if job["kind"] != "part")
    monkeypatch.setenv("COLUMNS", "400")
    print_status(found)
    shown = capsys.readouterr().out
    assert "()" not in shown
    for name, row in rows.items():
        assert f"{name} (makes {row['makes']} for {', '.join(row['queries'])})" in shown
