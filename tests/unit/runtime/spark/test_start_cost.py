"""What a start of a query need not wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.cloudpickle import dumps

from headrace.runtime.spark.session import checkpoint_settings
from headrace.runtime.spark.woven import processor

_ASK = """
import pickle, sys
from pathlib import Path

class Handle:
    asked = []
    def getMapState(self, *args):
        self.asked.append(args)

processor = pickle.loads(Path(sys.argv[1]).read_bytes())
processor.init(Handle())
print(Handle.asked[0][0], sorted(name for name in sys.modules if name.split(".")[0] == "headrace"))
"""


def test_asking_a_tree_for_its_state_imports_nothing_of_headrace(tmp_path: Path) -> None:
    """Spark does so in a new process at every start."""
    made = tmp_path / "processor"
    made.write_bytes(dumps(processor("tree", "{}")))  # type: ignore[no-untyped-call]
    told = subprocess.run([sys.executable, "-c", _ASK, str(made)], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "chunks []"


@pytest.mark.parametrize(("version", "known"), [(pyspark.__version__, 1), ("3.5.1", 0), ("5.0.0", 0)])
def test_a_class_of_spark_is_named_only_to_the_version_that_has_it(version: str, known: int) -> None:
    assert len(checkpoint_settings(version)) == known
