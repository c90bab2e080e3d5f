"""The Python of Spark's workers: what it finds, and whose choice it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from headrace.runtime.spark.interpreter import worker_python

_TOLD = "import json, sys, pyspark; print(json.dumps([pyspark.__file__, sys.argv[1:], sys.path, sys.prefix]))"


def _run(python: str, *paths: Path) -> tuple[str, list[str], list[str], str]:
    found = subprocess.run(
        [python, "-c", _TOLD, "a b", "*"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        check=True,
        capture_output=True,
        text=True,
    )
    file, arguments, path, prefix = json.loads(found.stdout)
    return file, arguments, path, prefix


@pytest.fixture
def sparks(tmp_path: Path) -> Path:
    """A zip as Spark puts it before all else, with a pyspark in it."""
    found = tmp_path / "a home" / "python" / "lib" / "pyspark.zip"
    found.parent.mkdir(parents=True)
    with zipfile.ZipFile(found, "w") as out:
        out.writestr("pyspark/__init__.py", "")
    return found


def test_workers_take_the_pyspark_that_is_installed(
    tmp_path: Path, sparks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    mine, jar = tmp_path / "my own", tmp_path / "jars" / "spark-core_2.13-4.3.0.jar"
    py4j = sparks.with_name("py4j-0.10.9.9-src.zip")
    python = worker_python(tmp_path / "site1", os.environ)
    file, arguments, path, prefix = _run(python, sparks, py4j, jar, mine)
    import pyspark

    assert file == pyspark.__file__ and prefix == sys.prefix
    assert arguments == ["a b", "*"]
    assert str(mine) in path and not {str(sparks), str(py4j), str(jar)} & set(path)
    # Without the script, it is Spark's.
    assert _run(sys.executable, sparks, py4j)[0].startswith(str(sparks))


def test_a_python_that_was_chosen_stays(tmp_path: Path) -> None:
    assert worker_python(tmp_path, {"PYSPARK_PYTHON": "/opt/python"}) == "/opt/python"
    assert not list(tmp_path.iterdir())


def test_without_a_script_where_none_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert worker_python(tmp_path, {}) == sys.executable
