"""The same job over Spark Connect, beside a classic session in the same process."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from headrace.catalog.model import SinkKind
from headrace.errors import UserError
from headrace.plan.placed import Job
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.java import find_java
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from tests.spark.harness import context_of, drain, with_files, write_batches
from tests.spark.plans import SHAPES, STREAM, random_batches

pytestmark = pytest.mark.spark


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A local Spark Connect server on a port of its own; stopped by its process id."""
    home, port = Path(pyspark.__file__).parent, free_port()
    folder = tmp_path_factory.mktemp("server")
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    confs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *confs, "--class", main]
    environ = dict(os.environ, SPARK_HOME=str(home), JAVA_HOME=str(find_java(os.environ).home))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"], env=environ, cwd=folder, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 90
        while not answers(port):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[
                -2000:
            ]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="module")
def remote(server: str, executor: SparkExecutor) -> Iterator[SparkExecutor]:
    """Closed before the server is; the process keeps its classic session beside it."""
    spark = SparkExecutor(os.environ)
    yield spark
    spark.close()


@pytest.mark.parametrize("shape", ["aggregate", "join_then_window"])
def test_a_job_over_connect_equals_the_reference(
    shape: str, server: str, remote: SparkExecutor, tmp_path: Path
) -> None:
    plan, batches = SHAPES[shape], random_batches(seed=21)
    write_batches(tmp_path / "in", batches)
    streams = {"s": with_files(STREAM, tmp_path / "in")}
    context = context_of(tmp_path, streams, {}, name=f"remote_{shape}", endpoint=server)
    progress = drain(remote, plan, context, f"remote_{shape}")
    got = read_results(context.results, SinkKind.PARQUET, plan.schema)
    expected = evaluate(plan, {"s": pa.concat_tables(batches)})
    difference = multiset_difference(expected, got)
    assert not difference, difference.text()
    assert progress.output_rows == expected.num_rows > 0


def test_no_server_is_said_without_the_token(executor: SparkExecutor, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    endpoint = f"sc://127.0.0.1:{free_port()}/;token=s3cret"
    context = context_of(tmp_path, {"s": with_files(STREAM, tmp_path / "in")}, {}, endpoint=endpoint)
    with pytest.raises(UserError, match="no Spark Connect server answers") as caught:
        executor.start(Job("q", "q", "local", SHAPES["aggregate"]), context, drain=True)
    assert "s3cret" not in caught.value.render()
