"""Counts, exactly, the rows that came too late.

A row is late for a window when the window was given before the row came, and late for a join when the
watermark had passed its time. Spark drops it there and reports a number, but after partial aggregation:
many rows may count as one. So where Spark says that a batch dropped anything (or where we cannot know,
because we died before hearing of the batch) the batch's own files are read again and counted by the same
rule that Spark drops by: the watermark in force was that of the batch before.

A file that the user has taken away since is not counted: the number is then too low, and the job goes on.

A row that missed at least one of its windows counts once, whatever windows it still reached.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.catalog.model import Stream
from headrace.plan import logical as lp
from headrace.runtime.files import write_json
from headrace.runtime.spark.checkpoint import batch_files, read_batch
from headrace.runtime.spark.compile import Compiler, is_stateful
from headrace.runtime.spark.session import Session
from headrace.runtime.spark.sources import batch_reader, belongs, file_source
from headrace.runtime.sqltext import SparkWriter

_SQL = SparkWriter()
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class LatePoint:
    """Where rows of a stream meet the first operator that can find them late."""

    rows: lp.LogicalPlan
    time: str
    spec: lp.WindowSpec | None
    """None: a join, which asks for the row's own time."""

    def condition(self, watermark: int) -> str:
        micros = f"unix_micros({_SQL.name(self.time)})"
        if self.spec is None:
            return f"{micros} <= {watermark}"
        # The first window that holds the row ends at the first multiple of slide above ts - range, + range.
        before = f"({micros} - {self.spec.range})"
        start = f"({before} - pmod({before}, {self.spec.slide}) + {self.spec.slide})"
        return f"{start} + {self.spec.range} <= {watermark}"


def late_points(plan: lp.LogicalPlan) -> tuple[LatePoint, ...]:
    points: list[LatePoint] = []
    for node in lp.nodes(plan):
        match node:
            case lp.Window() if not is_stateful(node.input):
                points.append(LatePoint(node.input, node.time, node.spec))
            case lp.IntervalJoin():
                sides = (side for side in node.inputs if not is_stateful(side))
                points += [LatePoint(side, side.times[0], None) for side in sides]
    return tuple(dict.fromkeys(points))


class LateCounter:
    """The running number of late rows of one job, kept beside its checkpoint."""

    def __init__(
        self,
        session: Session,
        plan: lp.LogicalPlan,
        streams: Mapping[str, Stream],
        *,
        state: Path,
        root: Path,
        generated: Path,
        views: Mapping[lp.StreamScan | lp.TableScan, str],
        points: tuple[LatePoint, ...] | None = None,
        ledger: str = "late.json",
    ) -> None:
        """`points`: where to count; None: wherever rows of the plan can be found late."""
        self._session, self._streams = session, streams
        self._points = late_points(plan) if points is None else points
        self._checkpoint = state / "checkpoint"
        self._ledger = state / ledger
        self._root, self._generated, self._views = root, generated, views
        # Several jobs count at once, each in its own thread.
        self._own = f"hr_late_{next(_numbers)}"
        self.batch, self.total = self._load()

    def _load(self) -> tuple[int, int]:
        if not self._ledger.exists():
            return -1, 0
        data = json.loads(self._ledger.read_text(encoding="utf-8"))
        return int(data["batch"]), int(data["total"])

    def heard(self, batch: int, dropped: bool) -> None:
        """Spark has committed `batch`, and says whether it dropped anything in it."""
        if batch <= self.batch:
            return
        for missed in range(self.batch + 1, batch):
            self.total += self._count(missed)
        if dropped:
            self.total += self._count(batch)
        self.batch = batch
        write_json(self._ledger, {"batch": batch, "total": self.total})

    def _count(self, batch: int) -> int:
        before = read_batch(self._checkpoint, batch - 1)
        if before is None and batch > 0:
            return 0
        # Spark's watermark starts at the epoch, so older rows are late from the beginning.
        watermark = 0 if before is None else before.watermark
        files = batch_files(self._checkpoint, batch)
        return sum(self._count_at(point, files, watermark) for point in self._points)

    def _count_at(self, point: LatePoint, files: list[Path], watermark: int) -> int:
        views: dict[lp.StreamScan | lp.TableScan, str] = {}
        for node in lp.nodes(point.rows):
            if isinstance(node, lp.StreamScan):
                views[node] = f"{self._own}_{node.stream}"
                if not self._register(node, files, views[node]):
                    return 0
            elif isinstance(node, lp.TableScan):
                views[node] = self._views[node]
        rows = Compiler(views.__getitem__).query(point.rows)
        counted = self._session.sql(f"SELECT count(*) FROM ({rows}) WHERE {point.condition(watermark)}")
        return int(counted.collect()[0][0])

    def _register(self, scan: lp.StreamScan, files: list[Path], name: str) -> bool:
        """A batch view of the stream's rows in these files; False when none of them is the stream's."""
        stream = self._streams[scan.stream]
        source = file_source(stream, self._root, self._generated)
        if source is None:
            return False
        mine = [f for f in files if belongs(f, source) and f.exists()]
        if not mine:
            return False
        reader = batch_reader(self._session, source, stream.schema_, mine)
        # These are names, not patterns, whatever characters they have.
        rows = reader.option("__globPaths__", "false").load([str(file) for file in mine])
        rows.where(f"{_SQL.name(scan.time)} IS NOT NULL").createOrReplaceTempView(name)
        return True
