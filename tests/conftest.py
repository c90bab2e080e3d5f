"""One Spark session for all tests of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from headrace.runtime.spark.executor import SparkExecutor


@pytest.fixture(scope="session")
def executor() -> Iterator[SparkExecutor]:
    spark = SparkExecutor(os.environ)
    yield spark
    spark.close()
