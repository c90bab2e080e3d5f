"""Random commands, runs and kills against a model the size of a set: the names that should be there."""

from __future__ import annotations

import random
import shutil

import pytest

from headrace.catalog.model import Sink, SinkKind
from headrace.errors import UserError
from headrace.service.run import Options
from tests.unit.service.change_kills import START, scratch
from tests.unit.service.disk_engine import Ground
from tests.unit.service.sample import query

NAMES = ("x", "y", "z")
"""Few, so that names come again."""


class Life:
    """One project, and what it should have."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground, self.chance = ground, random.Random(seed)
        self.there = set(ground.queries)
        self.fresh = 0

    def command(self) -> None:
        """What somebody else does, or tries to."""
        name = self.chance.choice([*NAMES, *NAMES, *self.ground.queries])
        try:
            if name in self.there:
                self.ground.drop(name)
                self.there.discard(name)
            elif name in NAMES:
                self.add(name)
        except UserError:
            return

    def add(self, name: str) -> None:
        """The results of an earlier query of that name are moved away first, as the command asks for."""
        sql = self.chance.choice(["7", "8", "alone"])
        self.ground.add(name, sql, from_start=self.chance.random() < 0.2)
        self.there.add(name)
        shutil.rmtree(self.ground.root / "results" / name, ignore_errors=True)

    def options(self) -> Options:
        if self.chance.random() < 0.8 or not self.there & set(START):
            return Options()
        only = self.chance.choice(sorted(self.there & set(START)))
        return Options(fresh=self.chance.random() < 0.5, only=(only,))

    def run(self, *, kill: bool) -> None:
        commands = {self.chance.randrange(1, 6): self.command for _ in range(self.chance.randrange(3))}
        step = self.chance.randrange(60) if kill else 10**9
        self.ground.killed(step, rounds=8, at=commands, options=self.options())

    def check(self) -> None:
        """Run without a kill until nothing is pending: then everything is as the commands said."""
        self.ground.run(5)
        with self.ground.store() as store:
            assert store.edits().pending == () and store.unsettled() == ()
            assert {row.query for row in store.deployment().queries} == self.there
        self.ground.check_answers()


@pytest.mark.parametrize("seed", range(25))
def test_a_random_life(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    json = Sink(kind=SinkKind.JSON)
    with scratch() as folder:
        queries = {name: query(name, sql, json) for name, sql in START.items()}
        life = Life(Ground(folder, monkeypatch, queries), seed)
        for _ in range(4):
            for _ in range(life.chance.randrange(1, 4)):
                life.run(kill=life.chance.random() < 0.7)
                if life.chance.random() < 0.5:
                    life.command()
            life.check()
