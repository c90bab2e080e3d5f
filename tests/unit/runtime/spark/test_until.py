"""The last window of a member of a split job: told again after a crash, never changed when it is past."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Sink, SinkKind
from headrace.errors import InternalError
from headrace.runtime.executor import JobContext
from headrace.runtime.federated.ledger import Done, Ledger
from headrace.runtime.spark.federated import FederatedRun
from tests.federated_cases import CQ1, FILTERS, SECOND, START, STREAMS, TABLES, job_of


def run_in(folder: Path) -> FederatedRun:
    sink = Sink(kind=SinkKind.MEMORY)
    context = JobContext(STREAMS, TABLES, sink, folder, folder / "state", folder / "results", "local")
    job = job_of({"q": (CQ1, FILTERS), "r": (CQ1, FILTERS)})
    return FederatedRun(job, context, {"q": context, "r": context}, drain=False)


def test_a_last_window_may_be_told_twice_and_not_changed(tmp_path: Path) -> None:
    end, ledger = START + 20 * SECOND, Ledger(tmp_path / "state" / "federated")
    ledger.make()
    with pytest.raises(InternalError, match="no member"):
        run_in(tmp_path).set_until(["other"], end)
    run_in(tmp_path).set_until(["q"], end)
    ledger.write_done(Done(batch=3, given=end + 5 * SECOND))
    # Another process, after a crash.
    run_in(tmp_path).set_until(["q"], end)
    with pytest.raises(InternalError, match="may have given"):
        run_in(tmp_path).set_until(["q"], end + SECOND)
    assert ledger.until() == {"q": end}


def test_members_are_bound_together_or_not_at_all(tmp_path: Path) -> None:
    """A batch came in between: were one of them bound, it would skip windows that nobody else gives."""
    end, ledger = START + 20 * SECOND, Ledger(tmp_path / "state" / "federated")
    ledger.make()
    with pytest.raises(InternalError, match="no member"):
        run_in(tmp_path).set_until(["q", "other"], end)
    ledger.write_done(Done(batch=3, given=end + SECOND))
    with pytest.raises(InternalError, match="may have given windows of q, r"):
        run_in(tmp_path).set_until(["q", "r"], end)
    assert ledger.until() == {}
    run_in(tmp_path).set_until(["q", "r"], end + SECOND)
    assert ledger.until() == {"q": end + SECOND, "r": end + SECOND}
