"""Golden decisions of sharing: named queries in, the text of the SharedPlan out.

    # title: what is decided
    # rate: 0.5                 (rows per second of every stream; by default 1000)
    # distinct: house 20        (values of a column, for every stream that has it)
    # cores: 8                  (of every site, and buckets of a tree; by default 2)
    # sharing: off
    a: SELECT ...
    b@edge: SELECT ...          (on another site)
    --gives--
    t0 := Tree ...

`HEADRACE_BLESS=1 pytest tests/cases` writes what comes out now. What no blessing can make right is checked
apart: the trees of every case cost as little as the best of all ways to put its queries together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.catalog.model import PlannerChoices, Project, Query, Site, Stream
from headrace.cost.windows import DEFAULTS, WindowCosts
from headrace.plan.placed import TreeMember
from headrace.plan.shared import SharedPlan, format_shared
from headrace.service.sharing import Family, families_of, share
from tests.cases.catalog import STREAMS, TABLES

FILE = Path(__file__).parent / "sharing" / "decisions.txt"
_BETWEEN = "\n\n========\n\n"
_MARK = "\n--gives--"
_FIXED = {
    "batch": 0.25,
    "query_batch": 3e-4,
    "row": 1.5e-6,
    "row_argument": 2e-7,
    "fragment": 1e-6,
    "fragment_slide": 2e-7,
    "cell": 3e-8,
    "cell_output": 2e-8,
    "plain_batch": 0.15,
    "plain_row": 1e-6,
    "expanded_row": 3e-7,
    "plain_state": 4e-6,
    "fragment_memory": 100.0,
    "worker_memory": 150e6,
}
COSTS = WindowCosts.from_dict({**DEFAULTS.to_dict(), **_FIXED})
"""Not what this or any machine was found to cost: a new calibration must not change the cases."""


def costs(site: str) -> WindowCosts:
    return COSTS


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
        cores = int(self.settings.get("cores", "2"))
        return Project(
            name="cases",
            root=Path(),
            streams={name: self._stream(stream) for name, stream in STREAMS.items()},
            tables=TABLES,
            sites={name: Site(name=name, cpu=cores) for name in ("local", "edge")},
            links=(),
            queries={query.name: query for query in (_query(name, sql) for name, sql in lines)},
            planner=PlannerChoices(sharing=self.settings.get("sharing") != "off", shuffle_partitions=cores),
        )

    def _stream(self, stream: Stream) -> Stream:
        told = [one.split() for one in self.settings.get("distinct", "").split(",") if one]
        distinct = {column: int(number) for column, number in told if column in stream.columns}
        return stream.model_copy(update={"rate": self.rate, "distinct": distinct})

    def shared(self) -> SharedPlan:
        return share(self.project(), costs=costs)


def _query(name: str, sql: str) -> Query:
    name, _, site = name.partition("@")
    return Query(name=name, sql=sql, site=site or "local")


def _read() -> list[Decision]:
    found = []
    for block in FILE.read_text().strip("\n").split(_BETWEEN):
        body, _, gives = block.partition(_MARK)
        found.append(Decision(body.splitlines()[0].removeprefix("# title: "), body, gives.strip("\n")))
    return found


CASES = _read()


@pytest.mark.skipif("HEADRACE_BLESS" not in os.environ, reason="writes the expectations, only when asked to")
def test_bless() -> None:
    blocks = [f"{case.body}{_MARK}\n{format_shared(case.shared())}" for case in CASES]
    FILE.write_text(_BETWEEN.join(blocks) + "\n")


@pytest.mark.skipif("HEADRACE_BLESS" in os.environ, reason="the expectations are being written")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_decision(case: Decision) -> None:
    assert format_shared(case.shared()) == case.gives


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_no_other_trees_cost_less(case: Decision) -> None:
    plan = case.shared()
    members = [member for tree in plan.trees for member in tree.members]
    families = families_of(case.project(), members, costs)
    for family in families:
        chosen = [tree.members for tree in plan.trees if tree.members[0] in family.members]
        assert _price(family, chosen) == pytest.approx(_best(family))


def _price(family: Family, trees: Sequence[Sequence[TreeMember]]) -> float:
    return sum(family.loads.price(tree).total for tree in trees)


def _best(family: Family) -> float:
    """By all set partitions."""
    return min(_price(family, trees) for trees in _partitions(list(family.members)))


def _partitions(members: list[TreeMember]) -> Iterator[list[list[TreeMember]]]:
    if not members:
        yield []
        return
    first, *rest = members
    for trees in _partitions(rest):
        yield [[first], *trees]
        for i, tree in enumerate(trees):
            yield [*trees[:i], [first, *tree], *trees[i + 1 :]]


def test_titles_differ() -> None:
    assert len({case.title for case in CASES}) == len(CASES)
