from __future__ import annotations

from headrace.runtime.executor import JobState, Progress
from headrace.service.run import Outcome, Snapshot, Watched
from headrace.service.view import count_states, job_rows, rows_read, run_data, total_share


def _snapshot(*jobs: Progress | None) -> Snapshot:
    return Snapshot(tuple(Watched(f"q{i}", "local", p) for i, p in enumerate(jobs)), 12.3456)


def test_a_row_says_what_was_seen_and_what_was_not() -> None:
    seen = Progress(
        "q0", JobState.RUNNING, batch=3, input_rows=250, input_total=1000, lag=2_500_000, watermark=60_000_000
    )
    row, waiting = job_rows(_snapshot(seen, None))
    assert (row["state"], row["share"], row["lag_seconds"]) == ("running", 0.25, 2.5)
    assert row["watermark"] == "1970-01-01 00:01:00"
    assert (waiting["state"], waiting["batch"], waiting["share"], waiting["lag_seconds"]) == (
        "waiting",
        None,
        None,
        None,
    )


def test_rows_of_earlier_starts_count() -> None:
    [row] = job_rows(
        _snapshot(Progress("q0", JobState.RUNNING, input_rows=100, input_before=400, input_total=1000))
    )
    assert (row["input_rows"], row["share"]) == (500, 0.5)


def test_a_share_is_never_more_than_all() -> None:
    seen = Progress("q0", JobState.RUNNING, input_rows=1001, input_total=1000)
    assert job_rows(_snapshot(seen))[0]["share"] == 1.0


def test_the_whole_share() -> None:
    half = Progress("q0", JobState.RUNNING, input_rows=5, input_total=10)
    done = Progress("q1", JobState.FINISHED)
    endless = Progress("q2", JobState.RUNNING, input_rows=5)
    assert total_share(job_rows(_snapshot(half, done, None, None))) == 1.5 / 4
    assert total_share(job_rows(_snapshot(half, endless))) is None
    assert total_share([]) is None


def test_states_are_counted_in_the_order_of_life() -> None:
    rows = job_rows(
        _snapshot(Progress("q0", JobState.FINISHED), None, Progress("q2", JobState.RUNNING), None)
    )
    assert list(count_states(rows).items()) == [("waiting", 2), ("running", 1), ("finished", 1)]


def test_the_outcome_as_data() -> None:
    failed = Progress("q0", JobState.FAILED, error="no room")
    data = run_data(Outcome(_snapshot(failed), (("q0", "no room"),), False, True))
    assert (data["exit_code"], data["failures"], data["seconds"]) == (1, {"q0": "no room"}, 12.346)
    assert data["jobs"][0]["error"] == "no room"


def test_a_member_of_a_tree() -> None:
    seen = Progress("q0", JobState.RUNNING, input_rows=100, valid_from=60_000_000)
    rows = job_rows(
        Snapshot(
            (
                Watched("q0", "local", seen, "tree-1"),
                Watched("q1", "local", seen, "tree-1"),
                Watched("q2", "local", seen),
            ),
            1.0,
        )
    )
    assert [(row["tree"], row["valid_from"]) for row in rows][::2] == [
        ("tree-1", "1970-01-01 00:01:00"),
        (None, "1970-01-01 00:01:00"),
    ]
    assert rows_read(rows) == 200, "what a tree reads counts once"
