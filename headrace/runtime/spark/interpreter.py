"""The Python that Spark runs its workers with.

Spark puts its own copy of pyspark, a zip without byte code, before everything on a worker's path, so that
each new process compiles what it imports: a second of a core. One such process is made whenever a job with
state in Python starts, and all of them where a site is new. The interpreter that we run with has the same
pyspark installed, compiled once. So workers get a small script for their Python, which takes Spark's copy off
the path.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.runtime.files import write_whole

_CHOICE = "PYSPARK_PYTHON"
_SCRIPT = """\
#!/bin/sh
# Python without the copies of pyspark and py4j that Spark puts first: they have no byte code.
set -f
kept=
IFS=:
for part in $PYTHONPATH; do
    case $part in
    */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip | */jars/spark-core_*.jar) ;;
    *) kept=${kept:+$kept:}$part ;;
    esac
done
PYTHONPATH=$kept
export PYTHONPATH
exec %s "$@"
"""


def worker_python(folder: Path, environ: Mapping[str, str]) -> str:
    """What Spark is to run its workers with: what the user chose, or our own interpreter, by a script in this
    folder; without one where files of the folder cannot be run."""
    if _CHOICE in environ:
        return environ[_CHOICE]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "python"
    write_whole(script, _SCRIPT % shlex.quote(sys.executable))
    script.chmod(0o755)
    return str(script.resolve()) if os.access(script, os.X_OK) else sys.executable
