"""The baseline: the three queries by hand, in Spark's DataFrame API, as an experienced user writes them.

Same files, same number of files a batch, same watermarks, Parquet sink, checkpoint, AvailableNow trigger.
Spark's session is the one that Headrace opened, so every setting of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.workload import FILES_PER_BATCH, JOIN, SLIDING, TUMBLING, WATERMARK

READINGS = "ts TIMESTAMP, device INT, value DOUBLE"
ALARMS = "ts TIMESTAMP, device INT, level INT"


def _stream(spark: SparkSession, schema: str, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH)
    return reader.parquet(str(folder)).withWatermark("ts", WATERMARK)


def tumbling_count(spark: SparkSession, data: Path) -> DataFrame:
    counted = (
        _stream(spark, READINGS, data / "readings")
        .groupBy(f.window("ts", "10 seconds"), "device")
        .agg(f.count("*").alias("readings"))
    )
    return _with_window(counted, "device", "readings")


def sliding_avg(spark: SparkSession, data: Path) -> DataFrame:
    means = (
        _stream(spark, READINGS, data / "readings")
        .groupBy(f.window("ts", "60 seconds", "6 seconds"), "device")
        .agg(f.avg("value").alias("mean"))
    )
    return _with_window(means, "device", "mean")


def _with_window(rows: DataFrame, *columns: str) -> DataFrame:
    start, end = f.col("window.start").alias("window_start"), f.col("window.end").alias("window_end")
    return rows.select(start, end, *columns)


def interval_join(spark: SparkSession, data: Path) -> DataFrame:
    alarms = _stream(spark, ALARMS, data / "alarms").alias("a")
    readings = _stream(spark, READINGS, data / "readings").alias("r")
    near = f.expr("r.device = a.device AND r.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts")
    return alarms.join(readings, near).select(
        f.col("a.ts").alias("alarm_ts"), f.col("r.ts").alias("ts"), "a.device", "a.level", "r.value"
    )


QUERIES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    TUMBLING: tumbling_count,
    SLIDING: sliding_avg,
    JOIN: interval_join,
}


def run(spark: SparkSession, query: str, data: Path, output: Path, checkpoint: Path) -> None:
    """Run one query over all the input there is. Raises where Spark does."""
    rows = QUERIES[query](spark, data)
    writer = rows.writeStream.outputMode("append").format("parquet").option("path", str(output))
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    running.awaitTermination()
