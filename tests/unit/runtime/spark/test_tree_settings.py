"""A tree's settings are set for its start only; a site that goes away just then hides nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.errors import EngineError
from headrace.runtime.spark.job import JobRun
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.tree import TreeRun


class Conf:
    """Of a session whose server answers so many calls."""

    def __init__(self, calls: int) -> None:
        self.left, self.known = calls, dict[str, str]()

    def _call(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("UNAVAILABLE")

    def get(self, name: str, default: str | None) -> str | None:
        self._call()
        return self.known.get(name, default)

    def set(self, name: str, value: str) -> None:
        self._call()
        self.known[name] = value

    def unset(self, name: str) -> None:
        self._call()
        del self.known[name]


def started(conf: Conf, monkeypatch: pytest.MonkeyPatch, error: EngineError | None = None) -> object:
    def start(self: JobRun, session: Session) -> object:
        if error is not None:
            raise error
        return "the query"

    monkeypatch.setattr(JobRun, "_start", start)
    run = TreeRun.__new__(TreeRun)
    run.tree = SimpleNamespace(id="tree-1")  # type: ignore[assignment]
    return run._start(SimpleNamespace(conf=conf))


def test_settings_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = Conf(1000)
    assert started(conf, monkeypatch) == "the query" and conf.known == {}


def test_a_query_that_runs_is_told_though_the_settings_cannot_be_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Conf(1000)
    started(calls, monkeypatch)
    needed = (1000 - calls.left) * 2 // 3
    assert started(Conf(needed), monkeypatch) == "the query"


def test_why_a_start_failed_is_not_hidden_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="no such column"):
        started(Conf(1000), monkeypatch, EngineError("no such column"))
    calls = Conf(1000)
    started(calls, monkeypatch)
    with pytest.raises(EngineError, match="no such column"):
        started(Conf((1000 - calls.left) * 2 // 3), monkeypatch, EngineError("no such column"))


def test_a_site_that_is_gone_before_the_start_is_an_error_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(EngineError, match=r"does not start tree-1") as found:
        started(Conf(1), monkeypatch)
    assert "UNAVAILABLE" in str(found.value.detail)
