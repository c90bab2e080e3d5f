"""Golden decisions of sharing: named queries in, the text of the SharedPlan out.

    # title: what is decided
    # rate: 0.5                 (rows per second of every stream; by default 1000)
    a: SELECT ...
    b: SELECT ...
    --gives--
    t0 := Tree ...

`HEADRACE_BLESS=1 pytest tests/cases` writes what comes out now. What no blessing can make right is checked
apart: the trees of every case cost as little as the best of all possible trees.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.catalog.model import PlannerChoices, Project, Query, Site
from headrace.plan.shared import MICROS, Member, SharedPlan, format_shared
from headrace.planners.sharing.brute_force import optimum
from headrace.planners.sharing.problem import SharingProblem, WindowQuery
from headrace.service.sharing import share
from tests.cases.catalog import STREAMS, TABLES

FILE = Path(__file__).parent / "sharing" / "decisions.txt"
_BETWEEN = "\n\n========\n\n"
_MARK = "\n--gives--"


@dataclass(frozen=True)
class Decision:
    title: str
    body: str
    """The case as written, up to its result."""
    gives: str

    @property
    def settings(self) -> dict[str, str]:
        lines = [line[2:] for line in self.body.splitlines() if line.startswith("# ")]
        return dict(line.split(": ", 1) for line in lines)

    @property
    def rate(self) -> float:
        return float(self.settings.get("rate", "1000"))

    def project(self) -> Project:
        lines = [line.split(": ", 1) for line in self.body.splitlines() if not line.startswith("# ")]
        return Project(
            name="cases",
            root=Path(),
            streams={n: s.model_copy(update={"rate": self.rate}) for n, s in STREAMS.items()},
            tables=TABLES,
            sites={"local": Site(name="local")},
            links=(),
            queries={name: Query(name=name, sql=sql) for name, sql in lines},
            planner=PlannerChoices(sharing=self.settings.get("sharing") != "off"),
        )


def _read() -> list[Decision]:
    found = []
    for block in FILE.read_text().strip("\n").split(_BETWEEN):
        body, _, gives = block.partition(_MARK)
        found.append(Decision(body.splitlines()[0].removeprefix("# title: "), body, gives.strip("\n")))
    return found


CASES = _read()


@pytest.mark.skipif("HEADRACE_BLESS" not in os.environ, reason="writes the expectations, only when asked to")
def test_bless() -> None:
    blocks = [f"{case.body}{_MARK}\n{format_shared(share(case.project()))}" for case in CASES]
    FILE.write_text(_BETWEEN.join(blocks) + "\n")


@pytest.mark.skipif("HEADRACE_BLESS" in os.environ, reason="the expectations are being written")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_decision(case: Decision) -> None:
    assert format_shared(share(case.project())) == case.gives


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_no_other_trees_cost_less(case: Decision) -> None:
    plan = share(case.project())
    assert plan.cost == pytest.approx(sum(_best(case, group) for group in _groups(plan)))


def _groups(plan: SharedPlan) -> list[list[Member]]:
    found: dict[str, list[Member]] = {}
    for tree in plan.trees:
        found.setdefault(repr(tree.rows), []).extend(tree.members)
    return list(found.values())


def _best(case: Decision, members: list[Member]) -> float:
    """By all set partitions, in half seconds: no case has a finer time."""
    unit = MICROS // 2
    queries = tuple(WindowQuery(m.query, m.spec.range // unit, m.spec.slide // unit) for m in members)
    return optimum(SharingProblem(case.rate / 2, (1.0,), queries, "true")).total * 2


def test_titles_differ() -> None:
    assert len({case.title for case in CASES}) == len(CASES)
