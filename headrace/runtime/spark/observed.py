"""What Spark's progress events add up to for one job."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from headrace.runtime.executor import JobState, Progress


def instant(text: str) -> int:
    """Microseconds since the epoch of Spark's ISO text."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def _input_rows(sources: Sequence[Mapping[str, Any]], marks: str) -> int:
    """Rows read, each stream once even where a query reads it several times; close marks do not count."""
    rows: dict[str, int] = {}
    for source in sources:
        name = unquote(str(source.get("description", "")))
        if marks not in name:
            rows[name] = max(rows.get(name, 0), int(source.get("numInputRows", 0)))
    return sum(rows.values())


class Observed:
    """Filled by the job's thread, read by anyone."""

    def __init__(self, job: str, marks: str) -> None:
        """`marks` is the folder of the job's close marks, whose rows do not count as input."""
        self._job, self._marks = job, marks
        self._lock = threading.Lock()
        self._unheard: list[tuple[int, bool]] = []
        self.state = JobState.STARTING
        self.batch: int | None = None
        self.input_rows = self.output_rows = self.late_rows = 0
        self.rows_per_second: float | None = None
        self.batch_millis: int | None = None
        self.state_rows: int | None = None
        self.state_bytes: int | None = None
        self.watermark: int | None = None
        self.newest: int | None = None
        self.totals: Mapping[str, int | None] = {}
        self.error = ""
        self.lost = False
        self.notes: tuple[str, ...] = ()

    @property
    def last_batch(self) -> int:
        """The newest batch; -1: none yet."""
        return -1 if self.batch is None else self.batch

    def take(self, event: Mapping[str, Any]) -> None:
        """One progress event; events come in order and may come again."""
        number = int(event["batchId"])
        with self._lock:
            again = self.batch is not None and number <= self.batch
            rows = _input_rows(event["sources"], self._marks)
            times = event.get("eventTime", {})
            if "watermark" in times:
                mark = instant(times["watermark"])
                self.watermark = mark if mark > 0 else self.watermark
            if "max" in times and not times["max"].startswith("9999"):
                self.newest = max(self.newest or 0, instant(times["max"]))
            # An idle trigger repeats the number of the last batch; only a batch that ran is news.
            if again or "addBatch" not in event.get("durationMs", {}):
                return
            self.batch = number
            self.input_rows += rows
            millis = int(event["durationMs"].get("triggerExecution", 0))
            self.batch_millis = millis
            if rows:
                self.rows_per_second = rows * 1000 / max(millis, 1)
            operators = event.get("stateOperators", [])
            self.state_rows = sum(int(o["numRowsTotal"]) for o in operators) if operators else None
            self.state_bytes = sum(int(o.get("memoryUsedBytes", 0)) for o in operators) or None
            dropped = any(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators)
            self._unheard.append((number, dropped))

    def unheard(self) -> list[tuple[int, bool]]:
        """Batches taken since the last call, each with whether Spark dropped rows in it."""
        with self._lock:
            fresh, self._unheard = self._unheard, []
            return fresh

    def progress(self) -> Progress:
        with self._lock:
            known = [n for n in self.totals.values() if n is not None]
            whole = sum(known) if known and len(known) == len(self.totals) else None
            open_ = self.newest is not None and self.watermark is not None
            lag = self.newest - self.watermark if open_ and self.newest and self.watermark else None
            return Progress(
                job=self._job,
                state=self.state,
                batch=self.batch,
                input_rows=self.input_rows,
                output_rows=self.output_rows,
                late_rows=self.late_rows,
                rows_per_second=self.rows_per_second,
                batch_millis=self.batch_millis,
                state_rows=self.state_rows,
                state_bytes=self.state_bytes,
                watermark=self.watermark,
                lag=max(lag, 0) if lag is not None else None,
                input_total=whole,
                error=self.error,
                lost=self.lost,
                notes=self.notes,
            )
