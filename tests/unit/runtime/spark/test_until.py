"""The last window of a member of a split job: told again after a crash, never changed when it is past."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import FileSource, Format, Query, Sink, SinkKind, Stream
from headrace.errors import InternalError
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.plan.types import DataType
from headrace.rewrite.driver import rewrite
from headrace.runtime.executor import JobContext
from headrace.runtime.federated.ledger import Done, Ledger
from headrace.runtime.spark.federated import FederatedRun
from headrace.sql.bind import bind_query
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


_WINDOW = "window_start, window_end, k, count(*) AS n"
_HOUR = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"
_THREE = f"a JOIN b ON {_HOUR} JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts - INTERVAL 10 MINUTES AND b.ts"


def _counts(time: str, joined: str, more: str = "") -> str:
    rows = f"SELECT {time} AS t, a.k AS k FROM {joined} {more}"
    return f"WITH j AS ({rows}) SELECT {_WINDOW} FROM j GROUP BY window(t, '1 minute', '1 minute'), k"


_TWO = f"a JOIN b ON {_HOUR}"
_BESIDE = (
    f"SELECT x.window_start, x.window_end, x.k, x.n, y.n AS m FROM ({_counts('a.ts', _TWO)}) AS x "
    f"JOIN (SELECT {_WINDOW} FROM c [RANGE 2 MINUTES SLIDE 1 MINUTE] GROUP BY k) AS y "
    "ON x.k = y.k AND x.window_end = y.window_end"
)


@pytest.mark.parametrize(
    ("sql", "held"),
    [
        (f"SELECT {_WINDOW} FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k", 60),
        (_counts("a.ts", _TWO), 3660),
        # Spark goes by both sides, also where the time that is used is never behind.
        (_counts("b.ts", _TWO), 3660),
        # c is within an hour of a, too, and a is what the upper join goes by.
        (_counts("a.ts", _THREE), 3660 + 3600),
        (_BESIDE, 3600 + 120),
        # A condition that Spark takes for a bound, though it is about no event time of the other side.
        (_counts("a.ts", _TWO, "WHERE b.made >= a.ts - INTERVAL 2 HOURS"), 3660 + 7200),
    ],
)
def test_spark_alone_has_given_windows_when_the_joins_below_are_through(
    tmp_path: Path, sql: str, held: int
) -> None:
    """Above a join of streams Spark's watermark is behind by the join's bounds: a job that ended before would
    leave windows to nobody."""
    columns = {"ts": DataType.TIMESTAMP, "k": DataType.INT, "made": DataType.TIMESTAMP}
    streams = {
        name: Stream(
            name=name, columns=columns, time="ts", source=FileSource(path=name, format=Format.PARQUET)
        )
        for name in "abc"
    }
    plan = rewrite(bind_query(Query(name="q", sql=sql), streams, {}))
    member = FederatedMember("q", plan, (Engine.SPARK,) * len(operators(plan)))
    sink = Sink(kind=SinkKind.MEMORY)
    context = JobContext(streams, {}, sink, tmp_path, tmp_path / "state", tmp_path / "results", "local")
    job, ledger = FederatedJob("j", "local", (member,)), Ledger(tmp_path / "state" / "federated")
    ledger.make()

    def is_past(given: int) -> bool:
        ledger.write_done(Done(batch=3, given=given))
        return FederatedRun(job, context, {"q": context}, drain=False)._is_past()

    ledger.write_until({"q": START})
    assert not is_past(START + held * SECOND - SECOND)
    assert is_past(START + held * SECOND + SECOND)
