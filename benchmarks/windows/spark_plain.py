"""(a) Plain Spark: one streaming query each, all in one session, as an experienced user sets it up.

Shuffle partitions as many as cores, no UI, AvailableNow, Parquet sink, checkpoints. Empty batches at the end
are left on, since they give the windows that the last rows have closed. Nothing moves the watermark past the
last row: the last windows stay open, which is work that only this engine is spared.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.windows.spec import NONE, Report, RunSpec, given
from benchmarks.windows.workloads import KEY, TIME, WATERMARK_SECONDS, WindowQuery

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_SCHEMA = "ts TIMESTAMP, k INT, v DOUBLE, w DOUBLE"


def session(spec: RunSpec) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{spec.cores}]").appName("plain")
    settings = {
        "spark.driver.memory": spec.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(spec.cores),
        "spark.sql.session.timeZone": "UTC",
        # The default polls an idle source a hundred times a second, for every query.
        "spark.sql.streaming.pollingDelay": "50ms",
        # The default starts processes for each file of a checkpoint; Headrace sets the same.
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.warehouse.dir": str(spec.folder / "warehouse"),
    }
    if spec.store == "rocksdb":
        settings["spark.sql.streaming.stateStore.providerClass"] = _ROCKSDB
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def _aggregate(function: str, column: str) -> str:
    return "count(*)" if function == "count" else f"{function}({column})"


def frame(spark: Any, spec: RunSpec, query: WindowQuery) -> Any:
    from pyspark.sql import functions as f

    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", spec.files_per_batch)
    rows = reader.parquet(spec.parquet).withWatermark(TIME, f"{WATERMARK_SECONDS} seconds")
    window = f.window(TIME, f"{query.range} seconds", f"{query.slide} seconds")
    pairs = zip(query.columns, query.aggregates, strict=True)
    wanted = [f.expr(f"{_aggregate(*pair)} AS {name}") for name, pair in pairs]
    grouped = rows.groupBy(window, KEY).agg(*wanted)
    return grouped.select(f.col("window.end").alias("window_end"), KEY, *query.columns)


def start(spark: Any, spec: RunSpec, query: WindowQuery, checkpoint: Path) -> Any:
    writer = frame(spark, spec, query).writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint)).queryName(query.name)
    if spec.sink == NONE:
        return writer.format("noop").start()
    return writer.format("parquet").option("path", str(spec.results(query.name))).start()


def main() -> None:
    began, spec, report = time.perf_counter(), given(), Report()
    spark = session(spec)
    report.ready = time.perf_counter() - began
    checkpoints = {query.name: spec.folder / "checkpoints" / query.name for query in spec.queries}
    running = [start(spark, spec, query, checkpoints[query.name]) for query in spec.queries]
    for query in running:
        query.awaitTermination()
    report.seconds = time.perf_counter() - began - report.ready
    operators = [op for query in running if query.lastProgress for op in query.lastProgress["stateOperators"]]
    report.state_rows = sum(op["numRowsTotal"] for op in operators)
    report.state_memory = sum(op["memoryUsedBytes"] for op in operators)
    report.checkpoints = [str(path) for path in checkpoints.values()]
    spark.stop()
    report.write(spec.folder)


if __name__ == "__main__":
    main()
