"""More days of two regions (tests/unit/service/test_two_tiers.py): other patterns, kills at many steps."""

from __future__ import annotations

import pytest

from tests.unit.service.test_two_tiers import checked_day, killed_day


@pytest.mark.parametrize("pattern", ["grouping", "ours"])
def test_days(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked_day(pattern, monkeypatch)


@pytest.mark.parametrize("kill_at", [0, 5, 17, 60, 130, 230, 470, 800, 1200])
def test_kills(kill_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_day(kill_at, monkeypatch)
