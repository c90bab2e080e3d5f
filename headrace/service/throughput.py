"""How fast splits of a query run on this machine: by a process that is started, watched, and ended when its
time is over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import psutil

from headrace.service.throughput_run import PATIENCE, Answer, Task
from headrace.service.throughput_stream import Load, write_readings

_START_SECONDS = 120.0
"""For a process to open its engine, to warm it up, and to compare answers."""
_POLL = 0.2
_TOO_LARGE = 6 << 30
"""Bytes: Spark forgets the state of a job that has ended only after a while; the next must not pay for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and with what runs are made."""

    folder: Path
    cores: int = 2
    memory: str = "6g"
    limit: float = 420.0
    """Seconds for one split."""


class Bench:
    """Runs splits in one process after another; a process goes on for as long as it is well and small."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Bench:
        self._place.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def measure(
        self, query: str, sql: str, load: Load, splits: Sequence[str], *, reference: bool
    ) -> list[Answer]:
        """An answer for every split, in their order. They share an engine, one after the other, so that they
        are compared under like conditions; one that takes the engine down is followed by a new one."""
        place, rows = self._place, self._rows(load)
        write_readings(load, rows)
        task = Task(
            query,
            sql,
            load,
            tuple(splits),
            str(rows),
            str(place.folder / "work"),
            place.limit,
            place.cores,
            place.memory,
            reference,
        )
        found: list[Answer] = []
        while len(found) < len(splits):
            new, problem = self._done(replace(task, splits=task.splits[len(found) :]))
            found += new
            if len(found) < len(splits):
                found.append(Answer(task.splits[len(found)], problem=problem))
        if any(answer.memory > _TOO_LARGE or not answer.seconds for answer in found):
            self._end()
        return found

    def forget(self, load: Load) -> None:
        """Remove the rows of a load."""
        shutil.rmtree(self._rows(load), ignore_errors=True)

    def _rows(self, load: Load) -> Path:
        return self._place.folder / f"rows-{load.rate}"

    # -- the process ----------------------------------------------------------------------------------

    def _done(self, task: Task) -> tuple[list[Answer], str]:
        """What a process told, and what became of it if it did not tell all."""
        path = self._place.folder / "task.json"
        answers = path.with_suffix(".answers")
        answers.unlink(missing_ok=True)
        path.write_text(task.to_json(), encoding="utf-8")
        deadline = time.monotonic() + PATIENCE * (len(task.splits) * task.limit + _START_SECONDS)
        child = self._started()
        _ask(child, path)
        while len(_told(answers)) < len(task.splits):
            if child.poll() is not None or time.monotonic() > deadline:
                self._end()
                break
            time.sleep(_POLL)
        return [
            Answer(**json.loads(line)) for line in _told(answers)
        ], f"the process ended: {self._last_line()}"

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None:
            command = [sys.executable, "-m", "headrace.service.throughput_run"]
            with self._log.open("wb") as out:
                self._child = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=dict(os.environ), text=True
                )
        return self._child

    def _end(self) -> None:
        """Also the engine, which would go on alone."""
        child, self._child = self._child, None
        if child is None:
            return
        try:
            every = [*psutil.Process(child.pid).children(recursive=True), psutil.Process(child.pid)]
        except psutil.Error:
            every = []
        for process in every:
            try:
                process.kill()
            except psutil.Error:
                continue
        child.wait()
        if child.stdin is not None:
            child.stdin.close()

    @property
    def _log(self) -> Path:
        return self._place.folder / "process.log"

    def _last_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][-300:] if lines else "without a word"


def _ask(child: subprocess.Popen[str], path: Path) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(f"{path}\n")
        child.stdin.flush()
    except BrokenPipeError:
        return


def _told(answers: Path) -> list[str]:
    """Whole lines only."""
    text = answers.read_text(encoding="utf-8") if answers.exists() else ""
    return text.split("\n")[:-1]
