"""Two of the kill -9 rounds that `make soak` runs by the dozen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills import run_round

pytestmark = pytest.mark.spark


def test_killed_twice_and_resumed_the_output_is_exact(tmp_path: Path) -> None:
    outcome = run_round(tmp_path / "project", seed=11, kills=2)
    assert outcome.kills == 2
    assert outcome.rows > 300
    assert not outcome.problems, "\n".join(outcome.problems)
