"""One Spark session for all tests of a process; no test fails for being slow on a busy machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from headrace.runtime.spark.executor import SparkExecutor

settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")


@pytest.fixture(scope="session")
def executor() -> Iterator[SparkExecutor]:
    spark = SparkExecutor(os.environ)
    yield spark
    spark.close()
