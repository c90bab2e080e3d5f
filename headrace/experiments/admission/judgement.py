"""What the paper claims, what we find, and whether it is the same; each by a rule that is written here.

Numbers ("less than 25 %") are compared as they stand. Sentences ("near optimal", "more or less independent")
have their rule in the claim's own function, and it is told beside the finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.experiments.admission.board import Board
from headrace.experiments.admission.cases import POINTS, SQPR, Point, Run
from headrace.experiments.admission.tables import Load, Tables, Time
from headrace.experiments.judged import Claim, Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    told: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    board: Board
    tables: Tables

    def admitted(self, figure: str, group: str, planner: str) -> list[float]:
        return [line.admitted for line in self.tables.series(figure, group, planner).values()]

    def of_bound(self, figure: str, group: str, planner: str) -> list[float]:
        return [line.of_bound or 0.0 for line in self.tables.series(figure, group, planner).values()]

    def axis(self, figure: str, group: str, planner: str) -> list[float]:
        return list(self.tables.series(figure, group, planner))

    def proven(self, figure: str, group: str) -> float:
        """% of SQPR's answers that it showed to be the best in time, refusals included."""
        points = [one for one in POINTS if (one.figure, one.group) == (figure, group)]
        rows = [row for one in points for row in self.board.rows(one.name, Run(SQPR))]
        return 100 * sum(row.proven for row in rows) / sum(row.queries for row in rows)

    def times(self, figure: str, planner: str) -> list[Time]:
        return [one for one in self.tables.times if (one.figure, one.planner) == (figure, planner)]

    def loads(self, planner: str) -> list[Load]:
        """Early, late."""
        return [one for one in self.tables.loads if one.planner == planner]


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    where: str
    paper: str
    find: Callable[[Evidence], Finding]
    of_sqpr: bool = True

    def judged(self, evidence: Evidence) -> Claim:
        if self.of_sqpr and not evidence.tables.deadline:
            return Claim(self.text, self.where, self.paper, f"{SQPR} was not run", "not compared")
        found = self.find(evidence)
        return Claim(self.text, self.where, self.paper, found.told, found.verdict, found.why)


def point(figure: str, group: str = "") -> Point:
    return next(one for one in POINTS if (one.figure, one.group) == (figure, group))


def held(whole: bool, part: bool = False) -> Verdict:
    return "holds" if whole else ("partly" if part else "does not hold")


def rises(values: Sequence[float]) -> bool:
    return all(after >= before for before, after in pairwise(values))


def numbers(values: Sequence[float], digits: int = 0) -> str:
    return ", ".join(f"{one:,.{digits}f}" for one in values)
