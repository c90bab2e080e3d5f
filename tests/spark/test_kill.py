"""Two of the kill -9 rounds that `make soak` runs by the dozen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills import lose_engine, run_round

pytestmark = pytest.mark.spark


def test_killed_twice_and_resumed_the_output_is_exact(tmp_path: Path) -> None:
    outcome = run_round(tmp_path / "project", seed=11, kills=2)
    assert outcome.kills == 2
    assert outcome.rows > 300
    assert not outcome.problems, "\n".join(outcome.problems)


def test_a_run_whose_jvm_is_killed_starts_another_and_goes_on(tmp_path: Path) -> None:
    outcome = lose_engine(tmp_path / "project", seed=12, times=2)
    assert outcome.kills == 2
    assert outcome.rows > 300
    assert not outcome.problems, "\n".join(outcome.problems)
