"""`headrace run` over two Spark Connect servers: a job is moved, the run and a site are killed; in the end
every answer equals the reference."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.runtime.spark.servers import kill, servers
from headrace.service.sites import Up, as_yaml, down, up
from tests import kills
from tests.spark.harness import write_batches

pytestmark = pytest.mark.spark
QUERIES = ("sliding", "joined")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project without input; its two sites are gone in the end, whatever happens."""
    found = up(tmp_path / ".headrace" / "sites", Up(2, "700m"), os.environ)
    head, body = kills.PROJECT.split("queries:")
    wanted = [f"  {name}:{_query(body, name)}" for name in QUERIES]
    text = f"{head}queries:\n{''.join(wanted)}planner: {{shuffle_partitions: 1}}\n{as_yaml(found)}"
    (tmp_path / "headrace.yaml").write_text(text)
    yield tmp_path
    down(tmp_path / ".headrace" / "sites")


def _query(body: str, name: str) -> str:
    """The lines of one query."""
    lines = body.split(f"  {name}:")[1].splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if n and not line.startswith("    "))
    return "".join(lines[:end])


class Feeding:
    """Files of both streams, written one by one. Each part of the test has its share of them, however long it
    takes: a job without input would have no batch to show."""

    FILES = 60

    def __init__(self, root: Path) -> None:
        rng = random.Random(7)
        self.root, self.written = root, 0
        whole = {
            "readings": pa.concat_tables(kills._batches(rng, 720, "value")),
            "switches": pa.concat_tables(kills._batches(rng, 120, "command")),
        }
        self.batches = {name: _sliced(table, self.FILES) for name, table in whole.items()}
        for name in self.batches:
            (root / name).mkdir()
        self.up_to(2)()

    def up_to(self, most: int, at_once: int = 2) -> Callable[[], None]:
        """Writes some more, if there are not so many yet."""

        def write() -> None:
            until = min(most, self.written + at_once)
            for name, tables in self.batches.items():
                write_batches(self.root / name, tables[self.written : until], self.written)
            self.written = max(self.written, until)

        return write

    def inputs(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(tables) for name, tables in self.batches.items()}


def _sliced(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-table.num_rows // count)
    return [table.slice(k * size, size) for k in range(count)]


def _command(root: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "headrace.cli.main", *args, str(root)]


def _start(root: Path, *args: str) -> subprocess.Popen[bytes]:
    with (root / "run.log").open("ab") as log:
        return subprocess.Popen(_command(root, "run", *args), stdout=log, stderr=log)


def _sites(root: Path) -> dict[str, tuple[str, str]]:
    """Site and state of each query."""
    done = subprocess.run(_command(root, "queries", "--json"), capture_output=True, text=True, check=True)
    return {row["name"]: (row["site"], row["observed"]) for row in json.loads(done.stdout)}


def _sessions(root: Path) -> set[str]:
    """Those that a run has opened at the sites, and not ended."""
    return {path.stem for path in (root / ".headrace" / "engines").glob("*.json")}


def _until(root: Path, done: Callable[[], bool], step: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + 300
    while not done():
        assert time.monotonic() < deadline, (root / "run.log").read_text()[-3000:]
        step()
        time.sleep(1.0)


def test_moved_and_killed_a_project_gives_what_it_should(root: Path) -> None:
    feeding = Feeding(root)
    run = _start(root)
    try:
        _until(root, lambda: kills._commits(root) >= 2)
        mover = subprocess.Popen(_command(root, "move", "joined", "site2", "--json"), stdout=subprocess.PIPE)
        _until(root, lambda: mover.poll() is not None, feeding.up_to(20))
        assert json.loads(mover.stdout.read())["state"] == "moved"  # type: ignore[union-attr]
        assert _sites(root)["joined"] == ("site2", "running")

        # The run dies; what it had at the servers goes on there, and the next run must end it first.
        run.send_signal(signal.SIGKILL)
        run.wait()
        feeding.up_to(22)()
        earlier = _sessions(root)
        run = _start(root)
        _until(root, lambda: not earlier & _sessions(root) and len(_sessions(root)) == len(earlier))
        before = kills._commits(root)
        _until(root, lambda: kills._commits(root) >= before + 2, feeding.up_to(38))
        assert _sites(root)["joined"][0] == "site2"

        kill(next(one for one in servers(root / ".headrace" / "sites") if one.name == "site1"))
        _until(root, lambda: set(_sites(root).values()) == {("site2", "running")}, feeding.up_to(56))
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == 0
    finally:
        run.kill()
        run.wait()
    feeding.up_to(feeding.FILES, at_once=feeding.FILES)()
    drained = _start(root, "--drain")
    assert drained.wait(timeout=240) == 0, (root / "run.log").read_text()[-3000:]
    rows, problems = kills._differences(root, feeding.inputs())
    assert rows > 100 and problems == []
