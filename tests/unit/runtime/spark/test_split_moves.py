"""What a split job does that is moved: who publishes, whose window tables are used, who is asked when its
site is lost."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import SinkKind
from headrace.errors import EngineError
from headrace.plan.federated import Engine
from headrace.runtime.executor import JobState
from headrace.runtime.federated.ledger import Done, Ledger
from headrace.runtime.spark.federated_batch import _OPEN, BatchFunction, forget, to_text
from headrace.runtime.spark.federated_publish import FederatedPublisher
from headrace.runtime.spark.sites import SitesExecutor
from headrace.runtime.spark.tree_publish import Reader
from tests.federated_cases import QUERIES, TABLES, answer, job_of, plan_of, readings

PLAN = plan_of(QUERIES["cq5"])
JOB = job_of({"q": (PLAN, (Engine.SPARK, Engine.DUCKDB, Engine.DUCKDB))})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "federated")
    made.make()
    return made


def test_two_runs_publish_once_and_do_not_disturb_each_other(tmp_path: Path, ledger: Ledger) -> None:
    """One was given up with its site and is about to end, while the next has begun."""
    results = tmp_path / "results"
    reader = Reader("q", lambda rows: rows, PLAN.schema, SinkKind.PARQUET, results, True, None)
    old, new = (FederatedPublisher("fed", ledger, tmp_path, {"q": reader}) for _ in range(2))
    rows = answer(PLAN, readings(1, 10))
    ledger.give("q", 0, rows)
    assert old.publish().batch == -1 and not list(results.glob("part-*")), "it is not complete"
    ledger.write_done(Done(batch=0))
    assert new.publish().batch == 0
    [given] = results.glob("part-*")
    given.unlink()  # Whoever reads the results has taken it away.
    ledger.give("q", 0, rows)  # As if the file had been seen by both.
    assert old.publish().batch == 0 and not list(results.glob("part-*"))
    assert ledger.given(0) == []


def test_the_window_tables_of_an_earlier_start_are_not_used(tmp_path: Path, ledger: Ledger) -> None:
    def opened(epoch: int) -> Any:
        text = to_text(JOB, TABLES, tmp_path, tmp_path / "checkpoint", epoch)
        return BatchFunction(ledger.folder, text)._opened(json.loads(text)).federation

    try:
        assert ledger.begin_epoch() == 1
        first = opened(1)
        assert opened(1) is first and first.done.batch == -1
        # It was moved, did a batch elsewhere, and has come back to this process.
        ledger.write_done(Done(batch=7))
        assert ledger.begin_epoch() == 2
        assert opened(2) is not first and opened(2).done.batch == 7
    finally:
        forget(ledger.folder)
    assert str(ledger.folder) not in _OPEN


class _Run:
    ended, state = False, JobState.RUNNING

    def stop(self) -> None:
        return None

    def set_until(self, queries: Collection[str], end: int) -> None:
        raise AssertionError("it is given up")

    def progress_of(self, query: str) -> str:
        return f"progress of {query}"


def test_a_split_job_is_given_up_with_its_site(tmp_path: Path) -> None:
    executor = SitesExecutor({}, fresh=lambda: "fresh")
    lost, other = _Run(), _Run()
    executor._jobs |= {"fed-1": lost, "fed-2": other}  # type: ignore[dict-item]
    # q has been handed over from the one to the other, p has not.
    executor._federated |= {"p": lost, "q": other}  # type: ignore[dict-item]
    executor._endpoint_of |= {"fed-1": "sc://a:1", "fed-2": "sc://b:1"}
    executor.leave("sc://a:1")
    for name in ("fed-1", "p"):
        assert executor.status(name) is JobState.FAILED and "lost" in executor.progress(name).error
    assert executor.progress("q") == "progress of q"  # type: ignore[comparison-overlap]
    assert executor.seen_until("fed-1") is None
    with pytest.raises(EngineError, match="was lost"):
        executor.set_until("fed-1", ["p"], 5)
    executor._jobs["fed-1"] = executor._federated["p"] = other  # type: ignore[assignment]
    assert executor.progress("p") == "progress of p", "it was started again"  # type: ignore[comparison-overlap]
    executor._jobs.clear()
    executor.close()
