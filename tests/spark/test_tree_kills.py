"""Two of the kill -9 rounds of trees; `python -m tests.trees_check --kills 30` runs any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills_trees import run_round

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("seed", "changes"), [(1, False), (2, True)])
def test_killed_and_started_again_every_answer_is_whole(tmp_path: Path, seed: int, changes: bool) -> None:
    outcome = run_round(tmp_path / "project", seed, kills=2, changes=changes)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.kills == 2 and outcome.rows > 500
