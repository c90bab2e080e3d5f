"""What an engine is told and what it tells: two JSON files, since every engine is a process of its own.

Only the standard library is used here: Flink's own environment reads this file too.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from benchmarks.windows.workloads import WindowQuery

FILES, NONE = "files", "none"
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class RunSpec:
    engine: str
    queries: tuple[WindowQuery, ...]
    parquet: str
    """Folder of the input; its files in order of modification times."""
    csv: str
    """The same rows for Flink, one file for each core; empty where Flink does not run."""
    work: str
    """The run's own folder, empty at first."""
    sink: str = FILES
    files_per_batch: int = 6
    cores: int = 2
    memory: str = "4g"
    store: str = "rocksdb"
    """Plain Spark's state store: rocksdb, or default."""

    @property
    def folder(self) -> Path:
        return Path(self.work)

    def results(self, query: str) -> Path:
        """Where the rows of a query are found afterwards."""
        return self.folder / "results" / query

    def write(self) -> Path:
        data = asdict(self) | {"queries": [query.to_data() for query in self.queries]}
        path = self.folder / "spec.json"
        path.write_text(json.dumps(data, indent=1), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        data = json.loads(path.read_text(encoding="utf-8"))
        queries = tuple(WindowQuery.from_data(query) for query in data.pop("queries"))
        return cls(queries=queries, **data)


@dataclass(slots=True)
class Report:
    """What only the engine itself knows. None: it does not tell."""

    ready: float = 0.0
    """Seconds from the process's first line of ours until the engine could take a query."""
    seconds: float = 0.0
    """From then to the last row."""
    state_rows: int | None = None
    state_memory: int | None = None
    """Bytes, as the engine counts them."""
    checkpoints: list[str] = field(default_factory=list)
    """Folders of Spark checkpoints, for the times of batches."""
    refused: list[str] = field(default_factory=list)
    """Queries that the engine does not take."""
    notes: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        (folder / REPORT).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Report:
        data = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        return cls(**{known.name: data[known.name] for known in fields(cls)})


def given() -> RunSpec:
    """The spec named on an engine's command line."""
    return RunSpec.read(Path(sys.argv[1]))
