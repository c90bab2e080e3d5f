"""What Spark calls with each micro-batch of a federated job.

The function knows a folder and a text, and finds everything else by them: it works in the process that
started the job and in a Python worker beside a Spark Connect server. The window tables live in whatever
process it runs in, for as long as that lives and no batch fails; they are made again from what is on disk.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.catalog.model import Table
from headrace.errors import EngineError, HeadraceError
from headrace.plan import logical as lp
from headrace.plan.data import from_data, to_data
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.federated_parts import Part
from headrace.runtime.duckdb.load import load_table
from headrace.runtime.duckdb.window_sql import Ends
from headrace.runtime.federated.engine import Federation, Rows
from headrace.runtime.federated.ledger import Ledger
from headrace.runtime.federated.program import Program, program_of
from headrace.runtime.results import conform, zoned
from headrace.runtime.spark.checkpoint import read_batch
from headrace.runtime.spark.federated_compile import BatchCompiler, View, untagged
from headrace.runtime.spark.session import Session

_numbers = itertools.count()


@dataclass(slots=True)
class _Open:
    program: Program
    federation: Federation
    tables: dict[str, pa.Table]
    epoch: int
    """The start that they were opened by."""


_OPEN: dict[str, _Open] = {}
"""By folder: the window tables of the jobs whose batches this process does."""


def forget(folder: Path) -> None:
    """Let go of a job's window tables, if they are here, once the batch that is being done with them has
    ended."""
    if str(folder) in _OPEN:
        with Ledger(folder).alone():
            _drop(str(folder))


def _drop(folder: str) -> None:
    held = _OPEN.pop(folder, None)
    if held is not None:
        held.federation.close()


def to_text(job: FederatedJob, tables: Mapping[str, Table], root: Path, checkpoint: Path, epoch: int) -> str:
    """All that the function has to know, as JSON. `epoch` is the start that it belongs to."""
    members = [
        {"query": m.query, "plan": to_data(m.plan), "engines": list(m.engines), "after": m.after}
        for m in job.members
    ]
    read = {name for member in job.members for name in lp.tables_of(member.plan)}
    return json.dumps(
        {
            "id": job.id,
            "site": job.site,
            "members": members,
            "tables": [table.model_dump(mode="json") for name, table in tables.items() if name in read],
            "root": str(root),
            "checkpoint": str(checkpoint),
            "epoch": epoch,
        }
    )


class BatchFunction:
    """For `foreachBatch`; pickled where Spark Connect wants it elsewhere."""

    def __init__(self, folder: Path, text: str) -> None:
        self._folder, self._text = str(folder), text

    def __call__(self, frame: Session, number: int) -> None:
        data = json.loads(self._text)
        planned = read_batch(Path(data["checkpoint"]), number)
        if planned is None:
            raise EngineError(
                f"the checkpoint of the job is not here: {data['checkpoint']}",
                hint="A remote Spark must see the project folder under the same path.",
            )
        ledger = Ledger(Path(self._folder))
        with ledger.alone():
            if ledger.epoch() != data["epoch"]:
                raise EngineError("the job was started again; this is an earlier start of it")
            try:
                self._do(self._opened(data), frame, number, planned.watermark)
            except BaseException as error:
                _drop(self._folder)
                if isinstance(error, HeadraceError):
                    ledger.fail(error.render())
                raise

    @staticmethod
    def _do(held: _Open, frame: Session, number: int, watermark: int) -> None:
        held.federation.on_spark = _Parts(frame.sparkSession, held.tables)
        if number > held.federation.done.batch:
            fed = untagged(frame.toArrow(), held.program.feeds)
            held.federation.batch(number, watermark, fed)
        else:
            # It was done, and Spark, which did not get to write that down, has the batch again. Its rows are
            # not needed, but its plan must run: only then does Spark's own state have the version that the
            # next batch goes on from, and the watermark what these rows have moved it to.
            frame.write.format("noop").mode("overwrite").save()

    def _opened(self, data: Any) -> _Open:
        held = _OPEN.get(self._folder)
        if held is not None and held.epoch != data["epoch"]:
            # Of an earlier start here: the job may have been elsewhere since, and be further.
            _drop(self._folder)
        if self._folder not in _OPEN:
            members = tuple(
                FederatedMember(
                    m["query"], from_data(m["plan"]), tuple(map(Engine, m["engines"])), after=m["after"]
                )
                for m in data["members"]
            )
            program = program_of(FederatedJob(data["id"], data["site"], members))
            catalog = [Table.model_validate(table) for table in data["tables"]]
            tables = {t.name: conform(load_table(t, Path(data["root"])), t.schema_) for t in catalog}
            federation = Federation(program, Path(self._folder), tables, _nowhere)
            _OPEN[self._folder] = _Open(program, federation, tables, data["epoch"])
        return _OPEN[self._folder]


def _nowhere(part: Part, rows: Rows, ends: Ends | None) -> pa.Table:
    raise EngineError("no Spark session for a part on Spark")


class _Parts:
    """Does parts on Spark, as batches of one session."""

    def __init__(self, session: Session, tables: Mapping[str, pa.Table]) -> None:
        self._session, self._tables = session, tables

    def __call__(self, part: Part, rows: Rows, ends: Ends | None) -> pa.Table:
        names: list[str] = []

        def offered(table: pa.Table) -> str:
            names.append(f"hr_part_{next(_numbers)}")
            self._session.createDataFrame(zoned(table)).createOrReplaceTempView(names[-1])
            return names[-1]

        try:
            given = {node: View(offered(table), tuple(table.column_names)) for node, table in rows.items()}
            views: dict[str, str] = {}

            def view_of(scan: lp.StreamScan | lp.TableScan) -> str:
                if isinstance(scan, lp.StreamScan):
                    raise EngineError("a part above DuckDB reads a stream by itself")
                if scan.table not in views:
                    views[scan.table] = offered(self._tables[scan.table])
                return views[scan.table]

            text = BatchCompiler(given, view_of, ends).query(part.root)
            answer: pa.Table = self._session.sql(text).toArrow()
            return answer
        finally:
            for name in names:
                self._session.catalog.dropTempView(name)
