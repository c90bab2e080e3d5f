"""A project that is killed at every step of a change, and run again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Sink, SinkKind
from headrace.service.run import Options
from tests.unit.service.disk_engine import Ground
from tests.unit.service.sample import query

JSON = Sink(kind=SinkKind.JSON)
START = {"a": "1", "b": "2", "alone": "alone", "c": "3", "d": "4"}


def _add_two_drop_two(it: Ground) -> dict[str, Any]:
    """A member and a job each come and go, in the midst of a run."""

    def ask() -> None:
        it.add("x")
        it.add("y", "alone")
        it.drop("b", "alone")

    return {"rounds": 7, "at": {2: ask}}


def _drop_a_whole_tree(it: Ground) -> dict[str, Any]:
    return {"rounds": 6, "at": {2: lambda: it.drop("d")}}


def _add_what_is_refused(it: Ground) -> dict[str, Any]:
    return {"rounds": 6, "at": {2: lambda: it.add("x")}, "bad": frozenset({"x"})}


def _pending_at_the_start(it: Ground) -> dict[str, Any]:
    it.add("x")
    it.add("y", from_start=True)
    it.drop("b", "d")
    return {"rounds": 4}


def _fresh_for_one(it: Ground) -> dict[str, Any]:
    return {"rounds": 4, "options": Options(fresh=True, only=("b",))}


def _fresh_for_all(it: Ground) -> dict[str, Any]:
    return {"rounds": 4, "options": Options(fresh=True)}


def _gone_from_the_file(it: Ground) -> dict[str, Any]:
    del it.queries["c"], it.queries["d"]
    return {"rounds": 4}


SCENARIOS: dict[str, Callable[[Ground], dict[str, Any]]] = {
    "add and drop": _add_two_drop_two,
    "drop a tree": _drop_a_whole_tree,
    "refused": _add_what_is_refused,
    "pending": _pending_at_the_start,
    "fresh one": _fresh_for_one,
    "fresh all": _fresh_for_all,
    "gone": _gone_from_the_file,
}


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: it is written a thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


class Kills:
    """One project that has run, restored for each kill: a checkpoint knows its input by absolute paths."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._saved, self._monkeypatch = folder / "p", folder / "saved", monkeypatch
        self.ground().run(3)
        shutil.copytree(self.root, self._saved)

    def ground(self) -> Ground:
        queries = {name: query(name, sql, JSON) for name, sql in START.items()}
        return Ground(self.root, self._monkeypatch, queries)

    def at(self, name: str, step: int) -> str | None:
        """Kill a run of the scenario at one step, run again and check everything; what the step was, or None
        where the run was over before."""
        shutil.rmtree(self.root)
        shutil.copytree(self._saved, self.root)
        it = self.ground()
        how = SCENARIOS[name](it)
        died = it.killed(step, **how)
        done = it.death.steps[-1] if died else None
        outcome = it.run(5, bad=how.get("bad", frozenset()))
        assert not outcome.failures
        assert {watched.job for watched in outcome.last.jobs} == _expected(it)
        it.check_answers()
        return done


def _expected(it: Ground) -> set[str]:
    """What was asked for is done, and nothing else is."""
    with it.store() as store:
        assert store.edits().pending == () and store.unsettled() == ()
        changes = store.changes(range(1, 10))
    names = set(it.queries)
    for change in changes:
        assert change.settled
        if change.kind == "drop":
            names.discard(change.query)
        elif change.state == "applied":
            names.add(change.query)
    return names
