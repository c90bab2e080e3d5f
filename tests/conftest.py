"""One Spark session for all tests of a process; no test fails for being slow on a busy machine.

Profiles of hypothesis: `make check` has `light`, a few examples of each search; `make deep` makes the same
searches with all of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from headrace.runtime.spark.executor import SparkExecutor

settings.register_profile("headrace", deadline=None)
settings.register_profile("light", deadline=None, max_examples=25)
settings.load_profile("headrace")


@pytest.fixture(scope="session")
def executor() -> Iterator[SparkExecutor]:
    # Imported only now: every worker of `make check` reads this file, and none of them needs pyspark.
    from headrace.runtime.spark.executor import SparkExecutor

    spark = SparkExecutor(os.environ)
    yield spark
    spark.close()
